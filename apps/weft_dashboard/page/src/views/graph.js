// SPDX-License-Identifier: Apache-2.0
// The graph. A node that is pressed is chosen; a second one asks for the path between the two.
// Address: from, to (chosen nodes), open ("all", "none" or names of groups that are not collapsed),
// seek (nodes that are marked), hide (those that are left out), without ("circuits", "idle" links).

import { address } from "../data/address.js";
import { h, options } from "../parts/element.js";
import { onTheme, isDark, groupColour } from "../parts/theme.js";
import { stage } from "../picture/stage.js";
import { sceneOf } from "../picture/scene.js";
import { graphTables } from "./graph_tables.js";
import { filterPanel } from "./graph_filter.js";
import { pathPanel } from "./path_panel.js";
import { nodePanel } from "./node_panel.js";

const OPEN_MAX = 200;
const CHIPS_MAX = 24;
const TABLES_OPEN_MAX = 50;

// The address may have been written by hand.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function graphView(app) {
  let cluster = null;
  const path = pathPanel({ onWay: () => show() });
  const filter = filterPanel({ onFind: (name) => choosing(name, undefined) });
  const chosenNode = nodePanel(app, {
    text: "Hide it",
    act(name) {
      filter.hide(name);
      choosing(undefined, undefined);
    },
  });
  const tables = graphTables();
  const picture = stage({ onChoose: choose, onEscape: () => choosing(undefined, undefined) });
  const names = h("datalist", { id: "node-names" });
  const groups = h("div", { class: "groups" });
  const inTables = h("details", { class: "tables" }, h("summary", {}, "As tables"), tables.element);
  let hasOpened = false;

  inTables.addEventListener("toggle", () => cluster && inTables.open && tables.update(cluster));
  onTheme(() => {
    picture.redraw();
    show();
  });

  const button = (text, label, act) =>
    h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const element = h("section", { class: "with-aside", "aria-label": "Graph" },
    h("div", { class: "stage" },
      picture.below,
      picture.canvas,
      h("div", { class: "tools" },
        button("+", "zoom in", () => picture.zoomBy(1.3)),
        button("−", "zoom out", () => picture.zoomBy(1 / 1.3)),
        button("⤢", "show all", () => picture.fit()))
    ),
    h("aside", {},
      names,
      filter.element,
      groups,
      chosenNode.element,
      path.element,
      legend(),
      inTables));

  function choose(body) {
    if (body.group) {
      toggle(body.group.name);
      return;
    }
    const { name } = body.node;
    const [from, to] = [address.get("from"), address.get("to")];
    if (from !== undefined && to === undefined && from !== name) choosing(from, name);
    else choosing(name, undefined);
  }

  function choosing(from, to) {
    address.set({ from, to }, { isStep: true });
  }

  // --- groups that are collapsed ---------------------------------------------------------------

  function isCollapsed(name) {
    const open = address.get("open") ?? (cluster.nodes.length > OPEN_MAX ? "none" : "all");
    return open !== "all" && !open.split(",").map(decoded).includes(name);
  }

  function toggle(name) {
    const open = cluster.groups.map((group) => group.name)
      .filter((other) => isCollapsed(other) === (other === name));
    const all = open.length === cluster.groups.length;
    address.set({ open: all ? "all" : open.map(encodeURIComponent).join() || "none" });
  }

  // A button for each group, as far as they are few, which are the legend of colours as well.
  function showGroups() {
    const states = cluster.groups.map(({ name }) => [name, isCollapsed(name)]);
    const key = JSON.stringify([states, isDark()]);
    if (groups.dataset.key === key) return;
    groups.dataset.key = key;
    const chips = states.length > CHIPS_MAX ? [] : states.map(([name, isClosed], place) => {
      const mark = h("span", { class: "dot", "aria-hidden": "true" });
      mark.style.background = groupColour(place);
      return h("button", {
        type: "button", class: "chip", "aria-pressed": String(!isClosed), "data-group": name,
        title: `${isClosed ? "open" : "collapse"} the group ${name}`, onclick: () => toggle(name),
      }, mark, name);
    });
    const focused = document.activeElement?.dataset?.group;
    groups.replaceChildren(...(states.length === 0 ? [] : [
      ...chips,
      button("Open all", "open all groups", () => address.set({ open: "all" })),
      button("Collapse all", "collapse all groups", () => address.set({ open: "none" })),
    ]));
    if (focused !== undefined)
      [...groups.children].find((chip) => chip.dataset.group === focused)?.focus();
  }

  // --- showing ---------------------------------------------------------------------------------

  function show() {
    if (cluster === null) return;
    if (element.hidden) {
      path.stop();
      return;
    }
    const scene = sceneOf(cluster, { isCollapsed, ...filter.update(cluster) });
    const [from, to] = [address.get("from"), address.get("to")];
    path.update(cluster, from, to);
    chosenNode.update(cluster, to === undefined ? from : undefined);
    const chosen = [from, to].map((name) => name && scene.bodyOf.get(name)).filter(Boolean);
    picture.show(scene, { chosen, way: path.way() });
    showGroups();
    options(names, cluster.nodes.map(({ name }) => name));
    if (!hasOpened) inTables.open = cluster.nodes.length <= TABLES_OPEN_MAX;
    hasOpened = true;
    if (inTables.open) tables.update(cluster);
    if (document.activeElement !== picture.canvas)
      picture.canvas.setAttribute("aria-label", `graph of ${cluster.nodes.length} nodes in `
        + `${cluster.groups.length} groups`);
  }

  return {
    element,
    update(newCluster) {
      cluster = newCluster;
      show();
    },
  };
}

function legend() {
  const mark = (name) => h("span", { class: `mark ${name}`, "aria-hidden": "true" });
  return h("details", { class: "legend" },
    h("summary", {}, "What is what"),
    h("ul", {},
      h("li", {}, mark("idle"), "a link, idle"),
      h("li", {}, mark("busy"), "a link; the wider, the more bytes a second (logarithmic)"),
      h("li", {}, mark("circuit"), "a circuit, through its gateways"),
      h("li", {}, mark("down"), "a link that is down"),
      h("li", {}, "A node in two groups has the colours of both. One that does not report is "
        + "hollow and crossed out; “!” is an alarm.")),
    h("p", { id: "graph-keys" },
      "Keys: arrows go from node to node, Enter chooses, Enter on a second node shows the path, "
      + "Escape ends it, + and − zoom, 0 shows all."));
}
