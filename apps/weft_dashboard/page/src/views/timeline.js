// SPDX-License-Identifier: Apache-2.0
// What happened, as the agents and the recording know it; and, if there is a recording, all views
// as they were at a time of it. Address: kinds (of events), about (a word), at (the time in
// milliseconds).

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { h, say, field } from "../parts/element.js";
import { table } from "../parts/table.js";
import { time } from "../parts/format.js";

const AGAIN_MS = 3000;
const SPAN_MS = 3600000;
// An event has the time of the sample that showed it, and is known a little later.
const LATE_MS = 60000;
const EVENTS_MAX = 5000;

const KINDS = {
  nodes: ["joined", "back", "silent", "left"],
  sessions: ["session_up", "session_down", "resumed", "rerouted"],
  links: ["link_up", "link_down", "link_flapped", "cut", "healed"],
  names: ["groups_changed", "name_conflict"],
  alarms: ["alarm_raised", "alarm_acknowledged", "alarm_cleared"],
  said: ["told"],
};

const name = ({ at_ms, kind, node, about }) => `${at_ms} ${kind} ${node} ${about}`;

// The whole hour is asked for once: with a recording that is much to read.
function merged(known, newer, nowMs) {
  const all = new Map([...known, ...newer].map((event) => [name(event), event]));
  return [...all.values()]
    .filter(({ at_ms }) => at_ms > nowMs - SPAN_MS)
    .sort((a, b) => a.at_ms - b.at_ms)
    .slice(-EVENTS_MAX);
}

export function timelineView(app) {
  let events = [];
  let nowMs = Date.now();
  let isAsking = false;
  let again;
  let span = null;
  const told = h("p", { class: "told", role: "status" });
  const find = h("input", { type: "search", autocomplete: "off" });
  const kinds = Object.keys(KINDS).map((kind) =>
    h("input", { type: "checkbox", value: kind, onchange: () => chooseKinds() }));
  const slider = h("input", { type: "range", step: "1000", "aria-label": "time of the recording" });
  const at = h("output");
  const replay = h("section", { class: "replay", "aria-label": "Recording", hidden: true },
    h("h2", {}, "Recording"),
    h("p", {}, "All views show the cluster as it was at that time."),
    h("div", { class: "line" }, slider, at,
      h("button", { type: "button", onclick: () => app.play() }, "Play from there")));
  const rows = table({
    caption: "Events of the last hour, the newest first",
    isDown: true,
    key: name,
    columns: [
      { title: "Time", value: (event) => event.at_ms, text: time,
        link: (event) => span && address.with({ at: String(event.at_ms) }) },
      { title: "What", value: (event) => event.kind, text: (kind) => kind.replaceAll("_", " ") },
      { title: "Node", value: (event) => event.node,
        link: (event) => address.with({ view: "node", node: event.node }) },
      { title: "Details", value: (event) => event.text },
    ],
  });
  const element = h("section", { class: "page", "aria-label": "Timeline" },
    replay,
    h("fieldset", { class: "fields" }, h("legend", { class: "hidden" }, "Which events"),
      kinds.map((box) => h("label", { class: "check" }, box, box.value)), field("Find", find)),
    told, rows.element);

  find.addEventListener("input", () => address.set({ about: find.value }));
  slider.addEventListener("change", () => address.set({ at: slider.value }));
  slider.addEventListener("input", () => say(at, time(Number(slider.value))));

  function chooseKinds() {
    const chosen = kinds.filter((box) => box.checked).map((box) => box.value);
    address.set({ kinds: chosen.length === kinds.length ? undefined : chosen.join() || "none" });
  }

  async function ask() {
    if (isAsking) return;
    isAsking = true;
    clearTimeout(again);
    try {
      // A node whose clock is ahead tells of events that have not come yet.
      const lastMs = Math.min(events.at(-1)?.at_ms ?? nowMs - SPAN_MS, nowMs);
      const since = lastMs - LATE_MS;
      const answer = await get("/api/events", { since: String(since) });
      events = merged(events, answer.events, nowMs);
      say(told, answer.more > 0 ? "There were so many that some are not shown." : "");
      if (app.about().recording) span = known(await get("/api/recording"));
    } catch (error) {
      say(told, error.message);
    }
    isAsking = false;
    show();
    if (!element.hidden) again = setTimeout(ask, AGAIN_MS);
  }

  const known = (answer) => (answer.to_ms === null ? null : answer);

  function show() {
    if (element.hidden) return;
    const chosen = address.get("kinds")?.split(",") ?? Object.keys(KINDS);
    kinds.forEach((box) => { box.checked = chosen.includes(box.value); });
    if (document.activeElement !== find) find.value = address.get("about") ?? "";
    const shown = new Set(chosen.flatMap((kind) => KINDS[kind] ?? []));
    rows.update(events.filter((event) => shown.has(event.kind)
      && `${event.node} ${event.text}`.includes(find.value)));
    replay.hidden = span === null;
    if (span !== null) showReplay();
  }

  function showReplay() {
    slider.min = span.from_ms;
    slider.max = span.to_ms;
    const chosen = address.get("at");
    if (document.activeElement !== slider) slider.value = chosen ?? span.to_ms;
    say(at, time(Number(slider.value)));
  }

  return {
    element,
    update({ model, isPast }) {
      // The clock of the server, not of the browser.
      if (!isPast) nowMs = model.at_ms;
      if (element.hidden) clearTimeout(again);
      else if (events.length === 0 || again === undefined) ask();
      show();
    },
    // Called when it begins to be shown.
    begin: ask,
  };
}
