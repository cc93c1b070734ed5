// SPDX-License-Identifier: Apache-2.0
// Plays a recording: buttons on top that go on from the time that is shown, one picture a second.
// Whoever shows a picture says so, and only then the next one is asked for: a slow browser, or a
// slow disk, plays more slowly and skips nothing.

import { address } from "../data/address.js";
import { get } from "../data/ask.js";
import { h, say, options } from "../parts/element.js";

const STEP_MS = 1000;
const SPEEDS = ["1", "10", "60"];

export function replay({ onError }) {
  let toMs = null;
  let timer = null;
  const button = h("button", { type: "button", onclick: () => (toMs === null ? play() : pause()) },
    "Play");
  const speed = h("select", { "aria-label": "speed of the replay" });
  options(speed, SPEEDS, SPEEDS.map((times) => `${times} ×`));
  speed.value = "10";
  const element = h("span", { class: "replay-buttons", hidden: true }, button, speed);

  // From the time that is shown; from the beginning, if that is the end.
  async function play() {
    try {
      const span = await get("/api/recording");
      if (span.to_ms === null) throw new Error(span.why);
      toMs = span.to_ms;
      say(button, "Pause");
      const at = Number(address.get("at") ?? toMs);
      if (at < toMs && address.get("at") !== undefined) next();
      else address.set({ at: String(span.from_ms) });
    } catch (error) {
      pause();
      onError(error.message);
    }
  }

  function pause() {
    clearTimeout(timer);
    timer = toMs = null;
    say(button, "Play");
  }

  function next() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      const at = Number(address.get("at"));
      if (at >= toMs) pause();
      else address.set({ at: String(Math.min(toMs, at + STEP_MS * Number(speed.value))) });
    }, STEP_MS);
  }

  return {
    element,
    play,
    pause,
    // A picture is shown, of the recording or of now.
    shown(isPast) {
      element.hidden = !isPast;
      if (!isPast) pause();
      else if (toMs !== null && timer === null) next();
    },
  };
}
