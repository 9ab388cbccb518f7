// The origin that is shown of messages and tools: the releases of the framework say it in different
// ways.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Runtime, Thread } from "./runtime.mjs";

let runtime;
const cleanups = [];
before(async () => (runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, "graphs/framework.json")));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

/** The events of a mode, by their names without the ids of tasks, with what they show joined. */
function shown(events, mode, show) {
  const texts = new Map();
  for (const { name, data } of events) {
    const place = name.replaceAll(/:[0-9a-f-]{36}/g, "");
    if (place.split("|")[0] === mode) texts.set(place, (texts.get(place) ?? "") + show(data));
  }
  return Object.fromEntries(texts);
}

const textOf = ([chunk]) => chunk.content;
const toolOf = (data) => (data.event === "on_tool_start" ? `${typeof data.input === "string" ? JSON.parse(data.input).city : data.input.city} ` : "");

async function speak(options) {
  const events = await new Thread(runtime, "speaking").invoke({ input: { messages: [] }, stream_mode: ["messages-tuple", "tools", "custom"], ...options });
  assert.deepEqual(events.filter(({ name }) => name === "error"), []);
  return events;
}

test("messages and tools are shown as those of the graph whose node speaks", async () => {
  const events = await speak({ stream_subgraphs: true });
  assert.deepEqual(shown(events, "messages", textOf), { messages: "of outside", "messages|inner": "of within", "messages|call": "of within" });
  assert.deepEqual(shown(events, "tools", toolOf), { tools: "outside ", "tools|inner": "within ", "tools|call": "within " });
  assert.deepEqual(shown(events, "custom", String), { custom: "outside ", "custom|inner": "within ", "custom|call": "within " });
});

test("without subgraphs all messages, tools and writings of nodes are shown as those of the graph itself", async () => {
  const events = await speak({});
  assert.deepEqual(shown(events, "messages", textOf), { messages: "of outsideof withinof within" });
  assert.deepEqual(shown(events, "tools", toolOf), { tools: "outside within within " });
  assert.deepEqual(shown(events, "custom", String), { custom: "outside within within " });
});

test("the server is told which node of the graph a message belongs to", async () => {
  const events = await speak({});
  const nodes = new Map();
  for (const { name, data } of events) if (name === "unfinished") for (const { id, node } of data) nodes.set(id, node);
  const texts = [...nodes].map(([id, node]) => [node, events.filter(({ name, data }) => name === "messages" && data[0].id === id).map(({ data }) => textOf(data)).join("")]);
  assert.deepEqual(texts, [["talk", "of outside"], ["inner", "of within"]]);
  assert.deepEqual(events.findLast(({ name }) => name === "unfinished").data, []);
});
