// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system has it, or as the address says. Canvases read their colours here.

import { address } from "../data/address.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const listeners = [];
let colours = null;

export const isDark = () =>
  address.get("theme") === "dark" || (address.get("theme") !== "light" && system.matches);
export const isStill = () => stillness.matches;
export const onTheme = (listener) => listeners.push(listener);

export function applyTheme() {
  const theme = isDark() ? "dark" : "light";
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  colours = null;
  listeners.forEach((listener) => listener());
}

// The colour of a name in style.css.
export function colour(name) {
  colours ??= new Map();
  if (!colours.has(name)) {
    const style = getComputedStyle(document.documentElement);
    colours.set(name, style.getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

const HUES = [214, 28, 152, 338, 268, 48, 190, 0];

// Of more groups than hues the next ones are lighter, and then darker.
const LIGHTNESS = { light: [42, 60, 28], dark: [62, 45, 80] };

// A colour for the group with that place among the names of all groups.
export function groupColour(index) {
  const shades = LIGHTNESS[isDark() ? "dark" : "light"];
  const shade = shades[Math.floor(index / HUES.length) % shades.length];
  return `hsl(${HUES[index % HUES.length]} ${isDark() ? 65 : 68}% ${shade}%)`;
}

system.addEventListener("change", applyTheme);
address.onChange(applyTheme);
