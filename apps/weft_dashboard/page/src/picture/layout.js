// SPDX-License-Identifier: Apache-2.0
// Places for the bodies of a scene, by d3-force. The same scene gives the same places: all starts
// are computed from the order of names, and the forces use no chance but d3's own, which is seeded.
//
// First groups and free nodes find their places as discs; then each node finds its own in the disc
// of its group, and a gateway between those of its groups. It works in slices, so that the page
// can be used meanwhile.

import {
  forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY,
} from "d3-force";
import { nextTask } from "../parts/task.js";
import { tiesOf } from "./scene.js";

const SLICE_MS = 10;
const RING_MAX = 12;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

// Gives a Map of id to { x, y }, or null if isOver() says that nobody waits for it any more.
export async function placesOf(scene, isOver) {
  await nextTask();
  const discs = discsOf(scene);
  if (!(await run(discSimulation(scene, discs), discs.all.length > 300 ? 90 : 160, isOver)))
    return null;
  const points = scene.bodies.map((body) => ({ id: body.id, r: body.r }));
  aim(scene, discs, points);
  const apart = forceSimulation(points)
    .stop()
    .force("x", forceX((point) => point.aimX).strength(0.25))
    .force("y", forceY((point) => point.aimY).strength(0.25))
    .force("collide", forceCollide((point) => point.r + scene.size.gap * 0.28).iterations(2));
  if (!(await run(apart, 50, isOver))) return null;
  return new Map(points.map(({ id, x, y }) => [id, { x, y }]));
}

async function run(simulation, ticks, isOver) {
  let begin = performance.now();
  for (let i = 0; i < ticks; i++) {
    simulation.alpha(1 - i / ticks).tick();
    if (performance.now() - begin > SLICE_MS) {
      await nextTask();
      if (isOver()) return false;
      begin = performance.now();
    }
  }
  return true;
}

// --- discs -------------------------------------------------------------------------------------

function discsOf(scene) {
  const groups = scene.cluster.groups.map((group, place) => ({ place, members: [] }));
  const free = [];
  for (const body of scene.bodies) {
    if (body.places.length === 1) groups[body.places[0]].members.push(body);
    if (body.places.length === 0) free.push({ body, r: scene.size.gap / 2 });
  }
  for (const group of groups) group.r = radius(group.members, scene.size.gap);
  const all = [...groups, ...free];
  const around = Math.max(120, all.reduce((r, disc) => r + disc.r, 0) / Math.PI);
  all.forEach((disc, i) => {
    const angle = (2 * Math.PI * i) / all.length - Math.PI / 2;
    disc.x = around * Math.cos(angle);
    disc.y = around * Math.sin(angle);
  });
  return { groups, free, all };
}

function radius(members, gap) {
  if (members.length === 1) return Math.max(gap / 2, members[0].r);
  if (members.length <= RING_MAX) return Math.max(gap * 0.7, (members.length * gap) / 6);
  return gap * 0.62 * Math.sqrt(members.length);
}

function discSimulation(scene, { groups, free, all }) {
  const discOf = new Map(free.map((disc) => [disc.body.id, disc]));
  const links = new Map();
  const tie = (source, target) => {
    if (source === target) return;
    const key = `${all.indexOf(source)} ${all.indexOf(target)}`;
    links.set(key, { source, target });
  };
  for (const body of scene.bodies)
    for (let i = 1; i < body.places.length; i++)
      tie(groups[body.places[i - 1]], groups[body.places[i]]);
  const ofBody = (body) => discOf.get(body.id) ?? groups[body.places[0]];
  for (const { source, target } of tiesOf(scene)) tie(ofBody(source), ofBody(target));
  const between = scene.size.gap * 2.3;
  return forceSimulation(all)
    .stop()
    .force("link", forceLink([...links.values()])
      .distance(({ source, target }) =>
        source.r + target.r + (source.body && target.body ? scene.size.gap * 0.4 : between))
      .strength(0.5))
    .force("charge", forceManyBody().strength((disc) => -8 * disc.r))
    .force("x", forceX().strength(0.04))
    .force("y", forceY().strength(0.06))
    .force("collide", forceCollide((disc) => disc.r + (disc.body ? 4 : between * 0.4)));
}

// --- nodes -------------------------------------------------------------------------------------

function aim(scene, { groups, free }, points) {
  const target = new Map();
  for (const group of groups) ring(group, scene.size.gap, target);
  for (const { body, x, y } of free) target.set(body.id, { x, y });
  const between = new Map();
  for (const body of scene.bodies) {
    if (body.places.length < 2) continue;
    const key = body.places.join();
    between.set(key, [...(between.get(key) ?? []), body]);
  }
  for (const bodies of between.values()) row(bodies, groups, scene.size.gap, target);
  for (const point of points) {
    const { x, y } = target.get(point.id);
    Object.assign(point, { x, y, aimX: x, aimY: y });
  }
}

function ring(group, gap, target) {
  const { members, x, y, r } = group;
  members.forEach((body, i) => {
    const isRing = members.length <= RING_MAX;
    const far = members.length === 1 ? 0 : isRing ? r : gap * 0.56 * Math.sqrt(i + 0.5);
    const angle = isRing ? (2 * Math.PI * i) / members.length - Math.PI / 2 : i * GOLDEN;
    target.set(body.id, { x: x + far * Math.cos(angle), y: y + far * Math.sin(angle) });
  });
}

// Gateways of the same groups stand in a row across the way between these, in its middle: where
// the discs end, not between their centres.
function row(bodies, groups, gap, target) {
  const discs = bodies[0].places.map((place) => groups[place]);
  const [first, last] = [discs[0], discs.at(-1)];
  const far = Math.hypot(last.x - first.x, last.y - first.y) || 1;
  const across = { x: -(last.y - first.y) / far, y: (last.x - first.x) / far };
  const part = (far + first.r - last.r) / 2 / far;
  const middle = discs.length === 2
    ? { x: first.x + (last.x - first.x) * part, y: first.y + (last.y - first.y) * part }
    : { x: mean(discs, "x"), y: mean(discs, "y") };
  bodies.forEach((body, i) => {
    const off = (i - (bodies.length - 1) / 2) * gap * 0.8;
    target.set(body.id, { x: middle.x + across.x * off, y: middle.y + across.y * off });
  });
}

const mean = (discs, key) => discs.reduce((all, disc) => all + disc[key], 0) / discs.length;
