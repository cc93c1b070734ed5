// SPDX-License-Identifier: Apache-2.0
// What of the graph is marked and what is left out: fields whose words are in the address. A word
// that is a part of a node's name means the node, and so does the name of its group; a word with an
// "@" means the node of exactly that name.

import { address } from "../data/address.js";
import { h, say, field } from "../parts/element.js";

const words = (text) => (text ?? "").split(/[\s,]+/).filter((word) => word !== "");

// A node in two groups is meant if both are.
function isMeant(node, list) {
  return list.some((word) => (word.includes("@") ? node.name === word : node.name.includes(word)))
    || (node.groups.length > 0 && node.groups.every((group) => list.includes(group)));
}

export function filterPanel({ onFind }) {
  let cluster = null;
  const seek = h("input", { type: "search", list: "node-names", autocomplete: "off", id: "find" });
  const hide = h("input", { type: "search", autocomplete: "off", id: "hide" });
  const told = h("span", { role: "status" });
  const all = h("button", {
    type: "button", hidden: true, onclick: () => address.set({ hide: undefined }),
  }, "Show all");
  const boxes = Object.entries({ circuits: "circuits", idle: "idle links" }).map(([what, text]) => {
    const box = h("input", { type: "checkbox", value: what, onchange: () => choose() });
    return { box, label: h("label", { class: "check" }, box, text) };
  });

  seek.addEventListener("input", () => address.set({ seek: seek.value }));
  hide.addEventListener("input", () => address.set({ hide: hide.value }));
  // Enter, or a name of the list: goes there.
  seek.addEventListener("change", () => {
    const found = cluster?.nodes.find((node) => isMeant(node, words(seek.value)));
    if (found) onFind(found.name);
  });

  function choose() {
    const without = boxes.filter(({ box }) => !box.checked).map(({ box }) => box.value);
    address.set({ without: without.join() });
  }

  return {
    element: h("section", { "aria-label": "Find and hide" },
      h("div", { class: "pair" }, field("Find nodes", seek), field("Hide nodes", hide)),
      h("div", { class: "line" }, boxes.map(({ label }) => label), told, all)),
    hide(name) {
      address.set({ hide: [...words(address.get("hide")), name].join(" ") });
    },
    // What the scene has to know.
    update(newCluster) {
      cluster = newCluster;
      const [found, hidden] = [words(address.get("seek")), words(address.get("hide"))];
      const without = words(address.get("without"));
      for (const [input, key] of [[seek, "seek"], [hide, "hide"]])
        if (document.activeElement !== input) input.value = address.get(key) ?? "";
      for (const { box } of boxes) box.checked = !without.includes(box.value);
      const count = cluster.nodes.filter((node) => isMeant(node, hidden)).length;
      say(told, count === 0 ? "" : `${count} hidden`);
      all.hidden = count === 0;
      return {
        isFound: (node) => isMeant(node, found),
        isHidden: (node) => isMeant(node, hidden),
        withCircuits: !without.includes("circuits"),
        withIdle: !without.includes("idle"),
      };
    },
  };
}
