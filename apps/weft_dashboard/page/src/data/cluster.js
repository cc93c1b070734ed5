// SPDX-License-Identifier: Apache-2.0
// The model of the server, put together for the views: nodes with what they are in, links and
// sessions as pairs (each once, whoever has seen it), and which way a session takes.

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export const pairKey = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

export function clusterOf(model) {
  const names = Object.keys(model.nodes).sort(byText);
  const groups = groupsOf(model);
  const groupsByNode = new Map(names.map((name) => [name, []]));
  for (const group of groups)
    for (const member of group.members) groupsByNode.get(member)?.push(group.name);
  const short = shortNames(names);
  const alarmed = alarmedOf(model);
  const nodes = names.map((name) => ({
    ...model.nodes[name],
    name,
    short: short(name),
    groups: groupsByNode.get(name).length ? groupsByNode.get(name) : model.nodes[name].groups,
    alarms: alarmed.get(name) ?? [],
  }));
  const links = linksOf(model);
  const sessions = sessionsOf(model, links);
  return {
    model,
    nodes,
    groups,
    links,
    sessions,
    short,
    byName: new Map(nodes.map((node) => [node.name, node])),
    loads: loadsOf(sessions),
    isPast: model.source === "recording",
  };
}

function groupsOf(model) {
  return Object.entries(model.groups)
    .map(([name, group]) => ({ name, members: group.members, gateways: group.gateways }))
    .sort((a, b) => byText(a.name, b.name));
}

// Without the host if all have the same one.
function shortNames(names) {
  const host = (name) => name.slice(name.indexOf("@"));
  const isOne = new Set(names.map(host)).size === 1;
  return (name) => (isOne ? name.split("@")[0] : name);
}

function alarmedOf(model) {
  const alarmed = new Map();
  for (const [id, alarm] of Object.entries(model.alarms)) {
    const known = alarmed.get(alarm.node) ?? [];
    alarmed.set(alarm.node, [...known, { id, ...alarm }]);
  }
  return alarmed;
}

// Both ends tell of a link. It is up if both of those that do say so.
function linksOf(model) {
  const links = new Map();
  for (const [key, row] of Object.entries(model.links)) {
    const [from, to] = key.split(" ");
    const pair = pairKey(from, to);
    const link = links.get(pair) ?? newPair(from, to);
    link.rows[from] = row;
    links.set(pair, link);
  }
  for (const link of links.values()) {
    const rows = Object.values(link.rows);
    link.isUp = rows.every((row) => row.state === "up");
    link.rtt_us = mean(rows.map((row) => row.rtt_us).filter((us) => us !== undefined));
    link.queued_bytes = sum(rows.map((row) => row.queued_bytes));
  }
  return links;
}

const newPair = (from, to) => {
  const [a, b] = from < to ? [from, to] : [to, from];
  return { a, b, rows: {} };
};

function sessionsOf(model, links) {
  const sessions = new Map();
  for (const [key, row] of Object.entries(model.traffic)) {
    const [from, to] = key.split(" ");
    const pair = pairKey(from, to);
    const session = sessions.get(pair) ?? newPair(from, to);
    session.rows[from] = row;
    sessions.set(pair, session);
  }
  for (const session of sessions.values()) complete(session, model, links);
  return sessions;
}

function complete(session, model, links) {
  const { a, b, rows } = session;
  const rate = (node, key) => perSecond(rows[node]?.[key], model.nodes[node]?.period_ms);
  session.rate_ab = Math.max(rate(a, "bytes_out"), rate(b, "bytes_in"));
  session.rate_ba = Math.max(rate(b, "bytes_out"), rate(a, "bytes_in"));
  session.rate = session.rate_ab + session.rate_ba;
  const seen = Object.values(rows);
  session.queued_bytes = sum(seen.map((row) => row.queued_bytes));
  session.suspended = sum(seen.map((row) => row.suspended));
  session.resumes = Math.max(0, ...seen.map((row) => row.resumes));
  session.isUp = seen.every((row) => row.state === "up");
  session.state = seen.find((row) => row.state !== "up")?.state ?? "up";
  session.way = wayOf(session, links);
  session.isCircuit = session.way.nodes.length > 2 || !session.way.isWhole;
}

const perSecond = (bytes, periodMs) => (periodMs > 0 ? ((bytes ?? 0) * 1000) / periodMs : 0);

// Each end knows the neighbour over which the session goes. Where these two are one, or have a
// link, the way is known as a whole; else there is something between them that is not.
function wayOf({ a, b, rows }, links) {
  const first = rows[a]?.via;
  const last = rows[b]?.via;
  const isLink = (x, y) => links.get(pairKey(x, y))?.isUp === true;
  if (first === b || last === a) return { nodes: [a, b], isWhole: true };
  if (first === undefined && last === undefined) return { nodes: [a, b], isWhole: false };
  const left = first ?? last;
  const right = last ?? (isLink(left, b) ? left : undefined);
  if (right === undefined) return { nodes: [a, left, b], isWhole: false };
  if (left === right) return { nodes: [a, left, b], isWhole: true };
  return { nodes: [a, left, right, b], isWhole: isLink(left, right) };
}

// Bytes a second that go between two neighbours, for whomever.
function loadsOf(sessions) {
  const loads = new Map();
  for (const { way, rate } of sessions.values()) {
    if (rate === 0) continue;
    for (let i = 1; i < way.nodes.length; i++) {
      const key = pairKey(way.nodes[i - 1], way.nodes[i]);
      loads.set(key, (loads.get(key) ?? 0) + rate);
    }
  }
  return loads;
}

export const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);
export const mean = (numbers) =>
  numbers.length === 0 ? undefined : sum(numbers) / numbers.length;
