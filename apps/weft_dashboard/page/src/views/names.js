// SPDX-License-Identifier: Apache-2.0
// Groups, and the scopes of names with their names, as a node of the choice knows them. Of the past
// only groups are known. Address: of (the node), find.

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { h, say, field, options } from "../parts/element.js";
import { table } from "../parts/table.js";
import { count } from "../parts/format.js";

export function namesView() {
  let cluster = null;
  let asked;
  let answer = null;
  const of = h("select");
  const find = h("input", { type: "search", autocomplete: "off" });
  const again = h("button", { type: "button", onclick: () => ask(of.value) }, "Ask again");
  const told = h("p", { class: "told", role: "status" });
  const groups = table({
    caption: "Groups",
    key: (row) => row.name,
    columns: [
      { title: "Group", value: (row) => row.name },
      { title: "Nodes", value: (row) => row.members.length, isNumber: true },
      { title: "Members", value: (row) => row.members.join(", ") },
    ],
  });
  const scopes = table({
    caption: "Scopes",
    key: (row) => row.scope,
    columns: [
      { title: "Scope", value: (row) => row.scope },
      { title: "Kind", value: (row) => row.kind },
      { title: "Names", value: (row) => row.count, text: count, isNumber: true },
    ],
  });
  const names = table({
    caption: "Names",
    key: (row) => `${row.scope} ${row.name}`,
    columns: [
      { title: "Name", value: (row) => row.name },
      { title: "Scope", value: (row) => row.scope },
      { title: "Node", value: (row) => row.node ?? "",
        text: (node) => node || "only its replicas know",
        link: (row) => row.node && address.with({ view: "node", node: row.node }) },
    ],
  });
  const ofNow = h("div", {}, scopes.element, names.element);
  const element = h("section", { class: "page", "aria-label": "Names and groups" },
    h("div", { class: "fields" }, field("As known by", of), field("Find", find), again),
    told, groups.element, ofNow);

  of.addEventListener("change", () => address.set({ of: of.value }));
  find.addEventListener("input", () => address.set({ find: find.value }));

  async function ask(node) {
    asked = node;
    say(told, "asking …");
    try {
      const got = await get("/api/names", node ? { node } : {});
      if (asked !== node) return;
      answer = got;
      say(told, `${got.node} knows ${count(got.count)} names`
        + (got.more > 0 ? `; ${count(got.more)} of them are not shown` : ""));
    } catch (error) {
      if (asked === node) say(told, error.message);
    }
    show();
  }

  function show() {
    if (cluster === null || element.hidden) return;
    options(of, cluster.nodes.filter(({ state }) => state === "up").map(({ name }) => name));
    const node = address.get("of") ?? cluster.model.node;
    if (cluster.byName.has(node)) of.value = node;
    if (document.activeElement !== find) find.value = address.get("find") ?? "";
    of.disabled = again.disabled = ofNow.hidden = cluster.isPast;
    if (cluster.isPast) {
      asked = undefined;
      answer = null;
      say(told, "Recordings have nothing of names.");
    } else if (asked !== of.value) ask(of.value);
    const { groups: allGroups, scopes: allScopes } = answer
      ?? { groups: cluster.isPast ? cluster.groups : [], scopes: [] };
    const has = (text) => text.includes(find.value);
    groups.update(allGroups.filter((row) => has(row.name)));
    scopes.update(allScopes);
    names.update(allScopes.flatMap(({ scope, names: some }) =>
      some.filter((row) => has(row.name)).map((row) => ({ ...row, scope }))));
  }

  return {
    element,
    update(newCluster) {
      cluster = newCluster;
      show();
    },
  };
}
