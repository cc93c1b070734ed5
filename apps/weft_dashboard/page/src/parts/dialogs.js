// SPDX-License-Identifier: Apache-2.0
// Questions to the user, in dialogs that the browser keeps the keyboard in.

import { h, say, field } from "./element.js";

export function dialogs() {
  const question = h("p");
  const confirmation = dialog([question], "Yes, do it");
  const token = h("input", { type: "password", autocomplete: "off", required: true });
  const tokens = dialog([
    h("p", {}, "To change something takes the token of the dashboard's configuration. "
      + "It is forgotten when the page is closed."),
    field("Token", token),
  ], "Use it");

  return {
    // Whether the user wants it.
    confirm(text) {
      say(question, text);
      return confirmation.ask();
    },
    // What was typed, or null.
    async token() {
      const isGiven = await tokens.ask();
      const given = token.value;
      token.value = "";
      return isGiven ? given : null;
    },
  };
}

function dialog(content, yes) {
  const form = h("form", { method: "dialog" }, content, h("div", { class: "buttons" },
    h("button", { value: "yes", class: "primary" }, yes),
    h("button", { value: "no", formnovalidate: true }, "No")));
  const element = h("dialog", {}, form);
  document.body.append(element);
  return {
    ask() {
      element.returnValue = "";
      element.showModal();
      return new Promise((resolve) => {
        element.addEventListener("close", () => resolve(element.returnValue === "yes"),
          { once: true });
      });
    },
  };
}
