// SPDX-License-Identifier: Apache-2.0
// The page: the newest model comes from the connection, the address says which view shows it. With
// `at' in the address it is a model of the recording instead.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { address } from "./data/address.js";
import { get, post, hasToken, setToken } from "./data/ask.js";
import { clusterOf } from "./data/cluster.js";
import { connect } from "./data/connection.js";
import { remember } from "./data/history.js";
import { dialogs } from "./parts/dialogs.js";
import { h, say } from "./parts/element.js";
import { time } from "./parts/format.js";
import { inSlices, nextTask } from "./parts/task.js";
import { applyTheme } from "./parts/theme.js";
import { alarmsView } from "./views/alarms.js";
import { chaosView, IN_THE_PAST } from "./views/chaos.js";
import { graphView } from "./views/graph.js";
import { matrixView } from "./views/matrix.js";
import { namesView } from "./views/names.js";
import { nodeView } from "./views/node.js";
import { replay } from "./views/replay.js";
import { storeView } from "./views/store.js";
import { timelineView } from "./views/timeline.js";

const GRAPH_MAX = 20;
// To ask all agents takes ten seconds at most.
const SILENT_MS = 20000;
// The status of what the server could not read in time.
const LATE = 504;
const TITLES = {
  graph: "Graph", matrix: "Matrix", node: "Node", names: "Names", store: "Store",
  alarms: "Alarms", timeline: "Timeline", chaos: "Chaos",
};

const byId = (id) => document.getElementById(id);
const state = {
  next: null, isTaking: false, live: null, shown: null, at: undefined, about: {},
  connection: { is: "connecting", text: "" },
  // Why the newest model can not be shown, and why a recording can not; or "".
  unreadable: "", trouble: "",
};
const ask = dialogs();
const player = replay({ onError: troubled });

const app = {
  about: () => state.about,
  confirm: ask.confirm,
  play: player.play,
  // Does it, with the token, and gives the words to show. A recording may have come on the screen
  // since somebody was asked.
  async act(path, body, done) {
    if (!hasToken() && !(await changeToken())) return "Nothing was done: this takes the token.";
    if (state.shown.isPast) return `Nothing was done. ${IN_THE_PAST}`;
    try {
      const { note } = await post(path, body);
      return note === undefined ? done : `${done}. But ${note}`;
    } catch (error) {
      return error.message;
    }
  },
};

async function changeToken() {
  const token = await ask.token();
  if (token === null) return false;
  setToken(token);
  return hasToken();
}

applyTheme();
const links = Object.fromEntries(Object.entries(TITLES).map(([name, title]) =>
  [name, h("a", { href: "#" }, title)]));
byId("views").append(...Object.values(links));
links.chaos.hidden = true;

const views = {};
for (const [name, make] of Object.entries({
  graph: graphView, matrix: matrixView, node: nodeView, names: namesView, store: storeView,
  alarms: alarmsView, timeline: timelineView, chaos: chaosView,
})) {
  await nextTask();
  views[name] = make(app);
  views[name].element.hidden = true;
  byId("main").append(views[name].element);
}

// --- which view ----------------------------------------------------------------------------------

let current = null;

function viewName() {
  const name = address.get("view");
  if (Object.hasOwn(views, name)) return name;
  return (state.shown?.nodes.length ?? 0) > GRAPH_MAX ? "matrix" : "graph";
}

// What was wrong is told until whoever looks goes on.
function changed() {
  state.trouble = "";
  byId("theme").value = address.get("theme") ?? "";
  if (address.get("at") !== state.at) {
    state.at = address.get("at");
    choose();
  }
  header();
  show();
}

function show() {
  if (state.shown === null) return;
  const name = viewName();
  const isNew = name !== current;
  current = name;
  for (const [other, view] of Object.entries(views)) view.element.hidden = other !== name;
  for (const [other, link] of Object.entries(links)) {
    link.href = address.with({ view: other });
    if (other === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `weft: ${TITLES[name]}`;
  for (const view of Object.values(views)) view.update(state.shown);
  if (isNew) views[name].begin?.();
}

// --- which model ---------------------------------------------------------------------------------

async function choose() {
  if (state.at === undefined) {
    player.shown(false);
    state.shown = state.live;
    header();
    show();
    return;
  }
  const { at } = state;
  try {
    const model = await get("/api/recording", { at });
    if (state.at !== at) return;
    const cluster = await inSlices(clusterOf(model));
    if (state.at !== at) return;
    state.shown = cluster;
    header();
    show();
    player.shown(true);
  } catch (error) {
    if (state.at !== at) return;
    const isLate = error.status === LATE;
    if (isLate && state.shown?.isPast) stay();
    else address.set({ at: undefined });
    troubled(isLate ? `to read ${time(Number(at))} took too long; try again` : error.message);
  }
}

// The picture of the recording that is shown stays, and its time is that of the address again: so
// Play asks once more for what comes after it.
function stay() {
  player.pause();
  state.at = String(state.shown.model.at_ms);
  address.set({ at: state.at });
}

function troubled(text) {
  state.trouble = text;
  header();
}

// In tasks of their own: so each is short. Of models that come meanwhile the last one counts.
function onModel(model) {
  state.next = model;
  if (!state.isTaking) take();
}

function onState(is, text) {
  state.connection = { is, text };
  showConnection();
  if (is === "live" && state.about.node === undefined) about();
}

function showConnection() {
  const { is, text } = state.connection.is === "live" && state.unreadable !== ""
    ? { is: "unreadable", text: state.unreadable } : state.connection;
  const words = {
    connecting: "connecting …", live: "live", lost: "not connected, trying again",
    unreadable: "connected, but what comes can not be read; reload the page if this stays",
  };
  document.documentElement.dataset.connection = is;
  say(byId("connection"), text === "" ? words[is] : `${words[is]}: ${text}`);
}

async function take() {
  state.isTaking = true;
  if (state.live === null) performance.mark("first-model");
  const model = state.next;
  state.next = null;
  await nextTask();
  try {
    await takeIn(model);
    state.unreadable = "";
  } catch (error) {
    // It must not keep the page from the next one.
    state.unreadable = error.message;
  }
  showConnection();
  // Of one that came meanwhile it is the turn; until then no other one begins.
  state.isTaking = state.next !== null;
  if (state.isTaking) setTimeout(take);
}

async function takeIn(model) {
  state.live = await inSlices(clusterOf(model));
  await nextTask();
  remember(state.live);
  if (state.at !== undefined) return;
  state.shown = state.live;
  header();
  await nextTask();
  show();
}

async function about() {
  try {
    state.about = await get("/api/about");
  } catch {
    return;
  }
  links.chaos.hidden = !state.about.chaos;
  byId("token").hidden = !state.about.acts;
  show();
}

// Some models may be late.
const silentMs = () => SILENT_MS + 3 * (state.about.period_ms ?? 1000);

const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

function header() {
  const cluster = state.shown ?? state.live;
  if (cluster === null) return;
  const { nodes, groups, model, isPast } = cluster;
  const silent = nodes.filter((node) => node.state !== "up").length;
  say(byId("counts"), `${many(nodes.length, "node")}${silent ? `, ${silent} silent` : ""}, `
    + many(groups.length, "group"));
  const alarms = Object.keys(model.alarms).length;
  say(links.alarms, alarms > 0 ? `Alarms (${alarms})` : "Alarms");
  links.alarms.classList.toggle("urgent", alarms > 0);
  say(byId("note"), [isPast ? `recorded ${time(model.at_ms)}` : "", state.trouble]
    .filter((text) => text !== "").join(": "));
  byId("now").hidden = !isPast;
  document.documentElement.dataset.past = isPast;
}

// --- what else is on top -------------------------------------------------------------------------

// The address keeps what is shown.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("theme").addEventListener("change", (event) => address.set({ theme: event.target.value }));
byId("now").before(player.element);
byId("now").addEventListener("click", () => address.set({ at: undefined }));
byId("token").addEventListener("click", changeToken);
document.addEventListener("settled", () => performance.mark("settled"));
address.onChange(changed);
changed();
// Not from here: browsers note which line opens a connection, and for one of these they would read
// the whole script again.
setTimeout(() => connect({ onModel, onState, silentMs }));
