// SPDX-License-Identifier: Apache-2.0
// Draws a scene with its places on canvases, one above the other: outlines of groups and idle links;
// links as wide as what goes over them; circuits as dashed curves through their gateways, and the
// chosen path; nodes and labels. What is drawn on one is as much as a frame may take.

import { colour, groupColour } from "../parts/theme.js";
import { edgesOf, circuitsOf } from "./scene.js";
import { outlinesOf } from "./outlines.js";

const CIRCUITS_MAX = 150;

// From the lowest one to the highest one. Each takes see: { scene, places (a Map of id to { x, y }),
// at (body -> { x, y }), transform, width, height, chosen, focused, way, outlines }.
export const layers = [
  (context, see) => {
    begin(context, see);
    outlines(context, see);
    links(context, see, idleLinks);
  },
  (context, see) => {
    begin(context, see);
    links(context, see, busyLinks);
    brokenLinks(context, see);
  },
  (context, see) => {
    begin(context, see);
    circuits(context, see);
    way(context, see);
  },
  (context, see) => {
    begin(context, see);
    bodies(context, see);
  },
];

// What of it can be worked out before, so that the frames are short: in steps.
export function* prepare(see) {
  yield edgesOf(see.scene);
  yield shownCircuits(see);
  yield outlinesOf(see);
}

function begin(context, { transform, width, height, ratio }) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.translate(transform.x, transform.y);
  context.scale(transform.k, transform.k);
}

function bodies(context, see) {
  for (const body of see.scene.bodies)
    if (body.node) node(context, see, body);
    else box(context, see, body);
  groupNames(context, see);
  if (see.scene.hasLabels) see.scene.bodies.forEach((body) => label(context, see, body));
  else
    new Set([see.focused, ...see.chosen, ...see.scene.found])
      .forEach((body) => body && label(context, see, body));
}

// From a byte a second to 100 MB of them: from 1.5 to 7 wide.
const lineWidth = (rate) => (rate > 0 ? Math.min(7, 1.5 + 0.7 * Math.log10(1 + rate)) : 1);

function outlines(context, see) {
  outlinesOf(see).forEach((outline, place) => {
    if (outline === null) return;
    context.beginPath();
    outline.hull.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    context.fillStyle = context.strokeStyle = groupColour(place);
    context.globalAlpha = 0.1;
    context.fill();
    context.globalAlpha = 0.7;
    context.lineWidth = 1.5;
    context.stroke();
    context.globalAlpha = 1;
  });
}

function groupNames(context, see) {
  const { scene } = see;
  context.font = `600 ${Math.max(13, scene.size.r * 1.4)}px system-ui, sans-serif`;
  outlinesOf(see).forEach((outline, place) => {
    if (outline === null || outline.name === null) return;
    const { at, align, baseline } = outline.name;
    context.textAlign = align;
    context.textBaseline = baseline;
    outlined(context, scene.cluster.groups[place].name, ...at, groupColour(place));
  });
}

function outlined(context, text, x, y, fill) {
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = colour("ground");
  context.strokeText(text, x, y);
  context.fillStyle = fill;
  context.fillText(text, x, y);
}

const idleLinks = ({ scene }) =>
  scene.withIdle ? edgesOf(scene).filter(({ isUp, rate }) => isUp && rate === 0) : [];
const busyLinks = ({ scene }) => edgesOf(scene).filter(({ isUp, rate }) => isUp && rate > 0);

// Links that look the same are one path: thousands of strokes would take too long.
function links(context, see, which) {
  const looks = new Map();
  for (const { a, b, rate } of which(see)) {
    const width = Math.round(2 * lineWidth(rate)) / 2;
    if (!looks.has(width)) looks.set(width, []);
    looks.get(width).push(see.at(a), see.at(b));
  }
  for (const width of [...looks.keys()].sort((x, y) => x - y)) {
    const ends = looks.get(width);
    context.beginPath();
    for (let i = 0; i < ends.length; i += 2) {
      context.moveTo(ends[i].x, ends[i].y);
      context.lineTo(ends[i + 1].x, ends[i + 1].y);
    }
    context.lineWidth = width;
    context.strokeStyle = colour(width > 1 ? "busy" : "line");
    context.globalAlpha = width > 1 ? 0.75 : 0.6;
    context.stroke();
  }
  context.globalAlpha = 1;
}

function brokenLinks(context, { scene, at }) {
  for (const { a, b, isUp } of edgesOf(scene)) if (!isUp) broken(context, at(a), at(b));
}

function broken(context, from, to) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.lineWidth = 1.5;
  context.strokeStyle = colour("bad");
  context.globalAlpha = 0.75;
  context.setLineDash([2, 4]);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
  cross(context, (from.x + to.x) / 2, (from.y + to.y) / 2);
}

function cross(context, x, y) {
  context.strokeStyle = colour("bad");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 4, y - 4);
  context.lineTo(x + 4, y + 4);
  context.moveTo(x + 4, y - 4);
  context.lineTo(x - 4, y + 4);
  context.stroke();
}

function shownCircuits({ scene, chosen }) {
  if (!scene.withCircuits) return [];
  const of = chosen.length === 1 ? chosen[0].node?.name : undefined;
  return circuitsOf(scene, { max: CIRCUITS_MAX, of });
}

function circuits(context, see) {
  context.setLineDash([6, 5]);
  context.strokeStyle = colour("circuit");
  for (const { row, rate } of shownCircuits(see)) {
    context.globalAlpha = rate > 0 ? 0.9 : 0.45;
    context.lineWidth = rate > 0 ? Math.max(1.5, lineWidth(rate) * 0.6) : 1;
    through(context, row.map(see.at));
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

// A curve through all points: one bow over one gateway or two, straight parts over more.
function through(context, points) {
  const [a, b, c, d] = points;
  context.beginPath();
  context.moveTo(a.x, a.y);
  if (points.length === 3) {
    context.quadraticCurveTo(2 * b.x - (a.x + c.x) / 2, 2 * b.y - (a.y + c.y) / 2, c.x, c.y);
  } else if (points.length === 4) {
    const first = (key) => (-5 * a[key] + 18 * b[key] - 9 * c[key] + 2 * d[key]) / 6;
    const second = (key) => (2 * a[key] - 9 * b[key] + 18 * c[key] - 5 * d[key]) / 6;
    context.bezierCurveTo(first("x"), first("y"), second("x"), second("y"), d.x, d.y);
  } else points.slice(1).forEach((point) => context.lineTo(point.x, point.y));
}

function way(context, { scene, at, way: hops }) {
  if (hops === null) return;
  context.strokeStyle = colour("chosen");
  context.lineWidth = 5;
  context.lineCap = "round";
  for (const { from, to } of hops) {
    const [a, b] = [scene.bodyOf.get(from), scene.bodyOf.get(to)];
    if (a === undefined || b === undefined) continue;
    context.beginPath();
    context.moveTo(at(a).x, at(a).y);
    context.lineTo(at(b).x, at(b).y);
    context.stroke();
  }
  context.lineCap = "butt";
}

function node(context, see, body) {
  const { x, y } = see.at(body);
  const { r } = body;
  const isUp = body.node.state === "up";
  const colours = body.places.length === 0 ? [colour("free")] : body.places.map(groupColour);
  colours.forEach((fill, i) => {
    const step = (2 * Math.PI) / colours.length;
    context.beginPath();
    if (colours.length > 1) context.moveTo(x, y);
    context.arc(x, y, r, Math.PI / 2 + i * step, Math.PI / 2 + (i + 1) * step);
    context.fillStyle = isUp ? fill : colour("ground");
    context.strokeStyle = fill;
    context.lineWidth = 2;
    context.fill();
    if (!isUp) context.stroke();
  });
  circle(context, x, y, r, isUp ? colour("ground") : colour("bad"), 1.5, isUp ? [] : [3, 3]);
  if (!isUp) cross(context, x, y);
  if (see.scene.found.has(body)) circle(context, x, y, r + 5, colour("found"), 4, []);
  if (see.chosen.includes(body)) circle(context, x, y, r + 4, colour("chosen"), 3, []);
  if (see.focused === body) circle(context, x, y, r + 8, colour("text"), 1.5, [4, 3]);
  if (body.node.alarms.length > 0) badge(context, x + r * 0.8, y - r * 0.8, r);
}

function circle(context, x, y, r, stroke, lineWide, dash) {
  context.beginPath();
  context.arc(x, y, r, 0, 2 * Math.PI);
  context.strokeStyle = stroke;
  context.lineWidth = lineWide;
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

// Not by colour alone: it has an exclamation mark.
function badge(context, x, y, r) {
  const size = Math.max(4, r * 0.55);
  context.beginPath();
  context.arc(x, y, size, 0, 2 * Math.PI);
  context.fillStyle = colour("bad");
  context.fill();
  context.fillStyle = colour("ground");
  context.font = `700 ${size * 1.6}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("!", x, y + size * 0.05);
}

function box(context, see, body) {
  const { x, y } = see.at(body);
  const stroke = groupColour(body.places[0]);
  const { r } = body;
  context.beginPath();
  context.roundRect(x - r, y - r * 0.8, 2 * r, r * 1.6, 8);
  context.fillStyle = colour("ground");
  context.fill();
  context.fillStyle = stroke;
  context.globalAlpha = 0.25;
  context.fill();
  context.globalAlpha = 1;
  const mark = see.chosen.includes(body) ? "chosen" : see.scene.found.has(body) ? "found" : null;
  context.strokeStyle = mark ? colour(mark) : stroke;
  context.lineWidth = mark ? 4 : 2;
  context.stroke();
  if (see.focused === body) circle(context, x, y, r + 8, colour("text"), 1.5, [4, 3]);
  context.fillStyle = colour("text");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = "600 12px system-ui, sans-serif";
  context.fillText(clipped(body.group.name, 12), x, y - 8);
  context.font = "12px system-ui, sans-serif";
  context.fillText(`${body.inside.length} nodes`, x, y + 8);
  if (body.inside.some((name) => see.scene.cluster.byName.get(name).alarms.length > 0))
    badge(context, x + r, y - r * 0.8, 12);
}

function label(context, see, body) {
  if (!body.node) return;
  const { x, y } = see.at(body);
  const text = clipped(body.node.short, 22);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "top";
  outlined(context, text, x, y + body.r + 8, colour("text"));
}

const clipped = (text, max) => (text.length > max ? `${text.slice(0, max - 1)}…` : text);
