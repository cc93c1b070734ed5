// SPDX-License-Identifier: Apache-2.0
// The websocket /live: it keeps the newest model, and opens again when it was closed, or when
// nothing came for too long: nobody says that a tunnel hangs.
//
// The first frame is a snapshot, then come patches; each is acknowledged when it has been taken.
// A patch for another model than the one that is here is not taken: all of it is asked for again.

import { patched } from "./merge_patch.js";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 8000;

// onModel(model) is called for each model, onState(state, text) with "connecting", "live", "lost".
// silentMs() is how long nothing may come.
export function connect({ onModel, onState, silentMs }) {
  let has = null;
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
      has = null;
      onState("lost", said);
      setTimeout(open, waitMs * (0.75 + Math.random() / 2));
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    };
    socket.onmessage = (event) => {
      if (isOver) return;
      heard();
      take(socket, JSON.parse(event.data));
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
    waitMs = FIRST_WAIT_MS;
    socket.send(JSON.stringify({ type: "ack", number: has.number }));
    onState("live", "");
    onModel(has.model);
  }

  open();
}
