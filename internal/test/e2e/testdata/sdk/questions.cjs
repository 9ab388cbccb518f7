// Answers the questions of graphs, in the thread-centric protocol. Arguments: the URL of an agent
// that follows scripts, the key, the transport.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const { client: pages, deep, isRoot, said, stream, transport, until, webSocketFactory } = require("./threads-v3.cjs");
const { client, create, tell } = require("./story.cjs");

const pauses = [
  { event: "updates|inner:1", data: { n: null } },
  { event: "interrupt", data: [{ id: "q1", value: "May I?" }, { id: "q2", value: "And now?" }] },
];
const goesOn = [{ event: "updates", data: { model: { messages: [{ type: "ai", id: "m1", content: "Done" }] } } }];
const newest = process.env.SDK_MODULES.includes("js-threads");
const following = (script) => ({ configurable: { script } });
/** opened is a page of a thread that is there, which sees all that comes. */
async function opened(id, channels) {
  const page = stream(id);
  return { page, subscription: await page.subscribe({ channels }) };
}

/** refused sends a strict answer that the thread does not wait for. It becomes a run that fails. */
async function refused(page, id, subscriptions, pending) {
  const answer = page.respondInput({ namespace: [], interrupt_id: id, response: true }, { strictResume: true });
  if (!newest) return assert.rejects(answer); // older releases send an answer that is not strict
  await answer;
  for (const subscription of subscriptions) {
    const { data } = (await until(subscription, (event) => isRoot(event) && said(event) === "failed")).at(-1).params;
    assert.deepEqual([data.interrupt_ids, data.pending_ids], [[id], pending]);
  }
}

/** asked pauses for two questions in one page, which another page answers together. */
async function asked() {
  const id = await create();
  const channels = ["lifecycle", "input", "updates"];
  const { page: one, subscription } = await opened(id, channels);
  const { page: two, subscription: others } = await opened(id, channels);
  await one.run.start({ input: { messages: [] }, config: following(pauses) });
  for (const page of [subscription, others]) {
    const seen = await until(page, (event) => isRoot(event) && said(event) === "interrupted");
    const questions = seen.filter(({ method }) => method === "input.requested").map(({ params }) => [params.data.interrupt_id, params.data.payload]);
    assert.deepEqual(questions, [["q1", "May I?"], ["q2", "And now?"]]);
    assert.ok(seen.some((event) => event.method === "lifecycle" && said(event) === "started" && event.params.namespace[0] === "inner:1"));
  }
  await refused(two, "q3", [subscription, others], ["q1", "q2"]);
  assert.equal((await client.threads.get(id)).status, "interrupted");
  const responses = [{ namespace: [], interrupt_id: "q1", response: true }, { namespace: [], interrupt_id: "q2", response: false }];
  await two.respondInput({ responses, config: following(goesOn) });
  for (const page of [subscription, others]) {
    const after = await until(page, (event) => isRoot(event) && said(event) === "completed");
    const told = after.filter(({ method }) => method === "input.answered").map(({ params }) => params.data.interrupt_ids);
    assert.deepEqual(told, newest ? [["q1", "q2"]] : []); // older releases do not hand it on
  }
  await refused(one, "q1", [subscription, others], []);
  const { values } = await client.threads.getState(id);
  assert.equal(values.messages.at(-1).content, "Done");
  await Promise.all([one.close(), two.close()]);
}

/** subgraphs has what a subgraph says, by its own handle. */
async function subgraphs() {
  const thread = stream();
  const { run_id } = await thread.run.start({ input: { messages: [] }, config: following(deep) });
  for await (const { name, namespace, messages } of thread.subgraphs) {
    assert.deepEqual([name, namespace], ["inner", ["inner:1"]]);
    for await (const message of messages) {
      assert.equal(String(await message.text), "It is blue.");
      await client.runs.cancel(thread.threadId, run_id, true);
      return thread.close();
    }
  }
  throw new Error("there was no subgraph");
}

/**
 * named are things that a graph says under a name, to readers of the name alone and to readers of
 * all that it says.
 */
async function named() {
  const says = [{ name: "progress", payload: 1 }, { name: "other", payload: 2 }, "plain", { name: "progress", payload: 3 }];
  const page = stream();
  await page.run.start({ input: { messages: [] }, config: following(says.map((data) => ({ event: "custom", data }))) });
  const other = stream(page.threadId); // a page has one connection for all its subscriptions
  const [some, all] = await Promise.all([page.subscribe({ channels: ["custom:progress"] }), other.subscribe({ channels: ["custom"] })]);
  const has = (count) => (_, events) => events.filter(({ method }) => method === "custom").length === count;
  const told = async (subscription, count) => (await until(subscription, has(count))).filter(({ method }) => method === "custom").map(({ params }) => params.data);
  assert.deepEqual(await told(some, 2), [says[0], says[3]]);
  assert.deepEqual(await told(all, 4), [says[0], says[1], { payload: "plain" }, says[3]]);
  await Promise.all([page.close(), other.close()]);
}

/**
 * mistaken is a page that answers a question that nobody has asked: it shows the refusal, and still
 * the questions that wait. The page has two subscriptions, and the one for lifecycles alone may be
 * ahead. If it answers before the other one has seen the end of the run, it takes that end for the
 * end of the answer, and drops the refusal.
 */
async function mistaken() {
  const { StreamController, channelProjection } = createRequire(process.env.SDK_MODULES)("@langchain/langgraph-sdk/stream");
  const id = await create();
  const page = new StreamController({ client: pages, assistantId: "agent", threadId: id, transport, webSocketFactory });
  await page.hydrate(id);
  const behind = page.registry.acquire(channelProjection(["lifecycle"], [], { replay: false })).store;
  await page.submit({ messages: [] }, { config: following(pauses) });
  await shows(page.rootStore, ({ interrupts, isLoading }) => interrupts.length === 2 && !isLoading);
  await shows(behind, (events) => events.some((event) => isRoot(event) && said(event) === "interrupted"));
  await page.respond(true, { interruptId: "q9", strictResume: true });
  const { error } = await shows(page.rootStore, ({ error: shown, interrupts }) => shown?.name === "UnknownInterruptError" && interrupts.length === 2);
  assert.deepEqual([error.interruptIds, error.pendingIds], [["q9"], ["q1", "q2"]]);
  await page.dispose();
}

/** shows waits for what a store of a page has, and returns it. */
const shows = (store, is) => new Promise((resolve) => {
  const look = () => { if (is(store.getSnapshot())) resolve(store.getSnapshot()); };
  store.subscribe(look);
  look();
});

/** forked goes back to the checkpoint before the answer. */
async function forked() {
  const id = await create();
  const saying = (text) => following([{ event: "updates", data: { model: { messages: [{ type: "ai", id: text, content: text }] } } }]);
  const { page, subscription } = await opened(id, ["lifecycle", "checkpoints"]);
  const ends = (event) => isRoot(event) && said(event) === "completed";
  await page.run.start({ input: { messages: [] }, config: saying("first") });
  const seen = await until(subscription, ends);
  const { id: before } = seen.find(({ method }) => method === "checkpoints").params.data;
  const { configurable } = saying("second");
  await page.run.start({ input: { messages: [] }, config: { configurable: { ...configurable, checkpoint_id: before } } });
  await until(subscription, ends);
  const { values } = await client.threads.getState(id);
  assert.deepEqual(values.messages.map(({ content }) => content), ["second"]);
  await page.close();
}

tell(asked, subgraphs, forked, named, ...(newest ? [mistaken] : []));
