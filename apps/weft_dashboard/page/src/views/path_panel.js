// SPDX-License-Identifier: Apache-2.0
// The path between two nodes: a form that asks for it, and the hops as a table. While it is shown
// it is asked for again, so that a path that changes is seen; what is asked makes nodes work.

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { h, say, field } from "../parts/element.js";
import { table } from "../parts/table.js";
import { bytes, micros } from "../parts/format.js";

const AGAIN_MS = 3000;

export function pathPanel({ onWay }) {
  const input = () =>
    h("input", { type: "search", list: "node-names", autocomplete: "off", required: true });
  const [from, to] = [input(), input()];
  const told = h("p", { class: "told", role: "status" });
  const hops = table({
    caption: "Hops of the path",
    isHidden: true,
    key: (hop) => `${hop.from} ${hop.to}`,
    columns: [
      { title: "#", value: (hop) => hop.at, isNumber: true },
      { title: "From – to", value: (hop) => `${hop.from} – ${hop.to}` },
      { title: "Round trip", value: (hop) => hop.rtt_us, text: micros, isNumber: true },
      { title: "Queue", value: (hop) => hop.queued_bytes, text: bytes, isNumber: true },
      { title: "Lanes", value: (hop) => (hop.lanes ?? []).map(lane).join("; ") },
    ],
  });
  const form = h("form", { class: "path" },
    h("h2", {}, "Path between two nodes"),
    field("From", from),
    field("To", to),
    h("div", { class: "buttons" }, h("button", {}, "Show the path"),
      h("button", { type: "button", onclick: () => choosing(undefined, undefined) }, "Clear")));
  const result = h("div", { hidden: true }, told, hops.element);
  let asked = "";
  // Answers to what was asked in another turn come too late.
  let turn = 0;
  let way = null;
  let again;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    choosing(from.value, to.value);
  });

  const choosing = (a, b) => address.set({ from: a, to: b }, { isStep: true });

  async function ask(mine, query) {
    let answer;
    try {
      answer = await get("/api/path", query);
    } catch (error) {
      answer = { hops: [], error: error.message };
    }
    if (mine !== turn) return;
    show(answer);
    if (mine === turn) again = setTimeout(() => ask(mine, query), AGAIN_MS);
  }

  function turnTo(key) {
    clearTimeout(again);
    asked = key;
    turn += 1;
  }

  function show(answer) {
    way = answer.hops;
    hops.element.hidden = way.length === 0;
    hops.update(way.map((hop, i) => ({ ...hop, at: i + 1 })));
    const nodes = [...new Set(way.flatMap((hop) => [hop.from, hop.to]))].join(" → ");
    const trip = answer.end_to_end_us ? `, ${micros(answer.end_to_end_us)} there and back` : "";
    say(told, answer.error ? `${nodes ? `${nodes}: ` : ""}${answer.error}` : `${nodes}${trip}`);
    onWay();
  }

  return {
    element: h("section", { "aria-label": "Path" }, form, result),
    way: () => way,
    update(cluster, a, b) {
      const key = cluster.isPast || a === undefined || b === undefined ? "" : `${a} ${b}`;
      if (key === asked) return;
      turnTo(key);
      way = null;
      for (const [field, value] of [[from, a], [to, b]])
        if (document.activeElement !== field) field.value = value ?? "";
      result.hidden = key === "";
      if (key !== "") ask(turn, { from: a, to: b });
    },
    // Nobody sees it; the next update begins anew, whatever is chosen then.
    stop: () => turnTo(null),
  };
}

const lane = ({ class: name, index, queued_bytes, bytes_out, bytes_in }) =>
  `${name ?? ""} ${index}: ${bytes(bytes_out)} out, ${bytes(bytes_in)} in`.trim()
    + (queued_bytes > 0 ? `, ${bytes(queued_bytes)} wait` : "");
