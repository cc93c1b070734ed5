// SPDX-License-Identifier: Apache-2.0
// What the graph shows, as tables: groups, nodes, links, sessions.

import { address } from "../data/address.js";
import { between } from "../data/cluster.js";
import { h } from "../parts/element.js";
import { table } from "../parts/table.js";
import { bytes, micros, rate } from "../parts/format.js";

export function graphTables() {
  const groups = table({
    caption: "Groups",
    key: (group) => group.name,
    columns: [
      { title: "Group", value: (group) => group.name },
      { title: "Nodes", value: (group) => group.members.length, isNumber: true },
      { title: "Gateways", value: (group) => group.gateways.join(", ") },
    ],
  });
  const nodes = table({
    caption: "Nodes",
    key: (node) => node.name,
    columns: [
      { title: "Node", value: (node) => node.name,
        link: (node) => address.with({ view: "node", node: node.name }) },
      { title: "State", value: (node) => node.state },
      { title: "Groups", value: (node) => node.groups.join(", ") },
    ],
  });
  const links = table({
    caption: "Links",
    key: (link) => `${link.a} ${link.b}`,
    columns: [
      { title: "Link", value: (link) => `${link.a} ${link.b}`, text: pair },
      { title: "State", value: (link) => link.state },
      { title: "Round trip", value: (link) => link.rtt_us, text: micros, isNumber: true },
      { title: "Queue", value: (link) => link.queued_bytes, text: bytes, isNumber: true },
    ],
  });
  const sessions = table({
    caption: "Sessions",
    sortBy: 1,
    isDown: true,
    key: (session) => `${session.a} ${session.b}`,
    columns: [
      { title: "Session", value: (session) => `${session.a} ${session.b}`, text: pair },
      { title: "Traffic", value: (session) => session.rate, text: rate, isNumber: true },
      { title: "By way of", value: (session) => between(session.way).join(", "),
        text: (text) => text || "direct" },
      { title: "State", value: (session) => session.state },
    ],
  });
  const all = [groups, nodes, links, sessions];
  return {
    element: h("div", {}, all.map(({ element }) => element)),
    update(cluster) {
      groups.update(cluster.groups);
      nodes.update(cluster.nodes);
      links.update([...cluster.links.values()]);
      sessions.update([...cluster.sessions.values()]);
    },
  };
}

const pair = (text) => text.replace(" ", " – ");
