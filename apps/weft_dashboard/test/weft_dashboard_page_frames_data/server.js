// SPDX-License-Identifier: Apache-2.0
// Stands between the page and its server, and runs before the page. The websocket gives a snapshot
// of `model', and then what a test says; questions are answered as `answers' has it.

// The model, which is the server's own unless a test says another one.
window.model = undefined;
// By path: JSON, or a function of the query that gives it. An error may have a status.
window.answers = {
  "/api/about": {
    node: "n001@host", acts: true, chaos: false, recording: true, events: false, period_ms: 1000,
  },
};
// The paths of all questions; how often the page has opened the websocket; what it waited each time
// before it did so again.
window.asked = [];
window.opened = 0;
window.waits = [];
// Whether each connection is closed after its first model.
window.isClosing = false;
// Time that has passed at once.
window.aheadMs = 0;

const { fetch: ask, setTimeout: later } = window;
const now = performance.now.bind(performance);
let isLost = false;

performance.now = () => now() + aheadMs;

// What is done every three seconds is done ten times a second, and nobody waits long for a
// connection. A page that hears nothing for 20 seconds goes on.
window.setTimeout = (act, ms = 0) => {
  if (isLost) waits.push(ms);
  if (ms >= 20000) return 0;
  return later(act, isLost ? ms / 50 : ms === 3000 ? 100 : ms);
};

window.fetch = async (path) => {
  const { pathname, searchParams } = new URL(path, location.href);
  asked.push(pathname);
  const answer = answers[pathname] ?? { error: `nobody has said what ${pathname} answers` };
  const json = typeof answer === "function" ? await answer(searchParams) : answer;
  const status = json.error === undefined ? 200 : json.status ?? 404;
  return new Response(JSON.stringify(json), { status });
};

window.times = (path) => asked.filter((other) => other === path).length;

window.WebSocket = class {
  constructor() {
    window.socket = this;
    this.number = 1;
    this.isOpen = false;
    opened += 1;
    this.begin();
  }

  async begin() {
    // The page says what it does with frames when it has the websocket.
    await undefined;
    window.model ??= await (await ask("/api/model")).json();
    this.give(JSON.stringify({ type: "snapshot", number: 1, model }));
    if (isClosing) this.lose();
    else this.isOpen = true;
  }

  give(text) {
    this.onmessage({ data: text });
  }

  lose() {
    isLost = true;
    this.isOpen = false;
    this.onclose();
    isLost = false;
  }

  send() {}

  close() {}
};

// What the server would send for a change of the model: a merge patch, which is a text.
window.patch = (text) => {
  const after = socket.number++;
  socket.give(`{"type":"patch","number":${after + 1},"after":${after},"patch":${text}}`);
};

// The model of that time, as a recording has it: there was another group then.
window.past = (query) => ({
  ...model, source: "recording", at_ms: Number(query.get("at")),
  groups: { then: { members: ["n001@host"], gateways: [] } },
});
