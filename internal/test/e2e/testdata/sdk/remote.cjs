// Uses the agent as a RemoteGraph, as graphs do that have it as a node, in the old protocol and in
// the thread-centric one. Arguments: the agent's URL, the key, the transport, and "scripted" for
// the stories that need an agent that follows scripts, or "killed" for the story in which the
// server may be killed when it says "shown".
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { createRequire } = require("node:module");
const modules = createRequire(process.env.SDK_MODULES); // the release of the SDK that the test names
const { Command } = modules("@langchain/langgraph");
const { RemoteGraph } = modules("@langchain/langgraph/remote");
const { deep } = require("./threads-v3.cjs");
const { answered, apiKey, apiUrl, ask, brisk, client, collect, fast, slow, tell, types, until } = require("./story.cjs");

const remote = new RemoteGraph({ graphId: "agent", url: apiUrl, apiKey });
const on = (thread_id, { configurable }) => ({ configurable: { ...configurable, thread_id } });
const pauses = [{ event: "interrupt", data: [{ id: "q1", value: "May I?" }, { id: "q2", value: "And now?" }] }];
const goesOn = [{ event: "updates", data: { model: { messages: [{ type: "ai", id: "m1", content: "Done" }] } } }];
const long = { configurable: { token_delay_ms: 30, node_delay_ms: 20, answer_words: 400 } };
const answers = { q1: true, q2: false };
const scripted = (thread, script) => on(thread, { configurable: { script } });

async function invoked() {
  const thread = randomUUID();
  assert.deepEqual(types(await remote.invoke(ask("sf"), on(thread, fast))), answered);
  const values = await remote.invoke(ask("nyc"), on(thread, fast));
  assert.deepEqual(types(values), [...answered, ...answered]);
  assert.deepEqual((await remote.getState(on(thread, {}))).values, values);
}

async function streamed() {
  const parts = await collect(await remote.stream(ask("sf"), { ...brisk, streamMode: ["messages", "values"] }));
  const answer = parts.filter(([mode]) => mode === "values").at(-1)[1].messages.at(-1);
  const tokens = parts.filter(([mode, data]) => mode === "messages" && data[0].id === answer.id && data[0].type === "AIMessageChunk").map(([, data]) => data[0].content);
  assert.equal(tokens.join(""), answer.content);
  assert.ok(tokens.length > 3);
}

/**
 * threadsStreamed speaks the thread-centric protocol: messages, events and the output. The client
 * opens a connection for the messages when they are asked for, and closes it when the run has
 * ended, so the answer takes longer than opening a connection on a busy machine.
 */
async function threadsStreamed() {
  const run = await remote.streamEvents(ask("sf"), { configurable: { token_delay_ms: 100, node_delay_ms: 20 }, version: "v3" });
  const messages = collect(run.messages).then((all) => Promise.all(all.map(async (message) => String(await message.text))));
  const output = await run.output;
  assert.deepEqual(types(output), answered);
  assert.equal((await messages).at(-1), output.messages.at(-1).content);
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.method === "lifecycle" && event.params.namespace.length === 0 && event.params.data.event === "completed") break;
  }
  const last = events.filter(({ method }) => method === "values").at(-1).params.data;
  assert.deepEqual(last.messages.map(({ id, content }) => [id, content]), output.messages.map(({ id, content }) => [id, content]));
  await run.thread.close();
}

/** failed is told of by an error in the old protocol, and by an event in the other. */
async function failed() {
  const fails = { configurable: { node_delay_ms: 0, fail: "tools" } };
  await assert.rejects(remote.invoke(ask("sf"), fails), /NodeError/);
  const run = await remote.streamEvents(ask("sf"), { ...fails, version: "v3" });
  for await (const { method, params } of run) {
    if (method === "lifecycle" && params.namespace.length === 0 && params.data.event === "failed") {
      assert.match(params.data.error, /^node tools fails/);
      break;
    }
  }
  await run.thread.close();
}

async function aborted() {
  const thread = randomUUID();
  const run = await remote.streamEvents(ask("sf"), { ...on(thread, slow), version: "v3" });
  for await (const message of run.messages) {
    assert.ok(message);
    break;
  }
  run.abort();
  const [{ run_id }] = await client.runs.list(thread);
  await client.runs.join(thread, run_id);
  assert.equal((await client.runs.get(thread, run_id)).status, "interrupted");
}

/** asked has a command answer both questions, in each protocol. */
async function asked() {
  const thread = randomUUID();
  const paused = async () => (await client.threads.get(thread)).status === "interrupted";
  const newest = async () => (await client.runs.list(thread))[0].kwargs.command.resume;
  const first = await remote.streamEvents({ messages: [] }, { ...scripted(thread, pauses), version: "v3" });
  await first.output;
  assert.equal(first.interrupted, true);
  assert.deepEqual(first.interrupts.map(({ interruptId, payload }) => [interruptId, payload]), [["q1", "May I?"], ["q2", "And now?"]]);
  await first.thread.close();
  await until(paused);
  const second = await remote.streamEvents(new Command({ resume: answers }), { ...scripted(thread, goesOn), version: "v3" });
  assert.equal((await second.output).messages.at(-1).content, "Done");
  await second.thread.close();
  assert.deepEqual(await newest(), answers);
  await assert.rejects(remote.invoke({ messages: [] }, scripted(thread, pauses)), { name: "GraphInterrupt" }); // it tells a graph around it
  await until(paused);
  assert.equal((await remote.invoke(new Command({ resume: answers }), scripted(thread, goesOn))).messages.at(-1).content, "Done");
  assert.deepEqual(await newest(), answers);
}

/** subgraphs has what a subgraph says. */
async function subgraphs() {
  const run = await remote.streamEvents({ messages: [] }, { ...scripted(randomUUID(), deep), version: "v3" });
  for await (const { name, namespace, messages } of run.subgraphs) {
    assert.deepEqual([name, namespace], ["inner", ["inner:1"]]);
    for await (const message of messages) {
      assert.equal(String(await message.text), "It is blue.");
      run.abort();
      return;
    }
  }
  throw new Error("there was no subgraph");
}

/**
 * forked goes back to the checkpoint before the answer. The client names a checkpoint with no run,
 * but with a change of the state.
 */
async function forked() {
  const thread = randomUUID();
  await remote.invoke(ask("sf"), on(thread, fast));
  const first = (await collect(await remote.getStateHistory(on(thread, {})))).at(-2); // after the empty state
  await remote.updateState(first.config, { messages: [] });
  const run = await remote.streamEvents(ask("nyc"), { ...on(thread, fast), version: "v3" });
  assert.deepEqual(types(await run.output), ["human", ...answered]);
  await run.thread.close();
}

/**
 * killed has the stream go on after the server has been killed and started again, up to the output.
 */
async function killed() {
  const thread = randomUUID();
  const run = await remote.streamEvents(ask("sf"), { ...on(thread, long), version: "v3" });
  let pieces = 0;
  for await (const { method, params } of run) {
    if (method === "messages" && params.data.event === "content-block-delta" && ++pieces === 10) {
      console.log("shown");
      break;
    }
  }
  const output = await run.output;
  assert.deepEqual(types(output), answered);
  assert.deepEqual(types((await remote.getState(on(thread, {}))).values), answered);
  assert.equal((await client.runs.list(thread)).length, 1);
  await run.thread.close();
}

const stories = { scripted: [asked, subgraphs], killed: [killed] };
tell(...(stories[process.argv[5]] ?? [invoked, streamed, threadsStreamed, failed, aborted, forked]));
