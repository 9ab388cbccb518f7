// The examples, each as a real process.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { named, Runtime, Thread, token } from "./runtime.mjs";

async function start(t, name) {
  return new Thread(await Runtime.start(t, `examples/node-${name}/framework.json`));
}

test("react: a model calls a tool and answers, word by word", async (t) => {
  const thread = await start(t, "react");
  const input = { messages: [{ role: "user", content: "what is the weather in sf?" }] };
  const events = await thread.invoke({ input, stream_mode: ["updates", "messages-tuple"] });
  const { messages } = thread.state.values;
  assert.deepEqual(messages.map((m) => m.type), ["human", "ai", "tool", "ai"]);
  assert.deepEqual(messages[1].tool_calls.map((call) => [call.name, call.args]), [["weather", { city: "sf" }]]);
  assert.equal(messages[3].content, "I have looked it up: it is 15 degrees in sf.");
  assert.deepEqual(Object.values(thread.head.root.results).map(({ messages }) => messages.map(({ content }) => content)), [["I have looked it up: it is 15 degrees in sf."]]);
  const chunks = named(events, "messages").filter(([, metadata]) => metadata.langgraph_node === "model").map(([chunk]) => chunk);
  assert.equal(chunks.filter((chunk) => chunk.id === messages[3].id).map((chunk) => chunk.content).join(""), messages[3].content);
  assert.ok(chunks.length > 5);
  await thread.invoke({ input: { messages: [{ role: "user", content: "and in nyc" }] } });
  assert.equal(thread.state.values.messages.at(-1).content, "I have looked it up: it is 21 degrees in nyc.");
});

test("approval: a person approves, changes or rejects, in another process", async (t) => {
  const { runtime } = await start(t, "approval");
  const answers = [[{ approved: true }, "Dear all, lunch."], [{ approved: true, text: "No." }, "No."], [{ approved: false }, undefined]];
  const threads = answers.map(() => new Thread(runtime));
  for (const thread of threads) {
    const events = await thread.invoke({ input: { request: "lunch" } });
    const [[question]] = named(events, "interrupt");
    assert.deepEqual(question.value, { question: "Shall this be sent?", draft: "Dear all, lunch." });
    assert.deepEqual(thread.state.tasks.map((task) => [task.name, task.interrupts]), [["approve", [question]]]);
  }
  await runtime.kill();
  const { runtime: another } = await start(t, "approval");
  for (const [i, [resume, sent]] of answers.entries()) {
    threads[i].runtime = another;
    await threads[i].invoke({ command: { resume } });
    assert.deepEqual([threads[i].state.values.sent, threads[i].state.next], [sent, []]);
  }
});

test("subgraph: the inner graph asks, and goes on in another process", async (t) => {
  const thread = await start(t, "subgraph");
  const events = await thread.invoke({ input: { city: "Rome" }, stream_subgraphs: true });
  const inner = [...new Set(events.map((event) => event.name).filter((name) => name.startsWith("updates|")))];
  assert.equal(inner.length, 1);
  assert.match(inner[0], /^updates\|booking:[0-9a-f-]{36}$/);
  assert.deepEqual(named(events, inner[0])[0], { find: { offers: ["Hotel Rome", "Rome Inn"] } });
  assert.deepEqual(named(events, "interrupt")[0][0].value, { choose: ["Hotel Rome", "Rome Inn"] });
  const ns = inner[0].slice("updates|".length);
  assert.equal(thread.state.tasks[0].checkpoint.checkpoint_ns, ns);
  assert.deepEqual(thread.head.since.get(ns).tasks.map((task) => task.name), ["choose"]);
  await thread.runtime.kill();
  thread.runtime = (await start(t, "subgraph")).runtime;
  const rest = await thread.invoke({ command: { resume: "Rome Inn" } });
  assert.deepEqual(thread.state.values, { city: "Rome", hotel: "Rome Inn", log: ["going to Rome", "staying at Rome Inn"] });
  assert.ok(rest.every((event) => !event.name.includes("|")), "nobody asked for the inner graph's events");
});

test("subgraph: the paused inner graph is changed", async (t) => {
  const thread = await start(t, "subgraph");
  await thread.invoke({ input: { city: "Rome" } });
  const ns = thread.state.tasks[0].checkpoint.checkpoint_ns;
  await thread.invoke({
    operation: "update_state", config: { configurable: { checkpoint_ns: ns, checkpoint_id: "" } },
    supersteps: [{ updates: [{ values: { offers: ["A tent"] } }] }],
  });
  const inner = thread.head.since.get(ns);
  assert.deepEqual([inner.values.offers, inner.next], [["A tent"], ["choose"]]);
  const events = await thread.invoke({ command: { resume: "A tent" } });
  assert.deepEqual(named(events, "error"), []);
  assert.equal(thread.state.values.hotel, "A tent");
});

test("map-reduce: a node for each subject", async (t) => {
  const thread = await start(t, "map-reduce");
  const events = await thread.invoke({ input: { subjects: ["cat", "chicken", "dog"] } });
  assert.equal(named(events, "updates").filter((update) => update.joke).length, 3);
  assert.equal(thread.state.values.jokes.length, 3);
  assert.equal(thread.state.values.best, "Why did the chicken cross the road?");
});

test("custom: a node streams what it likes", async (t) => {
  const thread = await start(t, "custom");
  const events = await thread.invoke({ input: { files: ["a", "b"] }, stream_mode: ["custom", "updates"] });
  assert.deepEqual(named(events, "custom"), [{ converting: "a", progress: 0 }, { converting: "b", progress: 0.5 }, { progress: 1 }]);
});

/** The store of an agent server. */
async function startStore(t) {
  const items = new Map();
  const seen = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const url = new URL(request.url, "http://store");
    const body = text ? JSON.parse(text) : Object.fromEntries(url.searchParams);
    const route = `${request.method} ${url.pathname}`;
    seen.push({ route, authorization: request.headers.authorization });
    const send = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(value === undefined ? "" : JSON.stringify(value));
    if (route === "PUT /base/store/items") {
      const now = new Date().toISOString();
      items.set(JSON.stringify([body.namespace, body.key]), { namespace: body.namespace, key: body.key, value: body.value, created_at: now, updated_at: now });
      send(204);
    } else if (route === "POST /base/store/items/search") {
      const found = [...items.values()].filter((item) => body.namespace_prefix.every((label, i) => item.namespace[i] === label));
      send(200, { items: found.slice(body.offset, body.offset + body.limit) });
    } else if (route === "GET /base/store/items") {
      send(200, items.get(JSON.stringify([body.namespace.split("."), body.key])) ?? null);
    } else if (route === "DELETE /base/store/items") {
      items.delete(JSON.stringify([body.namespace, body.key]));
      send(204);
    } else if (route === "POST /base/store/namespaces") {
      send(200, { namespaces: [...items.values()].map((item) => item.namespace) });
    } else {
      send(500, { detail: "broken" });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}/base/`, seen, items };
}

test("store: what a user said is known on another thread", async (t) => {
  const store = await startStore(t);
  const thread = await start(t, "store");
  const say = async (where, content, user) => {
    await where.invoke({ input: { messages: [{ role: "user", content }] }, server_url: store.url, config: { configurable: { user_id: user } } });
    return where.state.values.messages.at(-1).content;
  };
  assert.equal(await say(thread, "remember: I like tea", "ann"), "I shall.");
  assert.equal(await say(new Thread(thread.runtime), "what do you know?", "ann"), "I know: I like tea.");
  assert.equal(await say(new Thread(thread.runtime), "what do you know?", "bob"), "I know nothing yet.");
  assert.deepEqual([...new Set(store.seen.map((request) => request.authorization))], [`Bearer ${token}`]);
});

test("store: all of its operations, and its refusals", async (t) => {
  const store = await startStore(t);
  const thread = new Thread(await Runtime.start(t, "graphs/framework.json"), "store");
  await thread.invoke({ input: {}, server_url: store.url });
  assert.deepEqual(thread.state.values.found, {
    value: { a: 1 }, dated: true, absent: null, searched: ["k", "other"], namespaces: [["users", "ann"], ["users", "ann"]], gone: null,
  });
  const [error] = named(await thread.invoke({ input: {}, server_url: store.url.replace("/base/", "/elsewhere") }), "error");
  assert.equal(error.error, "StoreError");
  assert.match(error.message, /status 500: \{"detail":"broken"\}/);
  assert.ok(!error.message.includes(token));
});
