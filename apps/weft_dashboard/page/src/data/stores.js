// SPDX-License-Identifier: Apache-2.0
// Ring and store: what a node says of them, or all together, in words. `has` is that; `before` is
// { has, at_ms } of the look before, if there was one.

import { bytes, count, micros } from "../parts/format.js";

// How long a request took in the mean, in microseconds: those since the look before, or if there
// were none then, all of them.
export function took(has, before, kind) {
  const us = `${kind}_us`;
  const since = before && has[kind] > before.has[kind] && has[us] >= before.has[us]
    ? before.has : { [kind]: 0, [us]: 0 };
  return has[kind] > since[kind] ? (has[us] - since[us]) / (has[kind] - since[kind]) : undefined;
}

function requests(has, before, atMs, kind) {
  const words = [count(has[kind])];
  if (before && atMs > before.at_ms && has[kind] >= before.has[kind])
    words.push(`${count(Math.round(((has[kind] - before.has[kind]) * 1000)
      / (atMs - before.at_ms)))} a second`);
  const us = took(has, before, kind);
  if (us !== undefined) words.push(`${micros(us)} each`);
  return words.join(", ");
}

// Rows of a list of figures: what does not run has none.
export function storeFigures(has, before, atMs) {
  const rows = [];
  if (has.partitions !== undefined) {
    rows.push(
      ["Partitions", `${count(has.owned)} owned of ${count(has.partitions)}, on `
        + `${has.members} members; ${has.moving} to be moved`],
      ["Handoffs", `${has.handing_over} running, ${count(has.handed_over)} done, `
        + `${count(has.handoffs_failed)} failed`],
    );
  }
  if (has.get !== undefined) {
    rows.push(
      ["Gets", requests(has, before, atMs, "get")],
      ["Puts", requests(has, before, atMs, "put")],
      ["Deletes", requests(has, before, atMs, "delete")],
      ["Errors", `${count(has.errors)}, ${has.running} requests run`],
      ["Hints waiting", count(has.hints)],
      ["Keys", `${count(has.objects)}, ${bytes(has.memory_bytes)} of memory, `
        + `${bytes(has.file_bytes)} of files`],
    );
  }
  return rows;
}
