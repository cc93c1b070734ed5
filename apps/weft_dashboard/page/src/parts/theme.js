// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system has it, or as the address says. Canvases read their colours here.

import { address } from "../data/address.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const listeners = [];
const colours = new Map();

export const isDark = () =>
  address.get("theme") === "dark" || (address.get("theme") !== "light" && system.matches);
export const isStill = () => stillness.matches;
export const onTheme = (listener) => listeners.push(listener);

export function applyTheme() {
  const theme = isDark() ? "dark" : "light";
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  colours.clear();
  listeners.forEach((listener) => listener());
}

// Each is worked out once for a theme.
function known(key, make) {
  if (!colours.has(key)) colours.set(key, make());
  return colours.get(key);
}

// The colour of a name in style.css.
export const colour = (name) => known(name, () =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());

const HUES = [214, 28, 152, 338, 268, 48, 190, 0];

// Of more groups than hues the next ones are lighter, and then darker.
const LIGHTNESS = { light: [42, 60, 28], dark: [62, 45, 80] };

// A colour for the group with that place among the names of all groups.
export const groupColour = (index) => known(index, () => {
  const shades = LIGHTNESS[isDark() ? "dark" : "light"];
  const shade = shades[Math.floor(index / HUES.length) % shades.length];
  return `hsl(${HUES[index % HUES.length]} ${isDark() ? 65 : 68}% ${shade}%)`;
});

system.addEventListener("change", applyTheme);
address.onChange(applyTheme);
