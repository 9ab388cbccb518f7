import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import path from "node:path";
import { mock, test } from "node:test";
import { pathToFileURL } from "node:url";

// Needs no package, so that Go's tests can run it, too.
const { Outlet } = await import(pathToFileURL(path.join(process.env.RUNTIME_DIR, "src", "outlet.mjs")).href);

/** What a response has of which an outlet makes use. */
class Response extends EventEmitter {
  written = [];
  writeHead() {}
  flushHeaders() {}
  cork() {}
  uncork() {}
  write(text) {
    this.written.push(text);
  }
}

test("an agent that has nothing to say beats each 15 s until its answer has ended", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    const response = new Response();
    const outlet = new Outlet(response);
    mock.timers.tick(14_999);
    assert.deepEqual(response.written, []);
    mock.timers.tick(30_001);
    assert.deepEqual(response.written, [": heartbeat\n\n", ": heartbeat\n\n", ": heartbeat\n\n"]);
    outlet.emit("values", "{}");
    assert.equal(response.written.at(-1), "event: values\ndata: {}\n\n");
    response.emit("close");
    mock.timers.tick(60_000);
    assert.equal(response.written.length, 4);
  } finally {
    mock.timers.reset();
  }
});
