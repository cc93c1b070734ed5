// SPDX-License-Identifier: Apache-2.0
// JSON merge patch, RFC 7396. What was given is not changed: unchanged parts are shared.

const isObject = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value);

export function patched(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = patched(result[key], value);
  }
  return result;
}
