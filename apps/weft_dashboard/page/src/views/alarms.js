// SPDX-License-Identifier: Apache-2.0
// What is wrong now. Whoever takes care of an alarm says so here, with the token.

import { address } from "../data/address.js";
import { h, say } from "../parts/element.js";
import { table } from "../parts/table.js";
import { time } from "../parts/format.js";

const ORDER = { critical: 0, warning: 1, note: 2 };

export function alarmsView(app) {
  let isPast = false;
  const told = h("p", { class: "told", role: "status" });
  const none = h("p", {}, "Nothing is wrong that anybody knows of.");
  const alarms = table({
    caption: "Alarms",
    // What the page may offer is known a little later than the first alarms.
    key: (alarm) => `${alarm.id} ${alarm.acknowledged ?? ""} ${mayAct()}`,
    columns: [
      { title: "Severity", value: (alarm) => ORDER[alarm.severity],
        text: (_, alarm) => alarm.severity },
      { title: "Kind", value: (alarm) => alarm.kind },
      { title: "Node", value: (alarm) => alarm.node,
        link: (alarm) => address.with({ view: "node", node: alarm.node }) },
      { title: "What", value: (alarm) => alarm.text },
      { title: "Since", value: (alarm) => alarm.at_ms, text: time },
      { title: "Taken care of", value: (alarm) => alarm.acknowledged, cell: care },
    ],
  });
  const element = h("section", { class: "page alarms", "aria-label": "Alarms" },
    told, none, alarms.element);

  // An alarm of the past may have another one of its kind now.
  const mayAct = () => app.about().acts === true && !isPast;

  function care(alarm) {
    if (alarm.acknowledged !== undefined) return h("span", {}, alarm.acknowledged);
    if (!mayAct()) return h("span", {}, "–");
    const comment = h("input", {
      required: true, maxlength: "500", "aria-label": `what is done about ${alarm.id}`,
    });
    const form = h("form", { class: "line" }, comment, h("button", {}, "Acknowledge"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say(told, await app.act("/api/acknowledge", { id: alarm.id, comment: comment.value },
        `${alarm.id} is acknowledged`));
    });
    return form;
  }

  return {
    element,
    update(cluster) {
      if (element.hidden) return;
      ({ isPast } = cluster);
      const all = Object.entries(cluster.model.alarms).map(([id, alarm]) => ({ id, ...alarm }));
      none.hidden = all.length > 0;
      alarms.element.hidden = all.length === 0;
      alarms.update(all);
    },
  };
}
