// The wire: a WebSocket to the loopback server, or the model of a notebook widget, or a stored page.
import { decodeFrame } from "./run.js";

export const VERSION = 1;

// Keeps one draft in flight and the newest waiting; a rest of 150 ms asks for the full run.
export class Scheduler {
  constructor(transport, tell) {
    Object.assign(this, { transport, tell, id: 0, inFlight: null, waiting: null, newest: 0 });
    this.log = [];
    this.answers = new Map();
    transport.onframe = (buffer) => this.take(buffer);
  }

  send(kind, fields) {
    this.id += 1;
    this.transport.send(JSON.stringify({ v: VERSION, id: this.id, kind, ...fields }));
    return this.id;
  }

  ask(kind, fields, answer) { this.answers.set(this.send(kind, fields), answer); }

  // a new state: a draft now if the hand moves, the full run after a rest
  change(state, moved) {
    clearTimeout(this.timer);
    this.waiting = { state, moved };
    this.flush();
    this.timer = setTimeout(() => this.full(state), 150);
  }

  flush() {
    if (this.waiting === null) return;
    if (this.inFlight !== null && this.inFlight.kind === "draft") return; // a full run gives way
    const { state, moved } = this.waiting;
    this.waiting = null;
    this.begin("draft", state, moved);
  }

  begin(kind, state, moved) {
    const id = this.send(kind, { state });
    const entry = { id, kind, state, moved: moved ?? performance.now(), sent: performance.now() };
    this.inFlight = entry;
    this.newest = id;
    this.log.push(entry);
    if (this.log.length > 400) this.log.shift();
  }

  full(state) {
    this.waiting = null;
    this.begin("full", state);
  }

  reset() {
    clearTimeout(this.timer);
    this.inFlight = null;
    this.waiting = null;
  }

  take(buffer) {
    const { header, arrays } = decodeFrame(buffer);
    const answer = this.answers.get(header.id);
    if (answer) {
      this.answers.delete(header.id);
      answer(header);
      return;
    }
    const entry = this.inFlight;
    const mine = entry !== null && header.id === entry.id;
    if (mine) {
      entry.received = performance.now();
      entry.ms = header.ms;
      entry.outcome = header.kind;
      this.inFlight = null;
    }
    // answers to older questions are dropped: the last state wins
    if (mine || header.id === 0 || (header.kind === "slow" && header.id === this.slowId)) {
      this.tell(header, arrays, mine ? entry : null);
    }
    if (mine) this.flush();
  }

  slow(state) { this.slowId = this.send("slow", { state }); }
}

export class Socket {
  constructor(token, { onopen, onclose }) {
    Object.assign(this, { token, onopen, onclose, waits: 500, queue: [] });
    this.connect();
  }

  connect() {
    const socket = new WebSocket(`ws://${location.host}/ws?token=${encodeURIComponent(this.token)}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { this.waits = 500; this.onopen(); };
    socket.onmessage = (event) => this.onframe(event.data);
    socket.onclose = (event) => {
      this.onclose(event.code);
      if (event.code === 4001) return; // opened in another tab
      setTimeout(() => this.connect(), this.waits);
      this.waits = Math.min(this.waits * 1.6, 5000);
    };
    this.socket = socket;
  }

  send(text) { if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text); }
}

// a notebook: messages travel through the kernel
export class Model {
  constructor(model) {
    this.model = model;
    model.on("msg:custom", (_, buffers) => {
      const view = buffers[0];
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      this.onframe(bytes.slice().buffer);
    });
  }

  send(text) { this.model.send({ text }); }
}
