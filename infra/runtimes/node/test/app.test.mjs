// The repository's own HTTP application: the requests that it gets, the use of its answers, and its
// routes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import path from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { project, run, Runtime, token, until, write } from "./runtime.mjs";

const APP = `import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { logger } from "hono/logger";
import { streamSSE } from "hono/streaming";

const inner = new Hono();
inner.onError((error: Error, c: any) => c.text("inner: " + error.message, 418));
inner.get("/throws", () => { throw new Error("a mistake"); });

export const app = new Hono();
app.use(cors());
app.use("*", logger(() => {}));
app.use("/marked/*", async (c: any, next: any) => {
  c.header("x-marked", "yes");
  await next();
});
app.get("/marked/page", (c: any) => c.html("<p>marked</p>"));
app.on(["GET", "POST"], "/seen/:name", async (c: any) => c.json({
  name: c.req.param("name"), url: c.req.url, headers: c.req.header(), body: await c.req.text(), user: c.get("auth") ?? null,
}));
app.post("/echo", (c: any) => new Response(c.req.raw.body));
app.post("/unread", (c: any) => c.text("unread"));
app.post("/begun", async (c: any) => {
  await c.req.raw.body.getReader().read();
  return c.text("begun");
});
app.get("/cookies", (c: any) => {
  c.header("set-cookie", "a=1");
  c.header("set-cookie", "b=2; Path=/", { append: true });
  return c.redirect("/elsewhere", 307);
});
app.get("/events", (c: any) => streamSSE(c, async (stream: any) => {
  stream.onAbort(() => console.error("the reader has gone"));
  for (let i = 0; !stream.aborted; i++) {
    await stream.writeSSE({ data: String(i) });
    await stream.sleep(20);
  }
}));
app.get("/silent", () => new Response(new ReadableStream({
  start: (controller) => controller.enqueue(new TextEncoder().encode("once")),
  cancel: () => console.error("the silent stream is cancelled"),
})));
app.get("/after", (c: any) => {
  c.req.raw.signal.onabort = () => console.error("work after the answer is aborted");
  return c.text("answered");
});
app.get("/breaks", () => new Response(new ReadableStream({
  start: (controller) => controller.enqueue(new TextEncoder().encode("half")),
  pull: (controller) => controller.error(new Error("a mistake")),
})));
app.get("/throws", () => { throw new Error("a mistake"); });
app.get("/throws/nothing", () => { throw undefined; });
app.post("/gone/:x", (c: any) => {
  console.error("looked for " + c.req.param("x") + " for " + c.get("auth").user.identity);
  return c.notFound();
});
app.get("/nonsense", () => ({ status: "fine" }) as any);
app.get("/calls", async (c: any) => c.json(await new Client().assistants.search()));
app.get("/openapi.json", (c: any) => c.json({}));
app.get("/threads/:thread_id", (c: any) => c.json({ mine: c.req.param("thread_id") }));
app.all("/info", (c: any) => c.text("mine"));
app.get("/files/:name{.+\\\\.txt}", (c: any) => c.text(c.req.param("name")));
app.get("/maybe/:what?", (c: any) => c.text("maybe"));
app.get("/a.b/*/c/*", (c: any) => c.text("wild"));
app.get("/guarded", async (_c: any, next: any) => next(), (c: any) => c.text("guarded"));
app.route("/inner", inner);
app.notFound((c: any) => c.text("mine is not found", 404));
`;
const files = (app, http = {}) => ({
  "framework.json": { graphs: { agent: "../noop.mjs:builder" }, http: { app: "./src/app.ts:app", ...http } }, "src/app.ts": app,
});
const keys = { SLIPWAY_KEYS: "http" };

let served;
const cleanups = [];
before(async () => (served = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, write(files(APP)), keys)));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

const authorization = { "x-slipway-authorization": `Bearer ${token}` };
const visit = (path, { headers, ...options } = {}, runtime = served) => fetch(`${runtime.url}/app${path}`, { redirect: "manual", headers: { ...authorization, ...headers }, ...options });
const caller = (user) => ({ "x-slipway-caller": Buffer.from(JSON.stringify(user)).toString("base64").replaceAll("+", "-").replaceAll("/", "_") });

test("what the application is handed", async () => {
  const headers = { authorization: "Bearer of-the-client", "x-custom": "yes", "X-Slipway-Revision": "r", "x-slipway-server": "http://server.test", "content-type": "text/plain" };
  const seen = await (await visit("/seen/a%20b?x=1", { method: "POST", body: "text", headers })).json();
  assert.deepEqual([seen.name, seen.url, seen.body, seen.user], ["a b", `${served.url}/seen/a%20b?x=1`, "text", null]);
  assert.deepEqual([seen.headers.authorization, seen.headers["x-custom"]], ["Bearer of-the-client", "yes"]);
  assert.deepEqual(Object.keys(seen.headers).filter((name) => name.startsWith("x-slipway")), []);
  assert.ok(!JSON.stringify(seen).includes(token));
});

test("whom the platform has let in", async () => {
  const user = { identity: "ĝada?>", role: "author", permissions: ["read"] };
  const seen = await (await visit("/seen/a", { headers: caller(user) })).json();
  assert.deepEqual(seen.user, { user: { ...user, display_name: user.identity, is_authenticated: true }, scopes: ["read"] });
  const missing = await visit("/nothing", { headers: caller(user) });
  assert.deepEqual([missing.status, await missing.text()], [404, "mine is not found"]);
  const thrown = await visit("/inner/throws", { headers: caller(user) });
  assert.deepEqual([thrown.status, await thrown.text()], [418, "inner: a mistake"]);
});

test("a handler that finds nothing runs once, for the user", async () => {
  const gone = await visit("/gone/this", { method: "POST", headers: caller({ identity: "ada", permissions: [] }) });
  assert.deepEqual([gone.status, await gone.text()], [404, "mine is not found"]);
  assert.deepEqual(served.stderr.match(/looked for.*/g), ["looked for this for ada"]);
});

test("answers of all kinds", async () => {
  const page = await visit("/marked/page");
  assert.deepEqual([page.status, await page.text(), page.headers.get("x-marked"), page.headers.get("content-type")], [200, "<p>marked</p>", "yes", "text/html; charset=UTF-8"]);
  const moved = await visit("/cookies");
  assert.deepEqual([moved.status, moved.headers.get("location"), moved.headers.getSetCookie()], [307, "/elsewhere", ["a=1", "b=2; Path=/"]]);
  const head = await visit("/marked/page", { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  for (const [where, status, said] of [["/nothing", 404, /^mine is not found$/], ["/throws", 500, /^Internal Server Error$/], ["/inner/throws", 418, /^inner: a mistake$/], ["/nonsense", 500, /./], ["/throws/nothing", 500, /the agent could not answer/]]) {
    const answer = await visit(where, { signal: AbortSignal.timeout(10_000) });
    assert.deepEqual([where, answer.status], [where, status]);
    assert.match(await answer.text(), said);
  }
  await assert.rejects(visit("/breaks").then((answer) => answer.text()));
  assert.equal((await served.ping()).status, "Healthy");
});

test("attack: nobody but the platform reaches the application", async () => {
  for (const headers of [{}, { "x-slipway-authorization": "Bearer wrong" }, { "x-slipway-authorization": "", authorization: `Bearer ${token}` }]) {
    assert.equal((await fetch(`${served.url}/app/seen/a`, { headers })).status, 401);
  }
  // A path of the application leads nowhere else, however it is written.
  const climbing = await raw("POST", "/app/%2e%2e/invocations", { ...authorization, authorization: `Bearer ${token}` });
  assert.deepEqual(climbing, [404, "mine is not found"]);
  assert.equal((await raw("CONNECTED", "/app/seen/a", authorization))[0], 400);
  assert.equal((await raw("TRACE", "/app/seen/a", authorization))[0], 400);
  assert.equal((await fetch(`${served.url}/application`)).status, 404);
});

/** Sends a path as it is. */
async function raw(method, path, headers) {
  const { hostname, port } = new URL(served.url);
  const sent = request({ hostname, port, method, path, headers });
  sent.end();
  try {
    const [response] = await once(sent, "response");
    return [response.statusCode, await text(response)];
  } finally {
    sent.destroy();
  }
}

test("bodies are streamed both ways", async () => {
  const { hostname, port } = new URL(served.url);
  const sent = request({ hostname, port, method: "POST", path: "/app/echo", headers: { ...authorization, "transfer-encoding": "chunked" } });
  sent.write("one");
  const [response] = await once(sent, "response");
  const [first] = await once(response, "data");
  assert.equal(String(first), "one"); // before the request has ended
  sent.end("two");
  assert.equal(await text(response), "two");
});

test("a connection takes the next request although a body was not read to its end", async (t) => {
  const { hostname, port } = new URL(served.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const sockets = new Set();
  for (const path of ["/unread", "/begun", "/echo"]) {
    const body = "x".repeat(4 << 20);
    const sent = request({ agent, hostname, port, method: "POST", path: `/app${path}`, headers: { ...authorization, "content-length": body.length } });
    sent.on("socket", (socket) => sockets.add(socket)).end(body);
    const [response] = await once(sent, "response");
    assert.equal(await text(response), path === "/echo" ? body : path.slice(1));
    if (!sent.writableFinished) await once(sent, "finish");
  }
  assert.equal(sockets.size, 1);
});

test("a reader that goes ends the answer", async () => {
  const stop = new AbortController();
  const answer = await visit("/events", { signal: stop.signal });
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) if (chunk.includes("data: 2")) break;
  stop.abort();
  await until("the end", () => served.stderr.includes("the reader has gone"));
  assert.equal((await served.ping()).status, "Healthy");
});

test("an answer that is complete aborts nothing", async () => {
  assert.equal(await (await visit("/after", { headers: { connection: "close" } })).text(), "answered");
  assert.equal((await served.ping()).status, "Healthy");
  assert.doesNotMatch(served.stderr, /work after the answer is aborted/);
});

test("a reader that goes ends an answer that is silent", async () => {
  const stop = new AbortController();
  const answer = await visit("/silent", { signal: stop.signal });
  await answer.body.getReader().read();
  stop.abort();
  await until("the end", () => served.stderr.includes("the silent stream is cancelled"));
});

test("its client without a URL reaches the server for the user", async (t) => {
  const seen = [];
  const server = createServer((got, response) => {
    seen.push({ url: got.url, key: got.headers["x-api-key"], caller: got.headers["x-slipway-caller"] });
    response.setHeader("content-type", "application/json").end("[]");
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const user = { identity: "ada", permissions: [] };
  const answer = await visit("/calls", { headers: { ...caller(user), "x-slipway-server": `http://127.0.0.1:${server.address().port}/d/1` } });
  assert.deepEqual(await answer.json(), []);
  assert.deepEqual([seen.length, seen[0].url, seen[0].key], [1, "/d/1/assistants/search", token]);
  assert.equal(JSON.parse(Buffer.from(seen[0].caller, "base64url")).identity, "ada");
});

test("its routes are described", async () => {
  const { routes } = await (await served.post({ operation: "describe" })).json();
  const found = Object.fromEntries(routes.map(({ methods, pattern }) => [pattern, methods.join(" ")]));
  assert.equal(found["^/threads/(?:[^/]+)$"], "GET HEAD");
  assert.equal(found["^/info$"], "");
  assert.equal(found["^/guarded$"], "GET HEAD");
  assert.equal(found["^/inner/throws$"], "GET HEAD");
  assert.deepEqual(routes.filter(({ pattern }) => pattern === "^/seen/(?:[^/]+)$").map(({ methods }) => methods), [["GET", "HEAD"], ["POST"]]);
  assert.deepEqual(Object.keys(found).filter((pattern) => /openapi|marked\/\*|\(\?:\/\.\*\)\?\$$/.test(pattern)), ["^/a\\.b/[^/]+/c(?:/.*)?$"]);
  for (const [path, matches] of [["/files/a/b.txt", true], ["/files/a", false], ["/maybe", true], ["/maybe/x", true], ["/maybe/x/y", false], ["/a.b/1/c", true], ["/a.b/1/c/d/e", true], ["/axb/1/c", false]]) {
    assert.equal(routes.some(({ pattern }) => new RegExp(pattern).test(path)), matches, path);
    assert.equal((await visit(path)).status, matches ? 200 : 404, path); // as Hono sees it
  }
});

test("a prefix of all paths", async (t) => {
  const runtime = await Runtime.start(t, write(files(APP, { mount_prefix: "/api/v1/" })), keys);
  assert.equal((await (await visit("/api/v1/seen/a?b", {}, runtime)).json()).url, `${runtime.url}/seen/a?b`);
  const { routes } = await (await runtime.post({ operation: "describe" })).json();
  assert.ok(routes.some(({ pattern }) => pattern === "^/api/v1/info$"), JSON.stringify(routes));
});

test("whatever has fetch is served", async (t) => {
  const app = 'export const app = { fetch: (request: Request) => new Response(request.method + " " + new URL(request.url).pathname) };';
  const runtime = await Runtime.start(t, write(files(app)), keys);
  assert.equal(await (await visit("/threads", { method: "DELETE" }, runtime)).text(), "DELETE /threads");
  assert.deepEqual((await (await runtime.post({ operation: "describe" })).json()).routes, []);
});

test("an application whose paths all have a base gets the user, too", async (t) => {
  const app = `import { Hono } from "hono";
export const app = new Hono().basePath("/base");
app.get("/:any", (c: any) => c.text(c.req.path + " for " + c.get("auth").user.identity));
`;
  const runtime = await Runtime.start(t, write(files(app)), keys);
  const headers = caller({ identity: "ada", permissions: [] });
  assert.equal(await (await visit("/base/x", { headers }, runtime)).text(), "/base/x for ada");
  assert.equal((await visit("/x", { headers }, runtime)).status, 404);
});

test("what cannot be served", async () => {
  const hono = 'import { Hono } from "hono";\nexport const app = new Hono();\n';
  const mine = "async function mine(c: any, next: any) { await next(); }\n";
  for (const [app, environment, said] of [
    [APP, {}, "http: is not served"],
    ["export const app = 1;", keys, 'http.app: "app" of ./src/app.ts is no application'],
    ['import "nothing-like-it";', keys, "http.app: "],
    [`${hono}${mine}app.use(mine);`, keys, "has the middleware mine at /*, which would see"],
    [`${hono}app.use("/threads/*", async (c: any, next: any) => next());`, keys, "(a function without a name) at /threads/*"],
    [`${hono}${mine}app.use("/:any/x", mine);`, keys, "mine at /:any/x"],
    [`${hono}${mine}app.get("*", mine);`, keys, "mine at /*"],
    [`${hono}app.mount("/", () => new Response());`, keys, " at /*"],
  ]) {
    const { code, stderr } = await run(["--config", path.join(project, write(files(app)))], { env: { PATH: process.env.PATH, ...environment } });
    assert.deepEqual([code, stderr.includes(said)], [1, true], stderr);
  }
});

test("an answer under way may finish after SIGTERM", async (t) => {
  const runtime = await Runtime.start(t, write(files(APP)), keys);
  const { hostname, port } = new URL(runtime.url);
  const sent = request({ hostname, port, method: "POST", path: "/app/echo", headers: authorization });
  sent.write("one");
  const [response] = await once(sent, "response");
  await once(response, "data");
  runtime.child.kill("SIGTERM");
  await until("the end of listening", () => fetch(`${runtime.url}/ping`, { headers: { connection: "close" } }).then(() => false, () => true));
  sent.end("two");
  assert.equal(await text(response), "two");
  assert.deepEqual(await runtime.exited, [0, null]);
});
