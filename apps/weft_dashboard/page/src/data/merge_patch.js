// SPDX-License-Identifier: Apache-2.0
// JSON merge patch, RFC 7396. What was given is not changed: unchanged parts are shared.

const isObject = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value);

export function patched(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else put(result, key, patched(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}

// To assign to the key "__proto__" would change what the object inherits from, and add no key.
function put(object, key, value) {
  if (key !== "__proto__") object[key] = value;
  else
    Object.defineProperty(object, key,
      { value, enumerable: true, writable: true, configurable: true });
}
