// SPDX-License-Identifier: Apache-2.0
// While a task runs the browser does nothing else: keys and the pointer wait. So what takes long
// goes on in the next task, and again.

const SLICE_MS = 8;
const ROWS = 100;

export const nextTask = () => new Promise((resolve) => setTimeout(resolve));

// Runs a generator, which yields wherever it may wait, in tasks that are short, and gives what it
// returns; undefined as soon as isOver() says that nobody waits for it any more.
export async function inSlices(steps, isOver = () => false) {
  let begin = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - begin > SLICE_MS) {
      await nextTask();
      if (isOver()) return undefined;
      begin = performance.now();
    }
  }
}

// Does it with each row, in such a generator.
export function* each(rows, act) {
  let count = 0;
  for (const row of rows) {
    act(row);
    if (++count % ROWS === 0) yield;
  }
}
