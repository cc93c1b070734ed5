// SPDX-License-Identifier: Apache-2.0
// Added to a copy of a report by weft_report_browser: writes what it finds of the page, as
// JSON, to an element of its own.
(function () {
  "use strict";
  const slack = 1.5;

  document.querySelectorAll("details").forEach(d => { d.open = true; });

  const box = e => e.getBoundingClientRect();
  const words = e => e.textContent.trim().replace(/[^ -~]/g, "?").replace(/["\\&<>]/g, "'").slice(0, 60);
  const charts = Array.from(document.querySelectorAll("svg.chart"));
  const tables = Array.from(document.querySelectorAll("table"));

  const cut = [], overlapping = [];
  charts.forEach(chart => {
    const outer = box(chart);
    const texts = Array.from(chart.querySelectorAll("text")).map(e => [e, box(e)]);
    texts.forEach(([e, b]) => {
      if (b.left < outer.left - slack || b.right > outer.right + slack ||
          b.top < outer.top - slack || b.bottom > outer.bottom + slack) cut.push(words(e));
    });
    texts.forEach(([e, b], n) => texts.slice(n + 1).forEach(([f, c]) => {
      // Boxes of text are higher than its letters.
      const across = Math.min(b.right, c.right) - Math.max(b.left, c.left);
      const down = Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top);
      if (across > slack && down > 4) overlapping.push(words(e) + " / " + words(f));
    }));
  });

  const empty = charts.concat(tables)
    .filter(e => box(e).width < 50 || box(e).height < 20)
    .map(e => e.tagName + " " + words(e));

  // WCAG 2: relative luminance and contrast.
  const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
  const part = v => v / 255 <= 0.03928 ? v / 255 / 12.92 : Math.pow((v / 255 + 0.055) / 1.055, 2.4);
  const luminance = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.5) return c;
    }
    return isDark ? [18, 18, 18] : [255, 255, 255];
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const pale = new Set();
  document.querySelectorAll("h1,h2,p,li,th,td,caption,summary,a,b,span,text").forEach(e => {
    const style = getComputedStyle(e);
    const colour = rgb(e.tagName === "text" ? style.fill : style.color);
    const ratio = contrast(colour, ground(e));
    if (e.textContent.trim() && ratio < 4.5) pale.add(e.tagName + " " + e.className.toString() + " " + ratio.toFixed(1));
  });

  const result = {
    scheme: isDark ? "dark" : "light",
    charts: charts.length, tables: tables.length,
    width: document.documentElement.scrollWidth,
    cut, overlapping: Array.from(new Set(overlapping)), empty,
    pale: Array.from(pale)
  };
  const pre = document.createElement("pre");
  pre.id = "measured";
  pre.textContent = JSON.stringify(result);
  document.body.appendChild(pre);
})();
