// SPDX-License-Identifier: Apache-2.0
// What a test reads from the canvases of the page, and how its texts are laid out. Points are of the
// window, as those of the mouse.

// The canvases of the graph, from the lowest one to the highest one.
window.layers = () => [...document.querySelectorAll("canvas.below, canvas.graph")];

// Where a body is, and how many pixels one of the picture's takes.
window.where = (id) => layers().at(-1).picture.where(id);
window.middle = (a, b) => ({
  x: (where(a).x + where(b).x) / 2, y: (where(a).y + where(b).y) / 2,
});
window.far = (a, b) => Math.hypot(where(a).x - where(b).x, where(a).y - where(b).y);
window.scale = () => {
  const places = layers().at(-1).picture.places();
  const [a, b] = Object.keys(places);
  return far(a, b) / Math.hypot(places[a].x - places[b].x, places[a].y - places[b].y);
};

// The body below all others.
window.lowest = () =>
  Object.entries(layers().at(-1).picture.places()).sort(([, a], [, b]) => b.y - a.y)[0][0];

// In how many arrangements bodies are seen, from when they get new places on.
window.placesSeen = () => new Promise((done) => {
  document.addEventListener("settled", () => {
    const begin = performance.now();
    const seen = new Set();
    const look = () => {
      seen.add(JSON.stringify(layers().at(-1).picture.places()));
      if (performance.now() - begin < 1000) requestAnimationFrame(look);
      else done(seen.size);
    };
    look();
  }, { once: true });
});

// How far ahead of a body others are in a direction, as far as they are.
window.ahead = (from, direction) => {
  const [x, y] = { Left: [-1, 0], Right: [1, 0], Up: [0, -1], Down: [0, 1] }[direction];
  const places = layers().at(-1).picture.places();
  const far = (id) => (places[id].x - places[from].x) * x + (places[id].y - places[from].y) * y;
  return Object.fromEntries(Object.keys(places).map((id) => [id, far(id)])
    .filter(([, ahead]) => ahead > 1));
};

function pixels(canvas, { x, y }, r) {
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const side = Math.max(1, Math.round(2 * r * ratio));
  const { data } = canvas.getContext("2d").getImageData(
    Math.round((x - box.left - r) * ratio), Math.round((y - box.top - r) * ratio), side, side);
  return Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 4)]);
}

// How many pixels around a point are drawn; the areas of groups, which are faint, do not count.
window.ink = (layer, point, r) =>
  pixels(layers()[layer], point, r).filter(([, , , alpha]) => alpha > 60).length;

// The colours of single points of a canvas, as [red, green, blue, alpha].
window.colourAt = (canvas, point) => pixels(canvas, point, 0.5)[0];

// The colour of a body, so far beside its middle.
window.inside = (id, off) => colourAt(layers().at(-1),
  { x: where(id).x + off * scale(), y: where(id).y }).slice(0, 3).join();

// The middle of each cell of the matrix that can be pointed at, by what is told of it then.
window.cells = () => {
  const canvas = document.querySelector("canvas.matrix");
  const box = canvas.getBoundingClientRect();
  const found = new Map();
  for (let y = 1; y < box.height; y += 3)
    for (let x = 1; x < box.width; x += 3) {
      const point = { clientX: box.left + x, clientY: box.top + y };
      canvas.dispatchEvent(new PointerEvent("pointermove", point));
      const [name] = canvas.title.split("\n");
      if (name === "") continue;
      if (!found.has(name)) found.set(name, []);
      found.get(name).push(point);
    }
  const mean = (points, key) => points.reduce((sum, point) => sum + point[key], 0) / points.length;
  return Object.fromEntries([...found].map(([name, points]) =>
    [name, { x: mean(points, "clientX"), y: mean(points, "clientY") }]));
};

// The colours of cells of the matrix, beside the diagonal of each.
window.shades = () => Object.fromEntries(Object.entries(cells()).map(([name, { x, y }]) =>
  [name, colourAt(document.querySelector("canvas.matrix"), { x: x + 12, y: y - 12 })]));

// How many colours the diagonal of a cell has, which is the mark of a link that is down.
window.colours = (name) => {
  const { x, y } = cells()[name];
  const canvas = document.querySelector("canvas.matrix");
  return new Set([-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((i) =>
    [-1, 0, 1].map((j) => colourAt(canvas, { x: x + i, y: y + i + j }).join()))).size;
};

// A colour of the style, as [red, green, blue].
window.styled = (name) => {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
};

// The texts of these elements, as far as they take more than one line.
window.inLines = (selector) => [...document.querySelectorAll(selector)].filter((element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size > 1;
}).map(({ textContent }) => textContent);
