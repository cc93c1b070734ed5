// SPDX-License-Identifier: Apache-2.0
// Ring and store of keys and values: on all nodes together, and on each. Nodes are asked again and
// again while this is shown.

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { storeFigures, took } from "../data/stores.js";
import { h, say } from "../parts/element.js";
import { table } from "../parts/table.js";
import { bytes, count, micros } from "../parts/format.js";
import { fillFigures } from "./node_panel.js";

const AGAIN_MS = 3000;

const number = (title, key, text = count) =>
  ({ title, value: (row) => row.has[key], text, isNumber: true });
const time = (title, kind) =>
  ({ title, value: (row) => took(row.has, row.before, kind), text: micros, isNumber: true });

export function storeView() {
  let isAsking = false;
  let isPast = false;
  let again;
  let last = null;
  const told = h("p", { class: "told", role: "status" });
  const list = h("dl", { class: "figures" });
  const nodes = table({
    caption: "Ring and store of each node",
    key: (row) => row.node,
    columns: [
      { title: "Node", value: (row) => row.node,
        link: (row) => address.with({ view: "node", node: row.node }) },
      number("Partitions", "owned"),
      number("Handing over", "handing_over"),
      number("Handed over", "handed_over"),
      number("Failed", "handoffs_failed"),
      number("Gets", "get"),
      time("Get takes", "get"),
      number("Puts", "put"),
      time("Put takes", "put"),
      number("Errors", "errors"),
      number("Hints", "hints"),
      number("Keys", "objects"),
      number("Memory", "memory_bytes", bytes),
    ],
  });
  const shown = h("div", { hidden: true }, h("h2", {}, "All together"), list, nodes.element);
  const element = h("section", { class: "page", "aria-label": "Store" }, told, shown);

  async function ask() {
    isAsking = true;
    try {
      show(await get("/api/stores"));
    } catch (error) {
      say(told, error.message);
    }
    isAsking = false;
    clearTimeout(again);
    again = setTimeout(next, AGAIN_MS);
  }

  function next() {
    if (!element.hidden && !isPast && !isAsking) ask();
  }

  function show(answer) {
    const before = new Map(last?.nodes.map(({ node, has }) => [node, { has, at_ms: last.at_ms }]));
    say(told, words(answer));
    shown.hidden = answer.nodes.length === 0;
    fillFigures(list, storeFigures(answer.together,
      isSame(answer, last) ? { has: last.together, at_ms: last.at_ms } : undefined, answer.at_ms));
    nodes.update(answer.nodes.map((row) => ({ ...row, before: before.get(row.node) })));
    last = answer;
  }

  return {
    element,
    update(cluster) {
      ({ isPast } = cluster);
      if (element.hidden) {
        last = null;
        return;
      }
      if (!isPast) {
        if (last === null) next();
        return;
      }
      shown.hidden = true;
      say(told, "Recordings have nothing of the store.");
      last = null;
    },
  };
}

// Only then sums can be compared.
function isSame(answer, last) {
  const names = ({ nodes }) => nodes.map(({ node }) => node).join(" ");
  return last !== null && names(answer) === names(last);
}

function words({ nodes, silent, more }) {
  const texts = [nodes.length === 0 ? "No node that answers has a ring or a store." : ""];
  if (silent.length > 0) texts.push(`No answer from ${silent.join(", ")}.`);
  if (more > 0) texts.push(`${count(more)} more nodes were not asked.`);
  return texts.filter((text) => text !== "").join(" ");
}
