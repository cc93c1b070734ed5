// SPDX-License-Identifier: Apache-2.0
// The websocket /live: it keeps the newest model, and opens again when it was closed, or when
// nothing came for too long: nobody says that a tunnel hangs.
//
// The first frame is a snapshot, then come patches; each is acknowledged when it has been taken.
// A patch for another model than the one that is here is not taken: all of it is asked for again.
// What is no JSON ends the connection.
//
// Each wait before it opens again is twice the one before, up to some seconds. Only after a
// connection that has given models for a while it is short again: a server may close each one after
// its first model.

import { patched } from "./merge_patch.js";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 8000;
const LASTING_MS = 10000;

// onModel(model) is called for each model, onState(state, text) with "connecting", "live", "lost".
// silentMs() is how long nothing may come.
export function connect({ onModel, onState, silentMs }) {
  let has = null;
  let firstMs = null;
  let waitMs = FIRST_WAIT_MS;
  let said = "";

  function open() {
    onState("connecting", "");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/live`);
    let isOver = false;
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(lost, silentMs());
    };
    // A browser may take long to close one that is not answered.
    const lost = () => {
      if (isOver) return;
      isOver = true;
      clearTimeout(silence);
      socket.close();
      if (firstMs !== null && performance.now() - firstMs >= LASTING_MS) waitMs = FIRST_WAIT_MS;
      has = firstMs = null;
      onState("lost", said);
      setTimeout(open, waitMs * (0.75 + Math.random() / 2));
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    };
    socket.onmessage = (event) => {
      if (isOver) return;
      heard();
      const frame = parsed(event.data);
      if (frame !== null) take(socket, frame);
      else {
        said = "what came is no frame";
        lost();
      }
    };
    socket.onclose = lost;
    heard();
  }

  function take(socket, frame) {
    if (frame.type === "error") {
      said = frame.text;
      return;
    }
    if (frame.type === "snapshot") has = { number: frame.number, model: frame.model };
    else if (frame.type === "patch" && has !== null && has.number === frame.after)
      has = { number: frame.number, model: patched(has.model, frame.patch) };
    else {
      socket.send(JSON.stringify({ type: "resend" }));
      return;
    }
    said = "";
    firstMs ??= performance.now();
    socket.send(JSON.stringify({ type: "ack", number: has.number }));
    onState("live", "");
    onModel(has.model);
  }

  open();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
