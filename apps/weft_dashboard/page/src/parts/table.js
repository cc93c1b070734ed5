// SPDX-License-Identifier: Apache-2.0
// A table that is sorted by the column whose title was pressed, and that changes only the cells
// that are others than before. It shows a bounded number of rows, and says how many it does not.
//
// A row keeps its element wherever it goes: so what is typed into one stays, and a link that has
// the focus does not become another one.

import { h, say } from "./element.js";

const ROWS_MAX = 200;

// columns: [{ title, value(row), text?(value, row), isNumber?, link?(row), cell?(row) }]. `cell`
// makes an element, which is kept as long as there is a row with that key.
export function table({ caption, columns, key, sortBy = 0, isDown = false, isHidden = false }) {
  let sort = { column: sortBy, isDown };
  let rows = [];
  let byKey = new Map();
  const heads = columns.map((column, i) => {
    const button = h("button", { type: "button", onclick: () => resort(i) }, column.title);
    return h("th", { scope: "col", class: column.isNumber ? "number" : undefined }, button);
  });
  const body = h("tbody");
  const more = h("p", { class: "more", hidden: true });
  const title = h("caption", { class: isHidden ? "hidden" : undefined }, caption);
  const inner = h("table", {}, title, h("thead", {}, h("tr", {}, heads)), body);
  const element = h("div", { class: "table" }, inner, more);

  function resort(column) {
    sort = { column, isDown: sort.column === column ? !sort.isDown : columns[column].isNumber };
    render();
  }

  function render() {
    const { value } = columns[sort.column];
    const sorted = [...rows].sort((a, b) => {
      const order = compare(value(a), value(b));
      return sort.isDown ? -order : order;
    });
    const shown = sorted.slice(0, ROWS_MAX);
    heads.forEach((head, i) => {
      const direction = sort.isDown ? "descending" : "ascending";
      head.setAttribute("aria-sort", i === sort.column ? direction : "none");
    });
    place(filled(shown));
    more.hidden = rows.length <= ROWS_MAX;
    say(more, `${rows.length - ROWS_MAX} more rows: sort otherwise, or look for a name`);
  }

  // The elements of these rows. Of two with one key each has its own.
  function filled(shown) {
    const before = byKey;
    byKey = new Map();
    return shown.map((row) => {
      const id = key(row);
      const known = before.get(id);
      before.delete(id);
      const tr = known ?? h("tr", {}, columns.map((column) =>
        h("td", { class: column.isNumber ? "number" : undefined })));
      columns.forEach((column, i) => fillCell(tr.cells[i], column, row, known !== undefined));
      byKey.set(id, tr);
      return tr;
    });
  }

  // An element that is moved loses the focus: so the others are moved around the one that has it.
  function place(trs) {
    const isShown = new Set(trs);
    for (const tr of [...body.rows]) if (!isShown.has(tr)) tr.remove();
    const still = trs.indexOf(document.activeElement?.closest("tr"));
    if (still >= 0) inOrder(trs.slice(0, still), body.firstChild);
    inOrder(trs.slice(still + 1), still < 0 ? body.firstChild : trs[still].nextSibling);
  }

  function inOrder(trs, first) {
    let here = first;
    for (const tr of trs)
      if (tr === here) here = tr.nextSibling;
      else body.insertBefore(tr, here);
  }

  return {
    element,
    update(newRows) {
      rows = newRows;
      render();
    },
  };
}

function fillCell(td, column, row, isSame) {
  if (column.cell) {
    if (!isSame) td.replaceChildren(column.cell(row));
    return;
  }
  const value = column.value(row);
  const text = column.text ? column.text(value, row) : String(value ?? "–");
  const href = column.link?.(row);
  // The row that was here before may have had a link where this one has none, or none.
  const isLink = td.firstElementChild !== null;
  if (!href) {
    if (isLink) td.replaceChildren();
    say(td, text);
    return;
  }
  if (!isLink) td.replaceChildren(h("a"));
  const a = td.firstElementChild;
  if (a.getAttribute("href") !== href) a.setAttribute("href", href);
  say(a, text);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === undefined || a === null) return -1;
  if (b === undefined || b === null) return 1;
  return a < b ? -1 : 1;
}
