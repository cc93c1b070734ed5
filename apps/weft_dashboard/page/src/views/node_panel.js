// SPDX-License-Identifier: Apache-2.0
// The chosen node, beside the graph: its figures, a link to its page, and what may be done to it.

import { address } from "../data/address.js";
import { h, say } from "../parts/element.js";
import { bytes, count, duration, micros, rate } from "../parts/format.js";

export function figures(node) {
  const perSecond = (key) => rate((node[key] * 1000) / node.period_ms);
  if (node.state !== "up") return [["State", "does not report"], ["Groups", groups(node)]];
  return [
    ["State", `up for ${duration(node.uptime_ms)}`],
    ["Groups", groups(node)],
    ["Out, in", `${perSecond("bytes_out")}, ${perSecond("bytes_in")}`],
    ["Relayed", `${perSecond("relayed_bytes")}, ${node.relayed_circuits} circuits`],
    ["Waits", `${bytes(node.queued_bytes)}, ${node.suspended} senders suspended`],
    ["Memory", bytes(node.memory_bytes)],
    ["Processes", `${count(node.processes)}, ${node.run_queue} in run queues`],
    ["Woken late by", micros(node.wake_up_us)],
    ["Can not reach", node.unreachable.join(", ") || "nobody is missing"],
  ];
}

const groups = (node) => node.groups.join(", ") || "none";

// Changes only what is new, so that a reader is not disturbed.
export function fillFigures(list, rows) {
  while (list.children.length > rows.length * 2) list.lastChild.remove();
  rows.forEach(([name, value], i) => {
    const dt = list.children[2 * i] ?? list.appendChild(h("dt"));
    const dd = list.children[2 * i + 1] ?? list.appendChild(h("dd"));
    say(dt, name);
    say(dd, value);
  });
}

// extra: a further button, { text, act(name) }.
export function nodePanel(app, extra) {
  const title = h("h2");
  const list = h("dl", { class: "figures" });
  const more = h("a", { class: "button" }, "Open its page");
  const kill = h("button", { type: "button", class: "danger", hidden: true }, "Kill this node");
  const other = h("button", { type: "button", onclick: () => extra.act(name) }, extra.text);
  const told = h("p", { class: "told", role: "status" });
  const element = h("section", { "aria-label": "Chosen node", hidden: true },
    title, list, h("div", { class: "buttons" }, more, other, kill), told);
  let name;

  kill.addEventListener("click", async () => {
    const killed = name;
    if (!(await app.confirm(`End the node ${killed} at once, as kill -9 does?`))) return;
    say(told, await app.act("/api/chaos", { action: "kill_node", node: killed },
      `${killed} is killed`));
  });

  return {
    element,
    update(cluster, newName) {
      if (newName !== name) say(told, "");
      name = newName;
      const node = cluster.byName.get(name);
      element.hidden = node === undefined;
      if (node === undefined) return;
      say(title, node.name);
      fillFigures(list, figures(node));
      more.href = address.with({ view: "node", node: node.name });
      kill.hidden = !app.about().chaos || node.state !== "up" || cluster.isPast;
    },
  };
}
