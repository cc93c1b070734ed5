// SPDX-License-Identifier: Apache-2.0
// One node: its figures, charts of the last minutes, and a closer look that the server takes again
// and again while this is shown. Of the past there are the figures only. Address: node, migrations
// ("yes": they are counted), why (a node).

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { columns } from "../data/history.js";
import { storeFigures } from "../data/stores.js";
import { h, say, field, options } from "../parts/element.js";
import { table } from "../parts/table.js";
import { bytes, count, percent, rate, time } from "../parts/format.js";
import { nextTask } from "../parts/task.js";
import { colour, onTheme } from "../parts/theme.js";
import { figures, fillFigures } from "./node_panel.js";
import { processTable, linkTable, sessionTable } from "./node_tables.js";

// Comes when a node is first shown: it begins by making formats of numbers and dates, which takes
// longer than all else that the page does when it is opened.
let uPlot = null;

const AGAIN_MS = 3000;
const SPAN_S = 30;

const CHARTS = [
  { title: "Bytes a second", keys: ["bytes_out", "bytes_in"], names: ["out", "in"], text: rate },
  { title: "Memory", keys: ["memory_bytes"], names: ["memory"], text: bytes },
  { title: "Processes that wait for a scheduler", keys: ["run_queue"], names: ["run queue"],
    text: count },
];

export function nodeView() {
  let cluster = null;
  let name;
  let looked = "";
  // Answers to what was asked in another turn come too late.
  let turn = 0;
  let again;
  const choice = h("select", { id: "node-choice" });
  const title = h("h2");
  const list = h("dl", { class: "figures" });
  const told = h("p", { class: "told", role: "status" });
  const charts = CHARTS.map(chart);
  const schedulers = h("ul", { class: "schedulers" });
  const why = h("ul", { class: "why" });
  const store = h("dl", { class: "figures" });
  const ofStore = h("section", { "aria-label": "Ring and store" }, h("h3", {}, "Ring and store"),
    store);
  let storeBefore;
  const peer = h("select");
  const reasons = h("ul", { class: "why", "aria-label": "why" });
  const migrations = h("input", { type: "checkbox" });
  const parts = { processes: processTable(), links: linkTable(), sessions: sessionTable() };
  const closer = h("div", { hidden: true },
    h("h3", {}, "Schedulers at work"), schedulers, why, ofStore,
    h("div", { class: "fields" }, field("Why is it connected, or not, with", peer),
      h("label", { class: "check" }, migrations, "Count how often processes change schedulers "
        + "(traces the busiest 20 for a twentieth of a second)")),
    reasons,
    Object.values(parts).map(({ element }) => element));
  const inCharts = h("div", { class: "charts" }, charts.map((one) => one.element));
  const element = h("section", { class: "page", "aria-label": "Node" },
    field("Node", choice), title, list, inCharts, told, closer);

  choice.addEventListener("change", () =>
    address.set({ node: choice.value }, { isStep: true }));

  peer.addEventListener("change", () => address.set({ why: peer.value }));
  migrations.addEventListener("change", () =>
    address.set({ migrations: migrations.checked ? "yes" : undefined }));

  function show() {
    if (cluster === null) return;
    if (element.hidden) {
      stop();
      return;
    }
    options(choice, cluster.nodes.map((node) => node.name));
    name = address.get("node") ?? cluster.nodes[0]?.name;
    const node = cluster.byName.get(name);
    if (node) choice.value = name;
    const others = cluster.nodes.map((other) => other.name).filter((other) => other !== name);
    options(peer, ["", ...others], ["choose a node", ...others]);
    peer.value = others.includes(address.get("why")) ? address.get("why") : "";
    migrations.checked = address.get("migrations") === "yes";
    say(title, name ?? "");
    fillFigures(list, node ? figures(node) : [["State", "there is no such node now"]]);
    // They have what came since the page was opened, nothing of a recording.
    inCharts.hidden = cluster.isPast;
    if (!cluster.isPast) charts.forEach((one) => one.update(name));
    const key = node && node.state === "up" && !cluster.isPast
      ? [name, peer.value, address.get("migrations") ?? "no"].join(" ") : "";
    if (key === looked) return;
    if (key !== "" && looked.split(" ")[0] === name) clearTimeout(again);
    else stop();
    looked = key;
    turn += 1;
    if (key !== "") look(turn, key);
  }

  function stop() {
    clearTimeout(again);
    looked = "";
    turn += 1;
    storeBefore = undefined;
    closer.hidden = true;
    say(told, "");
  }

  async function look(mine, key) {
    const [node, other, migrating] = key.split(" ");
    let answer = null;
    try {
      answer = await get("/api/node", { name: node, migrations: migrating });
      const stores = await get("/api/stores", { node });
      if (mine === turn) showStore(stores);
      const { text } = other ? await get("/api/why", { from: node, to: other }) : { text: [] };
      if (mine === turn) {
        say(told, "");
        if (reasons.innerText !== text.join("\n"))
          reasons.replaceChildren(...text.map((line) => h("li", {}, line)));
      }
    } catch (error) {
      if (mine === turn) say(told, error.message);
    }
    if (mine !== turn) return;
    if (answer !== null) showCloser(answer);
    again = setTimeout(() => look(mine, key), AGAIN_MS);
  }

  function showStore({ at_ms: atMs, nodes: [row] }) {
    ofStore.hidden = row === undefined;
    if (row !== undefined) fillFigures(store, storeFigures(row.has, storeBefore, atMs));
    storeBefore = row && { has: row.has, at_ms: atMs };
  }

  function showCloser(answer) {
    closer.hidden = false;
    const shown = answer.schedulers.slice(0, answer.schedulers_online);
    while (schedulers.children.length > shown.length) schedulers.lastChild.remove();
    shown.forEach((part, i) => bar(schedulers, i, part, answer.run_queues[i]));
    why.replaceChildren(...answer.why.map(({ node, text }) =>
      h("li", {}, `Why ${node} can not be reached: ${text.join(" ")}`)));
    parts.processes.update(answer.processes);
    parts.links.update(answer.links);
    parts.sessions.update(answer.sessions);
  }

  return {
    element,
    update(newCluster) {
      cluster = newCluster;
      show();
    },
    // Called when it begins to be shown.
    async begin() {
      await nextTask();
      ({ default: uPlot } = await import("uplot"));
      show();
    },
  };
}

function bar(list, i, part, queue) {
  const item = list.children[i] ?? list.appendChild(h("li", {}, h("meter", {
    min: "0", max: "1", "aria-label": `scheduler ${i + 1}`,
  }), h("span")));
  item.firstChild.value = part;
  say(item.lastChild, `${i + 1}: ${percent(part)}, ${queue ?? 0} wait`);
}

// --- charts --------------------------------------------------------------------------------------

function chart({ title, keys, names, text }) {
  const place = h("div", { class: "chart", role: "img" });
  const last = h("table", {}, h("caption", { class: "hidden" }, title),
    h("thead", {}, h("tr", {}, ["", "now", "least", "most"].map((head) =>
      h("th", { scope: "col" }, head || h("span", { class: "hidden" }, "what"))))),
    h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
      h("td"), h("td"), h("td")))));
  const element = h("figure", {}, h("figcaption", {}, title), place, last);
  let plot = null;
  onTheme(() => {
    plot?.destroy();
    plot = null;
  });

  function make(data) {
    const line = { stroke: colour("text"), grid: { stroke: colour("line"), width: 1 } };
    plot = new uPlot({
      width: place.clientWidth || 320, height: 130, legend: { show: false },
      cursor: { show: false },
      // By the samples themselves: for one alone uPlot would take a span of years.
      scales: {
        x: { range: ({ data: [times] }) => span(times) },
        y: { range: (_, min, max) => [Math.min(0, min), Math.max(1, max * 1.1)] },
      },
      axes: [
        { ...line, space: 70, values: (_, ticks) => ticks.map((tick) => time(tick * 1000)) },
        { ...line, size: 70, values: (_, ticks) => ticks.map((tick) => text(tick)) },
      ],
      series: [{}, ...names.map((label, i) => ({
        label, stroke: colour(i === 0 ? "busy" : "circuit"), width: 2,
        dash: i === 0 ? undefined : [6, 4], points: { show: false },
      }))],
    }, data, place);
  }

  return {
    element,
    update(node) {
      const data = columns(node, keys);
      if (plot === null && uPlot !== null) make(data);
      else if (plot !== null) {
        if (place.clientWidth > 0 && plot.width !== place.clientWidth)
          plot.setSize({ width: place.clientWidth, height: 130 });
        plot.setData(data);
      }
      keys.forEach((_, i) => {
        const values = data[i + 1];
        const cells = last.tBodies[0].rows[i].cells;
        const of = [values.at(-1), Math.min(...values), Math.max(...values)];
        of.forEach((value, j) => say(cells[j + 1], values.length ? text(value) : "–"));
      });
      place.setAttribute("aria-label", `chart of ${title}, its figures are in the table below`);
    },
  };
}

function span(times) {
  const last = times.at(-1) ?? SPAN_S;
  return [Math.min(times[0] ?? last, last - SPAN_S), last];
}
