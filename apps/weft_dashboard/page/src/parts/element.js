// SPDX-License-Identifier: Apache-2.0
// Makes elements: h("p", { class: "x", onclick: f }, "text", child). Texts are never HTML.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Changes a text only if it is another one: so nothing is laid out, or read out, anew.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A field with its label.
export function field(label, input) {
  return h("label", { class: "field" }, h("span", {}, label), input);
}

// Options of a select or datalist, if they are others than before.
export function options(element, values, texts = values) {
  const key = values.join("\n");
  if (element.dataset.values === key) return;
  element.dataset.values = key;
  const chosen = element.value;
  element.replaceChildren(
    ...values.map((value, i) => h("option", { value }, texts[i])),
  );
  if (values.includes(chosen)) element.value = chosen;
}
