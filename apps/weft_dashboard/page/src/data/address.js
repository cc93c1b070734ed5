// SPDX-License-Identifier: Apache-2.0
// What is shown is in the part of the URL behind #, so that it can be kept and sent to others.

const listeners = [];

let known = { hash: null, all: {} };

// Views ask often: it is taken apart once.
function read() {
  const { hash } = location;
  if (known.hash !== hash)
    known = { hash, all: Object.fromEntries(new URLSearchParams(hash.slice(1))) };
  return known.all;
}

export const address = {
  // The value of a key, or undefined.
  get(key) {
    return read()[key];
  },
  // Changes keys; undefined and "" remove one. A step can be taken back with the browser's button.
  set(changes, { isStep = false } = {}) {
    const all = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes))
      if (value === undefined || value === "") all.delete(key);
      else all.set(key, value);
    const hash = `#${all}`;
    if (hash === location.hash || (hash === "#" && location.hash === "")) return;
    if (isStep) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    for (const listener of listeners) listener();
  },
  // The address with these changes, for a link.
  with(changes) {
    const all = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes))
      if (value === undefined) all.delete(key);
      else all.set(key, value);
    return `#${all}`;
  },
  onChange(listener) {
    listeners.push(listener);
  },
};

addEventListener("hashchange", () => listeners.forEach((listener) => listener()));
addEventListener("popstate", () => listeners.forEach((listener) => listener()));
