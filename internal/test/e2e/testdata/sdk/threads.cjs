// Drives threads through the JavaScript SDK. Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { answered, ask, client, create, fast, slow, tell, types } = require("./story.cjs");

const ids = (threads) => threads.map((thread) => thread.thread_id);
const answer = (thread, city) => client.runs.wait(thread, "agent", { input: ask(city), config: fast });

async function found() {
  const metadata = { test: randomUUID() };
  const threads = [];
  for (const n of [0, 1, 2]) threads.push(await create({ metadata: { ...metadata, n } }));
  await answer(threads[0], "sf");
  await client.runs.create(threads[1], "agent", { input: ask("sf"), config: slow });
  const sorted = { metadata, sortBy: "created_at", sortOrder: "asc" };
  assert.deepEqual(ids(await client.threads.search(sorted)), threads);
  const pages = [await client.threads.search({ ...sorted, limit: 2 }), await client.threads.search({ ...sorted, limit: 2, offset: 2 })];
  assert.deepEqual(pages.map(ids), [threads.slice(0, 2), threads.slice(2)]);
  assert.deepEqual(ids(await client.threads.search({ metadata, status: "busy" })), [threads[1]]);
  assert.deepEqual(await client.threads.search({ ids: [threads[2]], select: ["thread_id"] }), [{ thread_id: threads[2] }]);
  assert.deepEqual([await client.threads.count({ metadata }), await client.threads.count({ metadata, status: "busy" })], [3, 1]);
  await Promise.all(threads.map((thread) => client.threads.delete(thread)));
  assert.equal(await client.threads.count({ metadata }), 0);
}

async function changed() {
  const thread = await create({ metadata: { a: 1 } });
  const { metadata } = await client.threads.update(thread, { metadata: { b: 2 }, ttl: 60 });
  assert.deepEqual(metadata, { a: 1, b: 2 });
  await client.threads.delete(thread);
  await assert.rejects(client.threads.get(thread), { status: 404 });
  await assert.rejects(client.threads.delete(thread), { status: 404 });
}

async function copied() {
  const thread = await create({ metadata: { from: "a test" } });
  await answer(thread, "sf");
  const copy = await client.threads.copy(thread);
  assert.deepEqual([copy.metadata.from, copy.values], ["a test", (await client.threads.get(thread)).values]);
  assert.deepEqual(types(await answer(copy.thread_id, "nyc")), [...answered, ...answered]);
  assert.deepEqual(types((await client.threads.getState(thread)).values), answered);
}

/** By the client, which then looks back. */
async function written() {
  const thread = await create();
  await answer(thread, "sf");
  const wrong = { type: "ai", id: "wrong", content: "It is raining cats." };
  const { checkpoint } = await client.threads.updateState(thread, { values: { messages: [wrong] }, asNode: "model" });
  assert.deepEqual(types((await client.threads.getState(thread, checkpoint)).values), [...answered, "ai"]);
  const history = await client.threads.getHistory(thread, { limit: 2, before: { configurable: checkpoint } });
  assert.deepEqual(history.map((state) => types(state.values)), [answered, answered.slice(0, 3)]);
  const [update] = await client.threads.getHistory(thread, { metadata: { source: "update" } });
  assert.equal(update.checkpoint.checkpoint_id, checkpoint.checkpoint_id);
  const [same, ...others] = await client.threads.getHistory(thread, { checkpoint });
  assert.deepEqual([same, others], [update, []]);
}

/** All runs of a thread, one after the other. */
async function streamed() {
  const thread = await create();
  const runs = [];
  for (const city of ["sf", "nyc"]) runs.push(await client.runs.create(thread, "agent", { input: ask(city), config: fast }));
  const ended = [];
  let last;
  for await (const { event, data } of client.threads.joinStream(thread, { lastEventId: "-", streamMode: ["run_modes"] })) {
    if (event === "values") last = data;
    if (event === "metadata" && data.status === "run_done") ended.push(data.run_id);
    if (ended.length === 2) break;
  }
  assert.deepEqual(ended, runs.map((run) => run.run_id));
  assert.deepEqual(last, (await client.threads.getState(thread)).values);
}

/** With a history from elsewhere. */
async function begun() {
  const step = (type, asNode) => ({ updates: [{ values: { messages: [{ type, content: type }] }, asNode }] });
  const thread = await create({ graphId: "agent", supersteps: [step("human", "__input__"), step("ai", "model")] });
  assert.deepEqual((await client.threads.getHistory(thread)).map((state) => types(state.values)), [["human", "ai"], ["human"], []]);
}

tell(found, changed, copied, written, streamed, begun);
