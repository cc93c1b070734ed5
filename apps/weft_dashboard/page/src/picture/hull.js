// SPDX-License-Identifier: Apache-2.0
// The outline of a group: the convex hull of discs around its members.

const CORNERS = 16;

export function hullOf(discs) {
  const points = [];
  for (const { x, y, r } of discs)
    for (let i = 0; i < CORNERS; i++) {
      const angle = (2 * Math.PI * i) / CORNERS;
      points.push([x + r * Math.cos(angle), y + r * Math.sin(angle)]);
    }
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return [...half(points), ...half(points.reverse())];
}

// The lower half of the hull from the left to the right (Andrew's monotone chain).
function half(points) {
  const chain = [];
  for (const point of points) {
    while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
    chain.push(point);
  }
  chain.pop();
  return chain;
}

const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
