// The process ends although the repository's own application does not end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Runtime, token, until, write } from "./runtime.mjs";

const APP = `import { Hono } from "hono";
import { streamSSE } from "hono/streaming";

export const app = new Hono();
app.get("/events", (c: any) => streamSSE(c, async (stream: any) => {
  stream.onAbort(() => console.error("the events are over"));
  await stream.writeSSE({ data: "first" });
  await new Promise((resolve) => stream.onAbort(resolve));
}));
app.get("/hangs", () => {
  console.error("it hangs");
  return new Promise(() => {});
});
`;
const files = { "framework.json": { graphs: { agent: "../noop.mjs:builder" }, http: { app: "./src/app.ts:app" } }, "src/app.ts": APP };
const headers = { "x-slipway-authorization": `Bearer ${token}` };

test("an application that does not end does not keep the process after SIGTERM", { timeout: 60_000 }, async (t) => {
  const start = () => Runtime.start(t, write(files), { SLIPWAY_KEYS: "http" });
  const [streaming, hanging] = await Promise.all([start(), start()]);
  const events = (await fetch(`${streaming.url}/app/events`, { headers })).body.getReader();
  await events.read();
  const refused = assert.rejects(fetch(`${hanging.url}/app/hangs`, { headers }));
  await until("the request", () => hanging.stderr.includes("it hangs"));
  for (const { child } of [streaming, hanging]) child.kill("SIGTERM");
  await assert.rejects(events.read());
  await refused;
  assert.deepEqual(await Promise.all([streaming.exited, hanging.exited]), [[0, null], [0, null]]);
  assert.match(streaming.stderr, /the events are over/);
});
