import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { storeOf } = await import(pathToFileURL(path.join(process.env.RUNTIME_DIR, "src", "store.mjs")).href);
const Store = storeOf({ checkpoints: { BaseStore: class {} } });

const puts = (n) => Array.from({ length: n }, (_, i) => ({ namespace: ["a"], key: `${i}`, value: { i } }));

test("calls of all runs share few connections, also beside a run that was stopped", async (t) => {
  const keys = new Set();
  let [open, most] = [0, 0];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    keys.add(JSON.parse(text).key);
    response.writeHead(204).end();
  });
  server.on("connection", (socket) => {
    most = Math.max(most, ++open);
    socket.on("close", () => open--);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${server.address().port}`;
  const stopped = new AbortController();
  const failed = assert.rejects(new Store(url, "", stopped.signal).batch(puts(200)), { name: "AbortError" });
  stopped.abort();
  const [one, other] = [1, 2].map(() => new Store(url, "", new AbortController().signal));
  await Promise.all([failed, one.batch(puts(300)), other.batch(puts(300))]);
  assert.equal(keys.size, 300);
  assert.ok(most <= 3 * 64, `${most} connections`); // some are opened while others become free
});
