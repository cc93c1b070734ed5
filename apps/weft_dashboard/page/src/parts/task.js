// SPDX-License-Identifier: Apache-2.0
// While a task runs the browser does nothing else: keys and the pointer wait. So what takes long
// goes on in the next task, and again.

export const nextTask = () => new Promise((resolve) => setTimeout(resolve));
