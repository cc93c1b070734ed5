// SPDX-License-Identifier: Apache-2.0
// The tables of a node's closer look.

import { table } from "../parts/table.js";
import { address } from "../data/address.js";
import { bytes, count, micros } from "../parts/format.js";

const toNode = (row) => address.with({ view: "node", node: row.node });

export const processTable = () => table({
  caption: "Busiest and largest processes, in a fifth of a second",
  sortBy: 2,
  isDown: true,
  key: (row) => row.pid,
  columns: [
    { title: "Process", value: (row) => row.pid },
    { title: "Name", value: (row) => row.name },
    { title: "Reductions", value: (row) => row.reductions, text: count, isNumber: true },
    { title: "Memory", value: (row) => row.memory_bytes, text: bytes, isNumber: true },
    { title: "Messages", value: (row) => row.messages, text: count, isNumber: true },
    { title: "Migrations", value: (row) => row.migrations ?? undefined, text: count,
      isNumber: true },
    { title: "Now in", value: (row) => row.current },
  ],
});

export const linkTable = () => table({
  caption: "Links",
  key: (row) => row.node,
  columns: [
    { title: "To", value: (row) => row.node, link: toNode },
    { title: "State", value: (row) => row.state },
    { title: "Round trip", value: (row) => row.rtt_us, text: micros, isNumber: true },
    { title: "Queue", value: (row) => row.queued_bytes, text: bytes, isNumber: true },
    { title: "Lanes", value: (row) => row.lanes.length, isNumber: true },
    { title: "Times up", value: (row) => row.ups, isNumber: true },
    { title: "Last error", value: (row) => row.last_error },
  ],
});

export const sessionTable = () => table({
  caption: "Sessions",
  key: (row) => row.node,
  columns: [
    { title: "With", value: (row) => row.node, link: toNode },
    { title: "Over", value: (row) => row.next_hop },
    { title: "State", value: (row) => row.state },
    { title: "Out", value: (row) => row.bytes_out, text: bytes, isNumber: true },
    { title: "In", value: (row) => row.bytes_in, text: bytes, isNumber: true },
    { title: "Resumes", value: (row) => row.resumes, isNumber: true },
    { title: "Last error", value: (row) => row.last_error },
  ],
});
