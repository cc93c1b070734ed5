// SPDX-License-Identifier: Apache-2.0
// The model of the server, put together for the views: nodes with what they are in, links and
// sessions as pairs (each once, whoever has seen it), and which way a session takes.

import { each } from "../parts/task.js";

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const NO_GAP = -1;

export const pairKey = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

// In steps, each of which is short: so a page can do other things between them.
export function* clusterOf(model) {
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
  yield;
  const links = yield* linksOf(model);
  const sessions = yield* pairsOf(model.traffic);
  yield* each(sessions.values(), (session) => complete(session, model, links));
  const loads = yield* loadsOf(sessions, links, model);
  yield;
  return {
    model,
    nodes,
    groups,
    links,
    sessions,
    short,
    byName: new Map(nodes.map((node) => [node.name, node])),
    loads,
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

// Both ends tell of a link. It is up if both of those that do say so. An end whose process does not
// answer tells nothing; a link of which nobody does is unknown, which is not down.
function* linksOf(model) {
  const links = yield* pairsOf(model.links);
  yield* each(links.values(), (link) => {
    const { ab, ba } = link;
    const said = [ab, ba].filter((end) => end !== undefined && end.state !== "unknown");
    link.isUp = said.every(({ state }) => state === "up");
    link.state = said.length === 0 ? "unknown" : link.isUp ? "up" : "down";
    link.rtt_us = mean([ab?.rtt_us, ba?.rtt_us].filter((us) => us !== undefined));
    link.queued_bytes = (ab?.queued_bytes ?? 0) + (ba?.queued_bytes ?? 0);
  });
  return links;
}

// ab is what a says of it, ba what b says.
function* pairsOf(rows) {
  const pairs = new Map();
  yield* each(Object.keys(rows), (rowKey) => {
    const { key, a, b, isForward } = ends(rowKey);
    let pair = pairs.get(key);
    if (pair === undefined) {
      pair = { key, a, b, ab: undefined, ba: undefined };
      pairs.set(key, pair);
    }
    if (isForward) pair.ab = rows[rowKey];
    else pair.ba = rows[rowKey];
  });
  return pairs;
}

const KNOWN_MAX = 200000;
const known = new Map();

// The same keys come again with each model: each is taken apart once.
function ends(rowKey) {
  let found = known.get(rowKey);
  if (found === undefined) {
    const [from, to] = rowKey.split(" ");
    const isForward = from < to;
    const [a, b] = isForward ? [from, to] : [to, from];
    found = { key: `${a} ${b}`, a, b, isForward };
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(rowKey, found);
  }
  return found;
}

function complete(session, model, links) {
  const { a, b, ab, ba } = session;
  const [periodA, periodB] = [model.nodes[a]?.period_ms, model.nodes[b]?.period_ms];
  session.rate_ab = Math.max(perSecond(ab?.bytes_out, periodA), perSecond(ba?.bytes_in, periodB));
  session.rate_ba = Math.max(perSecond(ba?.bytes_out, periodB), perSecond(ab?.bytes_in, periodA));
  session.rate = session.rate_ab + session.rate_ba;
  session.queued_bytes = (ab?.queued_bytes ?? 0) + (ba?.queued_bytes ?? 0);
  session.suspended = (ab?.suspended ?? 0) + (ba?.suspended ?? 0);
  session.resumes = Math.max(ab?.resumes ?? 0, ba?.resumes ?? 0);
  session.reroutes = Math.max(ab?.reroutes ?? 0, ba?.reroutes ?? 0);
  session.state = ab !== undefined && ab.state !== "up" ? ab.state : (ba ?? ab).state;
  session.way = wayOf(session, links);
  session.isCircuit = session.way.nodes.length > 2 || session.way.gap !== NO_GAP;
}

const perSecond = (bytes, periodMs) => (periodMs > 0 ? ((bytes ?? 0) * 1000) / periodMs : 0);

// Each end knows the neighbour over which the session goes. Where these two are one, or have a
// link, the way is known as a whole; else it has a gap, after the node with that place.
function wayOf({ a, b, ab, ba }, links) {
  const [first, last] = [ab?.via, ba?.via];
  if (first === b || last === a) return { nodes: [a, b], gap: NO_GAP };
  if (first === undefined && last === undefined) return { nodes: [a, b], gap: 0 };
  const nodes = [a, ...new Set([first, last].filter((node) => node !== undefined)), b];
  const isTold = (i) => (i === 0 ? first : i === nodes.length - 2 ? last : undefined) !== undefined;
  const isLink = (i) => links.get(pairKey(nodes[i], nodes[i + 1]))?.isUp === true;
  return { nodes, gap: nodes.slice(1).findIndex((_, i) => !isTold(i) && !isLink(i)) };
}

// The nodes between the ends, with a mark where others are that are not known.
export function between({ nodes, gap }) {
  const inside = nodes.slice(1, -1);
  return gap === NO_GAP ? inside : [...inside.slice(0, gap), "…", ...inside.slice(gap)];
}

// Bytes a second that go between two neighbours, for whomever. No session tells which links are in
// the gap of its way. But nodes on both sides of such a link relay, and its lanes send more than is
// told of it: as much as the least of these sessions, or half, as nodes do not look at one time.
function* loadsOf(sessions, links, model) {
  const loads = new Map();
  const add = (key, rate) => loads.set(key, (loads.get(key) ?? 0) + rate);
  let [all, least] = [0, Infinity];
  yield* each(sessions.values(), ({ way: { nodes, gap }, rate }) => {
    if (rate === 0) return;
    for (let i = 1; i < nodes.length; i++)
      if (i - 1 !== gap) add(pairKey(nodes[i - 1], nodes[i]), rate);
    if (gap === NO_GAP) return;
    all += rate;
    least = Math.min(least, rate);
  });
  if (all === 0) return loads;
  yield* each(links.values(), (link) => {
    const told = loads.get(link.key) ?? 0;
    const more = Math.min(all, ...relayedAt(link, model), sentOver(link, model) - told);
    if (more >= least / 2) add(link.key, more);
  });
  return loads;
}

const relayedAt = ({ a, b }, { nodes }) => [nodes[a], nodes[b]].map((node) =>
  (node?.relayed_bytes === undefined ? Infinity : perSecond(node.relayed_bytes, node.period_ms)));

// With all that is around messages.
const sentOver = ({ a, b, ab, ba }, { nodes }) =>
  perSecond(sum(ab?.lanes ?? []), nodes[a]?.period_ms)
    + perSecond(sum(ba?.lanes ?? []), nodes[b]?.period_ms);

export const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);
export const mean = (numbers) =>
  numbers.length === 0 ? undefined : sum(numbers) / numbers.length;
