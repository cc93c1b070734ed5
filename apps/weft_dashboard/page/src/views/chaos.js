// SPDX-License-Identifier: Apache-2.0
// Faults on purpose: nodes that are killed or paused, links that are cut, broken, healed. Only
// where the dashboard and the nodes allow it, with the token, and not while a recording is shown.

import { h, say, field, options } from "../parts/element.js";

const ACTIONS = {
  kill_node: { text: "Kill a node", ends: ["node"] },
  pause_node: { text: "Pause a node", ends: ["node"], forS: 10, forMaxS: 60 },
  cut_link: { text: "Cut a link", ends: ["from", "to"], forS: 60, forMaxS: 600 },
  break_link: { text: "Break a link once", ends: ["from", "to"] },
  heal_link: { text: "Heal a link", ends: ["from", "to"] },
};

export const IN_THE_PAST = "A recording is shown, and what is done here is done to the cluster as "
  + "it is now. Go back to now for that.";

export function chaosView(app) {
  const action = h("select");
  options(action, Object.keys(ACTIONS), Object.values(ACTIONS).map(({ text }) => text));
  const ends = { node: h("select"), from: h("select"), to: h("select") };
  const fields = Object.fromEntries(Object.entries(ends).map(([end, select]) =>
    [end, field(end[0].toUpperCase() + end.slice(1), select)]));
  const seconds = h("input", { type: "number", min: "1" });
  const time = field("Seconds", seconds);
  const why = h("p", { class: "told", role: "status" });
  const told = h("p", { class: "told", role: "status" });
  const choices = h("fieldset", { class: "fields" }, h("legend", { class: "hidden" }, "What to do"),
    field("What", action), Object.values(fields), time, h("button", { class: "danger" }, "Do it"));
  const form = h("form", {}, choices);
  const element = h("section", { class: "page", "aria-label": "Chaos" },
    h("p", {}, "This breaks the running cluster on purpose, to see what it does then."),
    why, form, told);

  action.addEventListener("change", arrange);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = { action: action.value };
    const { ends: keys, text, forS } = ACTIONS[action.value];
    for (const key of keys) said[key] = ends[key].value;
    if (forS !== undefined) said.for_ms = Math.round(Number(seconds.value) * 1000);
    const what = `${text}: ${keys.map((key) => said[key]).join(" – ")}`;
    if (!(await app.confirm(`${what}?`))) return;
    say(told, await app.act("/api/chaos", said, `Done: ${what}`));
  });

  function arrange() {
    const { ends: keys, forS, forMaxS } = ACTIONS[action.value];
    for (const key of Object.keys(ends)) fields[key].hidden = !keys.includes(key);
    time.hidden = forS === undefined;
    if (forS !== undefined) {
      seconds.max = forMaxS;
      seconds.value = forS;
    }
  }
  arrange();

  return {
    element,
    update(cluster) {
      if (element.hidden) return;
      choices.disabled = cluster.isPast;
      say(why, cluster.isPast ? IN_THE_PAST : "");
      const names = cluster.nodes.map(({ name }) => name);
      for (const select of Object.values(ends)) options(select, names);
    },
  };
}
