// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

// What digits would round to a thousand of a unit is one of the next.
const THOUSAND = 999.5;

export function bytes(number) {
  if (number === undefined || number === null) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = number;
  let unit = 0;
  while (Math.abs(value) >= THOUSAND && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

export const rate = (number) => (number === undefined ? "–" : `${bytes(number)}/s`);

export function micros(us) {
  if (us === undefined || us === null) return "–";
  if (us < THOUSAND) return `${digits(us)} µs`;
  if (us / 1000 < THOUSAND) return `${digits(us / 1000)} ms`;
  return `${digits(us / 1e6)} s`;
}

export function duration(ms) {
  if (ms === undefined || ms === null) return "–";
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const percent = (part) => `${Math.round(part * 100)} %`;

export const count = (number) =>
  number === undefined || number === null ? "–" : number.toLocaleString("en");

// With the day, if that is another one for sure.
export function time(ms) {
  if (ms === undefined) return "–";
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = Math.abs(Date.now() - ms) < 86400000 ? ""
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return `${day}${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// Two digits, or all of a whole number. toPrecision(2) writes what it rounds to 100 as 1.0e+2.
const digits = (value) =>
  Number.isInteger(value) || Math.abs(value) >= 99.5
    ? String(Math.round(value))
    : value.toPrecision(2).replace(/^(\d+)\.0$/, "$1");
