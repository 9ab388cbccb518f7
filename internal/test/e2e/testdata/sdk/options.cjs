// Drives the options of a run, and runs without a thread, through the JavaScript SDK. Arguments:
// the agent's URL, the key.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { once } = require("node:events");
const { createServer } = require("node:http");
const { answered, ask, client, collect, create, fast, slow, tell, types } = require("./story.cjs");

const sf = { input: ask("sf"), config: fast };
const body = async (request) => JSON.parse(Buffer.concat(await request.toArray()));

/** The receiver listens here, at a private address. */
async function webhook() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const calls = once(server, "request");
  const thread = await create();
  const run = await client.runs.create(thread, "agent", { ...sf, webhook: `http://127.0.0.1:${server.address().port}/told` });
  const [request, response] = await calls;
  const told = await body(request);
  response.end();
  server.close();
  assert.deepEqual([told.run_id, told.thread_id, told.status], [run.run_id, thread, "success"]);
  assert.deepEqual(types(told.values), answered);
  assert.ok(told.run_started_at <= told.run_ended_at && told.run_ended_at <= told.webhook_sent_at, JSON.stringify(told));
}

async function afterSeconds() {
  const thread = await create();
  const run = await client.runs.create(thread, "agent", { ...sf, afterSeconds: 1 });
  assert.equal(run.status, "pending");
  assert.equal((await client.threads.get(thread)).status, "busy");
  assert.deepEqual(types(await client.runs.join(thread, run.run_id)), answered);
  const [answer] = await client.threads.getHistory(thread);
  assert.ok(answer.created_at >= run.created_at, "it has not waited");
  const delayed = await client.runs.create(thread, "agent", { ...sf, afterSeconds: 3600 });
  await client.runs.cancel(thread, delayed.run_id);
  assert.equal((await client.runs.get(thread, delayed.run_id)).status, "interrupted");
}

async function ifNotExists() {
  const thread = randomUUID();
  await assert.rejects(client.runs.create(thread, "agent", { ...sf, ifNotExists: "reject" }), { status: 404 });
  assert.deepEqual(types(await client.runs.wait(thread, "agent", { ...sf, ifNotExists: "create" })), answered);
  assert.equal((await client.threads.get(thread)).status, "idle");
}

async function metadata() {
  const thread = await create();
  const { run_id: run } = await client.runs.create(thread, "agent", { ...sf, metadata: { from: "a test" } });
  await client.runs.join(thread, run);
  assert.equal((await client.runs.get(thread, run)).metadata.from, "a test");
  await client.runs.delete(thread, run);
  await assert.rejects(client.runs.get(thread, run), { status: 404 });
  assert.deepEqual(types((await client.threads.getState(thread)).values), answered);
}

async function withoutAThread() {
  assert.deepEqual(types(await client.runs.wait(null, "agent", sf)), answered);
  const parts = await collect(client.runs.stream(null, "agent", { ...sf, onCompletion: "delete" }));
  assert.deepEqual(types(parts.at(-1).data), answered);
  const run = await client.runs.create(null, "agent", sf); // can be joined for a while
  assert.deepEqual(types(await client.runs.join(run.thread_id, run.run_id)), answered);
  assert.deepEqual(types((await collect(client.runs.joinStream(null, run.run_id, { lastEventId: "-1" }))).at(-1).data), answered);
}

async function batch() {
  const runs = await client.runs.createBatch(["sf", "rome", "oslo"].map((city) => ({ assistantId: "agent", input: ask(city), config: fast, on_completion: "keep" })));
  assert.equal(new Set(runs.map((run) => run.thread_id)).size, 3);
  for (const run of runs) assert.deepEqual(types(await client.runs.join(run.thread_id, run.run_id)), answered);
  assert.equal((await client.threads.get(runs[0].thread_id)).status, "idle");
}

async function onDisconnect() {
  const thread = await create();
  const page = new AbortController();
  let run;
  const parts = client.runs.stream(thread, "agent", {
    input: ask("sf"), config: slow, onDisconnect: "cancel", signal: page.signal, onRunCreated: ({ run_id: id }) => { run = id; },
  });
  const read = async () => {
    for await (const { event, data } of parts) if (event === "values" && types(data).length === 3) page.abort();
  };
  await read().catch((error) => assert.equal(error.name, "AbortError"));
  await client.runs.join(thread, run);
  assert.equal((await client.runs.get(thread, run)).status, "interrupted");
}

tell(webhook, afterSeconds, ifNotExists, metadata, withoutAThread, batch, onDisconnect);
