// A page without Python: the frames of one run are stored in it.
import { App } from "./app.js";
import { decodeFrame } from "./run.js";

const stored = JSON.parse(document.getElementById("stored").textContent);
const alone = new App(document.getElementById("app"), null, { frozen: true });
alone.root.explorer = alone;
alone.start(stored.state);
for (const text of stored.frames) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const { header, arrays } = decodeFrame(bytes.buffer);
  alone.take(header, arrays, null);
}
