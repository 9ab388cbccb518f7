// Drives assistants, crons and the store through the JavaScript SDK. Arguments: the agent's URL,
// the key.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { answered, ask, client, create, fast, tell, types } = require("./story.cjs");

const defaultId = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const ids = (list, member) => list.map((one) => one[member]);

async function assistants() {
  const metadata = { test: randomUUID() };
  const made = await client.assistants.create({ graphId: "agent", config: fast, metadata, name: "fast", description: "answers at once" });
  const { assistant_id: assistantId } = made;
  assert.deepEqual(await client.assistants.create({ graphId: "agent", assistantId, ifExists: "do_nothing" }), made);
  await assert.rejects(client.assistants.create({ graphId: "agent", assistantId }), { status: 409 });
  assert.deepEqual(types(await client.runs.wait(await create(), assistantId, { input: ask("sf") })), answered);

  const config = { configurable: { ...fast.configurable, answer_words: 3 } };
  const second = await client.assistants.update(assistantId, { graphId: "agent", config, name: "short" });
  assert.deepEqual([second.version, second.name, second.description, second.metadata], [2, "short", "answers at once", metadata]);
  const { messages } = await client.runs.wait(await create(), assistantId, { input: ask("sf") });
  assert.equal(messages.at(-1).content.split(" ").length, 3);
  assert.deepEqual(ids(await client.assistants.getVersions(assistantId), "version"), [2, 1]);
  await client.assistants.setLatest(assistantId, 1);
  const latest = await client.assistants.get(assistantId);
  assert.deepEqual([latest.version, latest.name, latest.config], [1, "fast", fast]);

  assert.deepEqual(ids(await client.assistants.search({ metadata }), "assistant_id"), [assistantId]);
  const page = await client.assistants.search({ graphId: "agent", limit: 1, includePagination: true });
  assert.deepEqual([page.assistants.length, page.next], [1, "1"]);
  assert.equal(await client.assistants.count({ metadata }), 1);
  await client.assistants.delete(assistantId);
  await assert.rejects(client.assistants.get(assistantId), { status: 404 });
}

/** The default assistant of the graph, whose id follows from the graph's name. */
async function described() {
  assert.equal((await client.assistants.get(defaultId)).graph_id, "agent");
  const { nodes } = await client.assistants.getGraph(defaultId);
  for (const name of ["model", "tools"]) assert.ok(ids(nodes, "id").includes(name), name);
  const schemas = await client.assistants.getSchemas(defaultId);
  assert.deepEqual([schemas.graph_id, "messages" in schemas.input_schema.properties], ["agent", true]);
}

async function crons() {
  const metadata = { test: randomUUID() };
  const thread = await create();
  const stateless = await client.crons.create("agent", { schedule: "0 0 1 1 *", input: ask("sf"), metadata, onRunCompleted: "keep" });
  const onThread = await client.crons.createForThread(thread, "agent", { schedule: "0 9 * * 1", input: ask("sf"), metadata, enabled: false });
  assert.deepEqual([stateless.thread_id, onThread.thread_id], [null, thread]);
  assert.match(stateless.next_run_date, /-01-01T00:00:00/);
  assert.deepEqual(ids(await client.crons.search({ threadId: thread }), "cron_id"), [onThread.cron_id]);
  assert.deepEqual(await client.crons.search({ threadId: thread, enabled: true }), []);
  const firing = await client.crons.search({ assistantId: defaultId, enabled: true, sortBy: "created_at", sortOrder: "desc", limit: 1000, select: ["cron_id"] });
  assert.ok(ids(firing, "cron_id").includes(stateless.cron_id));
  assert.equal(await client.crons.count({ threadId: thread }), 1);
  const changed = await client.crons.update(onThread.cron_id, { schedule: "30 8 * * *", enabled: true, endTime: "2100-01-01T00:00:00Z" });
  assert.deepEqual([changed.schedule, changed.enabled, changed.next_run_date.slice(11, 16)], ["30 8 * * *", true, "08:30"]);
  for (const cron of [stateless, onThread]) await client.crons.delete(cron.cron_id);
  assert.equal(await client.crons.count({ threadId: thread }), 0);
  await assert.rejects(client.crons.delete(stateless.cron_id), { status: 404 });
}

async function store() {
  const root = randomUUID();
  const kept = [["ann", "tea", { likes: "tea" }], ["ann", "cat", { has: "a cat" }], ["bob", "tea", { likes: "tea" }]];
  for (const [user, key, value] of kept) await client.store.putItem([root, user], key, value);
  const item = await client.store.getItem([root, "ann"], "cat");
  assert.deepEqual([item.namespace, item.key, item.value], [[root, "ann"], "cat", { has: "a cat" }]);
  const { items } = await client.store.searchItems([root], { filter: { likes: "tea" } });
  assert.deepEqual(items.map(({ namespace }) => namespace[1]).sort(), ["ann", "bob"]);
  assert.equal((await client.store.searchItems([root], { limit: 2, offset: 2 })).items.length, 1);
  const namespaces = async (options) => (await client.store.listNamespaces({ prefix: [root], ...options })).namespaces.sort();
  assert.deepEqual(await namespaces(), [[root, "ann"], [root, "bob"]]);
  assert.deepEqual(await namespaces({ maxDepth: 1 }), [[root]]);
  await client.store.deleteItem([root, "bob"], "tea");
  assert.deepEqual(await namespaces(), [[root, "ann"]]);
  assert.equal(await client.store.getItem([root, "bob"], "tea"), null);
}

tell(assistants, described, crons, store);
