// SPDX-License-Identifier: Apache-2.0
// The matrix: who (rows) to whom (columns). The colour of a cell says how far a measure is from the
// mean. Address: by (the measure), cells ("nodes" or "groups"), row and column (the chosen cell).

import { address } from "../data/address.js";
import { h, say, field, options } from "../parts/element.js";
import { bytes, micros, rate } from "../parts/format.js";
import { colour, onTheme } from "../parts/theme.js";
import { table } from "../parts/table.js";
import { inSlices } from "../parts/task.js";
import { MEASURES, cellKey, gridOf, pictureOf } from "../picture/grid.js";
import { fillFigures } from "./node_panel.js";

const NODES_MAX = 200;
const NAMES_MIN_PX = 11;
const CELL_MAX_PX = 60;
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

const TEXTS = {
  rate, rtt_us: micros, queued_bytes: bytes,
  resumes: (number) => String(number ?? "–"),
  reroutes: (number) => String(number ?? "–"),
  hops: (number) => (number === undefined ? "–" : String(Math.round(number * 10) / 10)),
};

export function matrixView() {
  let cluster = null;
  let grid = null;
  let picture = null;
  let asked = 0;
  let size = null;
  let isDrawing = false;
  const canvas = h("canvas", {
    class: "matrix", tabindex: "0", role: "application", "aria-describedby": "matrix-keys",
  });
  const context = canvas.getContext("2d");
  const measure = h("select");
  options(measure, Object.keys(MEASURES), Object.values(MEASURES));
  const cellsOf = h("select");
  options(cellsOf, ["nodes", "groups"], ["nodes", "groups"]);
  const title = h("h2");
  const figures = h("dl", { class: "figures" });
  const more = h("a", { class: "button" }, "Show the path");
  const scale = h("p", { class: "scale" });
  const detail = h("section", { "aria-label": "Cell", "aria-live": "polite", hidden: true },
    title, figures, more);
  const pairs = table({
    caption: "Pairs, what is farthest from the mean first",
    sortBy: 3,
    isDown: true,
    key: (row) => `${row.from} ${row.to}`,
    columns: [
      { title: "From", value: (row) => row.from },
      { title: "To", value: (row) => row.to },
      { title: "Value", value: (row) => row.value, text: (_, row) => row.text, isNumber: true },
      { title: "Off the mean", value: (row) => Math.abs(row.off ?? 0), isNumber: true,
        text: (_, row) => (row.off === undefined ? "–" : `${row.off >= 0 ? "+" : "−"}${
          Math.abs(row.off).toFixed(1)} σ`) },
      { title: "Last error", value: (row) => row.error },
    ],
  });
  const inTable = h("details", { class: "tables" }, h("summary", {}, "As a table"), pairs.element);
  const element = h("section", { class: "with-aside", "aria-label": "Matrix" },
    h("div", { class: "stage" }, canvas),
    h("aside", {}, field("Colour by", measure), field("Cells are", cellsOf), scale, detail,
      inTable,
      h("p", { id: "matrix-keys" },
        "Keys: arrows go from cell to cell. Rows are who sends, columns to whom.")));

  measure.addEventListener("change", () => address.set({ by: measure.value }));
  cellsOf.addEventListener("change", () =>
    address.set({ cells: cellsOf.value, row: undefined, column: undefined }));
  inTable.addEventListener("toggle", () => show());
  onTheme(() => redraw());
  new ResizeObserver(() => redraw()).observe(canvas.parentElement ?? canvas);

  const by = () => (Object.hasOwn(MEASURES, address.get("by")) ? address.get("by") : "rate");
  const byGroups = () =>
    (address.get("cells") ?? (cluster.nodes.length > NODES_MAX ? "groups" : "nodes")) === "groups";

  async function show() {
    if (cluster === null || element.hidden) return;
    const mine = ++asked;
    const isOver = () => mine !== asked;
    measure.value = by();
    cellsOf.value = byGroups() ? "groups" : "nodes";
    const newGrid = await inSlices(gridOf(cluster, byGroups()), isOver);
    const newPicture = newGrid && await inSlices(pictureOf(newGrid, by()), isOver);
    if (isOver()) return;
    [grid, picture] = [newGrid, newPicture];
    redraw();
    showScale();
    showCell();
    if (inTable.open)
      pairs.update([...grid.cells.values()].map((cell) => ({
        from: cell.from, to: cell.to, value: cell[by()], text: TEXTS[by()](cell[by()]),
        off: picture.off.of(cell), error: hasError(cell) ? cell.last_error : "",
      })));
    if (document.activeElement !== canvas)
      canvas.setAttribute("aria-label", `matrix of ${grid.rows.length} ${cellsOf.value} by `
        + MEASURES[by()]);
  }

  // --- drawing ---------------------------------------------------------------------------------

  function redraw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      if (grid !== null && !element.hidden) draw();
    });
  }

  function draw() {
    const box = element.querySelector(".stage").getBoundingClientRect();
    const room = Math.min(box.width, box.height) - 8;
    if (room <= 0) return;
    const longest = Math.max(...grid.rows.map(({ text }) => text.length), 1);
    const head = Math.min(150, 14 + longest * 6.6);
    const withNames = (room - head) / grid.rows.length >= NAMES_MIN_PX;
    const margin = withNames ? head : 4;
    const cell = Math.min(CELL_MAX_PX, (room - margin) / grid.rows.length);
    size = { margin, cell };
    const side = Math.ceil(margin + cell * grid.rows.length) + 2;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.height = side * ratio;
    canvas.style.width = canvas.style.height = `${side}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour("panel");
    context.fillRect(margin, margin, cell * grid.rows.length, cell * grid.rows.length);
    if (withNames) heads();
    cells();
    cursor();
  }

  function heads() {
    const { margin, cell } = size;
    context.fillStyle = colour("text");
    context.font = `${Math.min(12, cell * 0.8 + 2)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    grid.rows.forEach(({ text }, i) => {
      const at = margin + (i + 0.5) * cell;
      const shown = text.length > 20 ? `${text.slice(0, 19)}…` : text;
      context.textAlign = "right";
      context.fillText(shown, margin - 6, at);
      context.save();
      context.translate(at, margin - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(shown, 0, 0);
      context.restore();
    });
  }

  // Cells of one colour one after the other: to take a colour is slower than to fill a cell.
  function cells() {
    const { margin, cell } = size;
    const gap = cell > 6 ? 1 : 0;
    for (const [percent, places] of picture.shades) {
      context.fillStyle = shadeColour(percent);
      for (let i = 0; i < places.length; i += 2)
        context.fillRect(margin + places[i + 1] * cell, margin + places[i] * cell,
          cell - gap, cell - gap);
    }
    for (let i = 0; i < picture.down.length; i += 2)
      mark(margin + picture.down[i + 1] * cell, margin + picture.down[i] * cell, cell - gap);
    context.fillStyle = colour("line");
    for (let i = 0; i < grid.rows.length; i++)
      if (!byGroups())
        context.fillRect(margin + i * cell, margin + i * cell, cell - gap, cell - gap);
  }

  function mark(x, y, side) {
    if (side < 5) return;
    context.strokeStyle = colour("bad");
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + side - 2, y + side - 2);
    context.stroke();
  }

  function cursor() {
    const at = chosen();
    if (at === null) return;
    const { margin, cell } = size;
    context.strokeStyle = colour("chosen");
    context.lineWidth = 2.5;
    context.strokeRect(margin + at[1] * cell - 1, margin + at[0] * cell - 1, cell + 1, cell + 1);
  }

  // --- one cell --------------------------------------------------------------------------------

  function chosen() {
    const at = [grid.at.get(address.get("row")), grid.at.get(address.get("column"))];
    return at.includes(undefined) ? null : at;
  }

  function choose(row, column) {
    const last = grid.rows.length - 1;
    const bound = (i) => Math.max(0, Math.min(last, i));
    const [from, to] = [grid.rows[bound(row)], grid.rows[bound(column)]];
    if (from && to) address.set({ row: from.id, column: to.id });
  }

  function showCell() {
    const at = chosen();
    detail.hidden = at === null;
    if (at === null) return;
    const [from, to] = [grid.rows[at[0]].id, grid.rows[at[1]].id];
    const cell = grid.cells.get(cellKey(from, to));
    say(title, `${from} → ${to}`);
    canvas.setAttribute("aria-label", cell
      ? `${from} to ${to}: ${MEASURES[by()]} ${TEXTS[by()](cell[by()])}`
      : `${from} to ${to}: nothing`);
    fillFigures(figures, cell ? cellFigures(cell) : [["Known", "nothing: they do not talk"]]);
    more.hidden = byGroups() || from === to;
    more.href = address.with({ view: "graph", from, to });
  }

  function showScale() {
    const text = TEXTS[by()];
    const { middle, spread } = picture.off;
    say(scale, spread === 0
      ? `All the same: ${text(middle)}.`
      : `Grey is the mean, ${text(middle)}; orange is above and blue below, `
        + `strongest from two standard deviations (of ${text(spread)}). The faintest cells `
        + "have a link but no such value. A red line is a link that is down.");
  }

  function cellAt(event) {
    if (size === null) return [-1, -1];
    const box = canvas.getBoundingClientRect();
    const at = (length) => Math.floor((length - size.margin) / size.cell);
    return [at(event.clientY - box.top), at(event.clientX - box.left)];
  }

  canvas.addEventListener("click", (event) => {
    const [row, column] = cellAt(event);
    if (row >= 0 && column >= 0) choose(row, column);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [row, column] = cellAt(event);
    const [from, to] = [grid?.rows[row], grid?.rows[column]];
    const cell = from && to && grid.cells.get(cellKey(from.id, to.id));
    canvas.title = !from || !to ? ""
      : [`${from.text} → ${to.text}`, ...(cell ? cellFigures(cell) : [["Known", "nothing"]])
        .map(([name, value]) => `${name}: ${value}`)].join("\n");
  });
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS) || grid === null) return;
    event.preventDefault();
    const at = chosen() ?? [0, -1];
    const [down, right] = STEPS[event.key];
    choose(at[0] + down, at[1] + right);
  });

  return {
    element,
    update(newCluster) {
      cluster = newCluster;
      show();
    },
  };
}

function cellFigures(cell) {
  const rows = [
    ["Bytes a second", rate(cell.rate)],
    ["Round trip", micros(cell.rtt_us)],
    ["Hops", TEXTS.hops(cell.hops)],
    ["Queue", bytes(cell.queued_bytes)],
    ["Resumes", TEXTS.resumes(cell.resumes)],
    ["Re-routes", TEXTS.reroutes(cell.reroutes)],
  ];
  if (cell.pairs !== undefined)
    return [...rows, ["Pairs of nodes", String(cell.pairs)], ["Links down", String(cell.down)],
      ["Last error", cell.last_error ?? "none"]];
  return [
    ...rows,
    ["Session", cell.state ?? "none"],
    ["By way of", cell.between ? cell.between.join(", ") || "nobody" : "–"],
    ["Link", cell.link ?? "none"],
    ["Last error", cell.last_error ?? "–"],
  ];
}

const hasError = ({ last_error: error }) => error !== undefined && error !== "none" && error !== "";

function shadeColour(percent) {
  if (percent === undefined) return colour("none");
  const side = percent >= 0 ? "above" : "below";
  return `color-mix(in oklab, ${colour(side)} ${Math.abs(percent)}%, ${colour("mean")})`;
}
