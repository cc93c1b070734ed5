// SPDX-License-Identifier: Apache-2.0
// The outlines of groups, and where their names stand. They depend on nothing but the groups and
// places of the bodies, so they are worked out only when these are others.

import { hullOf } from "./hull.js";

// For each group { hull, name: { at, align, baseline } }, or null if none of it is in the scene. A
// collapsed one has its name in its box. Whoever changes places or groups forgets see.outlines.
export function outlinesOf(see) {
  see.outlines ??= outlines(see);
  return see.outlines;
}

function outlines({ scene, at }) {
  const members = scene.cluster.groups.map(() => []);
  for (const body of scene.bodies) for (const place of body.places) members[place].push(body);
  const pad = scene.size.gap * 0.38;
  const all = members.map((bodies) => (bodies.length === 0 ? null : {
    hull: hullOf(bodies.map((body) => ({ ...at(body), r: body.r + pad }))),
    isOpen: bodies.every(({ node }) => node),
  }));
  const open = all.filter((one) => one?.isOpen).map(({ hull }) => hull);
  return all.map((one) => one && {
    hull: one.hull, name: one.isOpen ? nameAt(one.hull, open) : null,
  });
}

// Where a name may be: at the highest, lowest, rightmost or leftmost point of the outline. The room
// beside it counts less, as names are wide.
const SIDES = [
  { far: ([, y]) => -y, align: "center", baseline: "bottom", off: [0, -4], weight: 1 },
  { far: ([, y]) => y, align: "center", baseline: "top", off: [0, 5], weight: 1 },
  { far: ([x]) => x, align: "left", baseline: "middle", off: [6, 0], weight: 0.6 },
  { far: ([x]) => -x, align: "right", baseline: "middle", off: [-6, 0], weight: 0.6 },
];

// Wherever the outlines of other groups are farthest away.
function nameAt(hull, hulls) {
  const others = hulls.filter((other) => other !== hull).flat();
  const room = ([x, y]) =>
    others.reduce((least, [a, b]) => Math.min(least, Math.hypot(x - a, y - b)), Infinity);
  const places = SIDES.map(({ far, align, baseline, off, weight }) => {
    const point = hull.reduce((best, other) => (far(other) > far(best) ? other : best));
    return { at: [point[0] + off[0], point[1] + off[1]], align, baseline,
      room: room(point) * weight };
  });
  return places.reduce((best, other) => (other.room > best.room ? other : best));
}
