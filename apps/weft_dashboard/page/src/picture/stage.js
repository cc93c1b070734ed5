// SPDX-License-Identifier: Apache-2.0
// The canvases of the graph: places of the scene, moving and zooming it (d3-zoom), what is under the
// pointer, what the arrow keys lead to. It knows nothing of what a choice means.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { h } from "../parts/element.js";
import { inSlices, nextTask } from "../parts/task.js";
import { isStill } from "../parts/theme.js";
import * as drawing from "./draw.js";
import { placesOf } from "./layout.js";
import { shapeOf } from "./scene.js";

const MOVE_MS = 350;
const MOVED_MAX = 200;
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function stage({ onChoose, onEscape }) {
  const canvas = h("canvas", {
    class: "graph", tabindex: "0", role: "application", "aria-describedby": "graph-keys",
  });
  const below = drawing.layers.slice(1).map(() =>
    h("canvas", { class: "below", "aria-hidden": "true" }));
  const layers = [...below, canvas].map((its, i) =>
    ({ canvas: its, context: its.getContext("2d"), draw: drawing.layers[i], isOld: false }));
  const highest = layers.at(-1);
  const see = {
    scene: null, places: new Map(), transform: zoomIdentity, chosen: [], focused: null, way: null,
    outlines: null, shape: "",
  };
  let shape = "";
  let newest = null;
  let drawn = null;
  let asked = 0;
  let hasFrame = false;
  let isAtOnce = false;
  let isFitted = true;
  see.at = (body) => see.places.get(body.id) ?? { x: 0, y: 0 };

  const zooming = zoom().scaleExtent([0.05, 6]).on("zoom", (event) => {
    see.transform = event.transform;
    if (event.sourceEvent) isFitted = false;
    redraw({ inTurn: !event.sourceEvent });
  });
  select(canvas).call(zooming).on("dblclick.zoom", null);
  new ResizeObserver(() => {
    resize();
    if (isFitted) fit();
    redraw();
  }).observe(canvas);

  function resize() {
    see.ratio = devicePixelRatio || 1;
    see.width = canvas.clientWidth;
    see.height = canvas.clientHeight;
    for (const layer of layers) {
      layer.canvas.width = Math.round(see.width * see.ratio);
      layer.canvas.height = Math.round(see.height * see.ratio);
    }
  }

  // In the next frame; what is not for the hand that moves something, one layer after the other: so
  // each frame is short.
  function redraw({ inTurn = false, which = layers } = {}) {
    isAtOnce ||= !inTurn;
    for (const layer of which) layer.isOld = true;
    askForFrame();
  }

  function askForFrame() {
    if (!hasFrame) requestAnimationFrame(drawNext);
    hasFrame = true;
  }

  function drawNext() {
    const old = layers.filter(({ isOld }) => isOld);
    const now = isAtOnce ? old : old.slice(0, 1);
    hasFrame = isAtOnce = false;
    if (see.scene === null || !(see.width > 0)) return;
    for (const layer of now) {
      layer.draw(layer.context, see);
      layer.isOld = false;
    }
    if (now.includes(highest)) drawn = see.scene;
    if (layers.some(({ isOld }) => isOld)) askForFrame();
  }

  // As long as its bodies have no places what was there before stays. If they have some, though other
  // groups may give them others soon, it is shown at once.
  async function show(scene, marks) {
    const newShape = shapeOf(scene);
    newest = { scene, marks, shape: newShape };
    const isNew = newShape !== shape;
    shape = newShape;
    const mine = isNew ? ++asked : asked;
    if (scene.bodies.every(({ id }) => see.places.has(id))) await replace();
    if (!isNew || mine !== asked) return;
    const found = await placesOf(scene, () => mine !== asked);
    if (found === null) return;
    const before = see.places;
    while (mine === asked && !(await replace(found)));
    if (mine !== asked) return;
    if (isFitted) fit();
    if (before.size > 0 && found.size <= MOVED_MAX && !isStill()) move(before, found, mine);
    canvas.dispatchEvent(new CustomEvent("settled", { bubbles: true }));
  }

  // The newest scene takes the place of what is shown, if none has come meanwhile that is newer.
  async function replace(found = null) {
    const { scene, marks, shape: itsShape } = newest;
    const places = found ?? see.places;
    const next = {
      ...marks, scene, at: (body) => places.get(body.id),
      outlines: places === see.places && itsShape === see.shape ? see.outlines : null,
    };
    await nextTask();
    await inSlices(drawing.prepare(next));
    if (newest.scene !== scene) return false;
    if (found !== null) see.places = found;
    const same = (body) => body && scene.bodies.find(({ id }) => id === body.id);
    Object.assign(see, marks, {
      scene, shape: itsShape, focused: same(see.focused) ?? null,
      outlines: places === see.places ? next.outlines : null,
    });
    redraw({ inTurn: true });
    return true;
  }

  // The bodies go to their new places; new ones are there at once.
  function move(before, after, mine) {
    const begin = performance.now();
    const step = () => {
      if (mine !== asked) return;
      const part = Math.min(1, (performance.now() - begin) / MOVE_MS);
      const eased = part * (2 - part);
      see.places = new Map([...after].map(([id, to]) => {
        const from = before.get(id) ?? to;
        const between = (key) => from[key] + (to[key] - from[key]) * eased;
        return [id, { x: between("x"), y: between("y") }];
      }));
      see.outlines = null;
      redraw();
      if (part < 1) requestAnimationFrame(step);
    };
    step();
  }

  function fit() {
    isFitted = true;
    if (see.places.size === 0 || !(see.width > 0)) return;
    const all = [...see.places.values()];
    const low = (key) => Math.min(...all.map((place) => place[key])) - 60;
    const high = (key) => Math.max(...all.map((place) => place[key])) + 60;
    const [wide, tall] = [high("x") - low("x"), high("y") - low("y")];
    const k = Math.min(2.2, see.width / wide, see.height / tall);
    const x = see.width / 2 - (k * (low("x") + high("x"))) / 2;
    const y = see.height / 2 - (k * (low("y") + high("y"))) / 2;
    select(canvas).call(zooming.transform, zoomIdentity.translate(x, y).scale(k));
  }

  function bodyAt(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = see.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    const near = 6 / see.transform.k;
    let best = null;
    for (const body of see.scene?.bodies ?? []) {
      const far = Math.hypot(see.at(body).x - x, see.at(body).y - y) - body.r;
      if (far <= near && (best === null || far < best.far)) best = { body, far };
    }
    return best?.body ?? null;
  }

  canvas.addEventListener("click", (event) => {
    const body = bodyAt(event);
    if (body !== null) choose(body);
    else onEscape();
  });
  canvas.addEventListener("pointermove", (event) => {
    const body = bodyAt(event);
    canvas.style.cursor = body ? "pointer" : "grab";
    if (body !== null && body !== see.focused) focus(body);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!act(event.key)) return;
    event.preventDefault();
  });

  function act(key) {
    if (key in DIRECTIONS) focus(next(DIRECTIONS[key]));
    else if ((key === "Enter" || key === " ") && see.focused) choose(see.focused);
    else if (key === "Escape") onEscape();
    else if (key === "+" || key === "=") select(canvas).call(zooming.scaleBy, 1.3);
    else if (key === "-") select(canvas).call(zooming.scaleBy, 1 / 1.3);
    else if (key === "0") fit();
    else return false;
    return true;
  }

  function choose(body) {
    see.focused = body;
    onChoose(body);
    redraw({ which: [highest] });
  }

  function focus(body) {
    if (!body) return;
    see.focused = body;
    canvas.setAttribute("aria-label", `graph, at ${body.node ? body.node.name : body.id}`);
    redraw({ which: [highest] });
  }

  // The nearest body in that direction, where what is beside the way counts double.
  function next([right, down]) {
    const bodies = see.scene?.bodies ?? [];
    if (see.focused === null) return bodies[0];
    const here = see.at(see.focused);
    let best = null;
    for (const body of bodies) {
      const [x, y] = [see.at(body).x - here.x, see.at(body).y - here.y];
      const ahead = x * right + y * down;
      const beside = Math.abs(x * down) + Math.abs(y * right);
      if (ahead <= 1 || body === see.focused) continue;
      const far = ahead + 2 * beside;
      if (best === null || far < best.far) best = { body, far };
    }
    return best?.body;
  }

  // For tests and for the curious: what is drawn, and where on the screen.
  canvas.picture = {
    bodies: () => see.scene?.bodies.map(({ id }) => id) ?? [],
    states: () => Object.fromEntries(drawn?.bodies.map(({ id, node }) => [id, node?.state]) ?? []),
    places: () => Object.fromEntries(see.places),
    where(id) {
      const box = canvas.getBoundingClientRect();
      const [x, y] = see.transform.apply([see.places.get(id).x, see.places.get(id).y]);
      return { x: box.left + x, y: box.top + y };
    },
  };

  return {
    canvas, below, show, redraw, fit, focus,
    zoomBy: (k) => select(canvas).call(zooming.scaleBy, k),
    body: (id) => see.scene?.bodies.find((body) => body.id === id),
  };
}
