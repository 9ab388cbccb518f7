// Drives an example agent through the JavaScript SDK. Arguments: the agent's URL, the key, the
// agent's language, the stories, with commas between them, and what they take. AGENT names the
// graph where it has another name than in the examples' own configuration.
const assert = require("node:assert/strict");
const { Client } = require("@langchain/langgraph-sdk");

const [apiUrl, apiKey, language, told, ...rest] = process.argv.slice(2);
const agent = process.env.AGENT ?? "agent";
const facts = require("./agents.json")[language];
const client = new Client({ apiUrl, apiKey });
const answered = ["human", "ai", "tool", "ai"];
const lamp = { request: "the broken lamp" };
const ask = (city) => ({ messages: [{ role: "user", content: `what is the weather in ${city}?` }] });
const types = (values) => (values?.messages ?? []).map((message) => message.type);
const data = (parts, event) => parts.filter((part) => part.event === event).map((part) => part.data);
const keys = (updates) => updates.map((update) => Object.keys(update));
const asks = (list) => list.map(({ value }) => value);
const pause = () => new Promise((resume) => setTimeout(resume, 20));
const create = async () => (await client.threads.create()).thread_id;
const partOf = (values, wanted) => Object.fromEntries(Object.keys(wanted).map((key) => [key, values[key]]));

async function collect(stream) {
  const parts = [];
  for await (const part of stream) {
    assert.ok(!part.event.startsWith("error"), JSON.stringify(part));
    parts.push(part);
  }
  return parts;
}

async function begun(ms) {
  const thread = await create();
  const config = { configurable: { token_delay_ms: ms } };
  const run = await client.runs.create(thread, agent, { input: ask(facts.react.cities[0]), config });
  while (types((await client.threads.getState(thread)).values).length < 3) await pause();
  return [thread, run.run_id];
}

async function asked() {
  const thread = await create();
  const parts = await collect(client.runs.stream(thread, agent, { input: lamp, streamMode: ["values", "updates"] }));
  assert.deepEqual(keys(data(parts, "updates")), [["write"], ["__interrupt__"]]);
  assert.deepEqual(asks(data(parts, "updates")[1].__interrupt__), [facts.approval.question]);
  assert.deepEqual(asks(data(parts, "values").at(-1).__interrupt__), [facts.approval.question]);
  return thread;
}

async function wantsQuestion(thread, question = facts.approval.question) {
  const state = await client.threads.getState(thread);
  assert.deepEqual(state.next, ["approve"]);
  assert.deepEqual(state.tasks.map((task) => [task.name, asks(task.interrupts)]), [["approve", [question]]]);
  const found = await client.threads.get(thread);
  assert.equal(found.status, "interrupted");
  assert.deepEqual(asks(found.interrupts[state.tasks[0].id]), [question]);
  return state;
}

async function wantsSent(thread, values, draft) {
  const wanted = { ...lamp, draft, ...(language === "python" ? facts.approval.sent : { sent: draft }) };
  assert.deepEqual(values, wanted);
  const state = await client.threads.getState(thread);
  assert.deepEqual([state.values, state.next, state.tasks], [wanted, [], []]);
  const found = await client.threads.get(thread);
  assert.deepEqual([found.status, found.interrupts], ["idle", {}]);
}

/**
 * What the tasks of each step have returned, from the first step on: as history has it, and the
 * state at each checkpoint.
 */
async function returned(thread) {
  const history = await client.threads.getHistory(thread, { limit: 100 });
  const resultsOf = ({ tasks }) => tasks.map(({ result }) => result);
  for (const state of history) assert.deepEqual(resultsOf(await client.threads.getState(thread, state.checkpoint.checkpoint_id)), resultsOf(state));
  return history.map(resultsOf).reverse();
}

const stories = {
  async react() {
    const { model, cities, answers } = facts.react;
    const thread = await create();
    const parts = await collect(client.runs.stream(thread, agent, { input: ask(cities[0]), streamMode: ["values", "messages-tuple", "updates"] }));
    assert.equal(parts[0].event, "metadata");
    assert.deepEqual(keys(data(parts, "updates")), [[model], ["tools"], [model]]);
    const tokens = data(parts, "messages").filter(([, about]) => about.langgraph_node === model).map(([chunk]) => chunk.content).filter(Boolean);
    assert.ok(tokens.length > 3);
    assert.equal(tokens.join(""), answers[0]);
    assert.deepEqual(types(data(parts, "values").at(-1)), answered);
    const values = await client.runs.wait(thread, agent, { input: ask(cities[1]) });
    assert.deepEqual(values.messages.filter((m) => m.type === "ai" && m.content).map((m) => m.content), answers);
    const history = await client.threads.getHistory(thread, { limit: 100 });
    assert.deepEqual(history.map((h) => h.metadata.step), [8, 7, 6, 5, 4, 3, 2, 1, 0, -1]);
    const question = [["__start__"], [model], ["tools"], [model], []];
    assert.deepEqual(history.reverse().map((h) => h.next), [...question, ...question]);
  },

  async react_returned() {
    const thread = await create();
    const { messages } = await client.runs.wait(thread, agent, { input: ask(facts.react.cities[0]) });
    const results = await returned(thread);
    const contents = results.map((found) => found.map((result) => result.messages.map(({ content }) => content)));
    assert.deepEqual(contents, [...messages.map(({ content }) => [[content]]), []]);
    assert.deepEqual(results[1][0].messages[0].tool_calls.map(({ name }) => name), [facts.react.tool]);
  },

  async interrupted() {
    const { cities, answers } = facts.react;
    const [thread, first] = await begun(1500);
    const second = await client.runs.create(thread, agent, { input: ask(cities[1]), multitaskStrategy: "interrupt" });
    await client.runs.join(thread, second.run_id);
    const state = await client.threads.getState(thread);
    assert.deepEqual(types(state.values), ["human", "ai", "tool", ...answered]);
    assert.equal(state.values.messages.at(-1).content, answers[1]);
    assert.deepEqual([state.next, state.metadata.step], [[], 7]);
    assert.equal((await client.runs.get(thread, first)).status, "interrupted");
    assert.equal((await client.runs.get(thread, second.run_id)).status, "success");
  },

  async shown() {
    const { model, cities, answers } = facts.react;
    const thread = await create();
    const config = { configurable: { token_delay_ms: 600 } };
    let seen = "", second;
    for await (const part of client.runs.stream(thread, agent, { input: ask(cities[0]), config, streamMode: "messages-tuple", streamResumable: true })) {
      if (part.event === "messages" && part.data[1].langgraph_node === model) seen += part.data[0].content;
      if (seen.length > 6 && !second) second = await client.runs.create(thread, agent, { input: ask(cities[1]), multitaskStrategy: "interrupt" });
    }
    await client.runs.join(thread, second.run_id);
    const { messages } = (await client.threads.getState(thread)).values;
    assert.deepEqual(messages.map((message) => message.type), [...answered, ...answered]);
    assert.equal(messages[3].content, seen);
    assert.notEqual(seen, answers[0]);
  },

  async enqueued() {
    const [thread] = await begun(100);
    const values = await client.runs.wait(thread, agent, { input: ask(facts.react.cities[1]), multitaskStrategy: "enqueue" });
    assert.deepEqual(types(values), [...answered, ...answered]);
  },

  async rejected() {
    const [thread, first] = await begun(300);
    await assert.rejects(client.runs.create(thread, agent, { input: ask("rome"), multitaskStrategy: "reject" }), { status: 409 });
    assert.deepEqual(types(await client.runs.join(thread, first)), answered);
  },

  async rolled_back() {
    const [thread, first] = await begun(1500);
    const values = await client.runs.wait(thread, agent, { input: ask(facts.react.cities[1]), multitaskStrategy: "rollback" });
    assert.deepEqual(types(values), answered);
    await assert.rejects(client.runs.get(thread, first), { status: 404 });
  },

  async breakpoints() {
    const { model, cities } = facts.react;
    const thread = await create();
    const next = async () => (await client.threads.getState(thread)).next;
    assert.deepEqual(types(await client.runs.wait(thread, agent, { input: ask(cities[0]), interruptBefore: ["tools"] })), ["human", "ai"]);
    assert.deepEqual([await next(), (await client.threads.get(thread)).status], [["tools"], "interrupted"]);
    assert.deepEqual(types(await client.runs.wait(thread, agent, { input: null, interruptAfter: ["tools"] })), ["human", "ai", "tool"]);
    assert.deepEqual(await next(), [model]);
    assert.deepEqual(types(await client.runs.wait(thread, agent, { input: null })), answered);
    const parts = await collect(client.runs.stream(thread, agent, { command: { goto: model }, streamMode: "updates" }));
    assert.deepEqual(keys(data(parts, "updates"))[0], [model]);
  },

  async configured() {
    const thread = await create();
    assert.deepEqual((await client.threads.get(thread)).config, {});
    const given = { tags: ["mine"], recursion_limit: 30, configurable: { style: "short", user: { name: "Ann" } } };
    for (const config of [given, { configurable: { place: "Rome" } }, undefined]) await client.runs.wait(thread, agent, { input: ask(facts.react.cities[0]), config });
    const { config } = await client.threads.get(thread);
    assert.deepEqual([config.tags, config.recursion_limit], [["mine"], 30]);
    const [found] = await client.threads.search({ ids: [thread] });
    assert.deepEqual(found.config, config);
    const { style, user, place } = config.configurable;
    assert.deepEqual({ style, user, place }, { ...given.configurable, place: "Rome" });
    assert.deepEqual((await client.threads.copy(thread)).config, {});
  },

  async of_two() {
    const given = { graph_id: agent, note: "mine" };
    const { thread_id: thread } = await client.threads.create({ metadata: given });
    const [runs, assistants] = [new Set(), []];
    let found;
    for (const style of ["short", "long"]) {
      const { assistant_id } = await client.assistants.create({ graphId: agent, config: { configurable: { style } } });
      assistants.push(assistant_id);
      await client.runs.wait(thread, assistant_id, { input: ask(facts.react.cities[0]) });
      found = await client.threads.get(thread);
      assert.deepEqual(found.metadata, { ...given, assistant_id });
      const [run] = (await client.runs.list(thread)).filter((one) => !runs.has(one.run_id));
      runs.add(run.run_id);
      assert.deepEqual(partOf(run.metadata, found.metadata), found.metadata);
    }
    for (const assistant of assistants) await client.assistants.delete(assistant);
    return found;
  },

  async of_the_second() {
    const { thread_id, config } = await stories.of_two();
    const { metadata } = await client.threads.getState(thread_id);
    assert.deepEqual([config.configurable.style, metadata.style], ["long", "long"]);
  },

  async described() {
    const [found, ...others] = await client.assistants.search({ graphId: agent });
    assert.deepEqual([found.graph_id, others], [agent, []]);
    const { nodes, edges } = await client.assistants.getGraph(found.assistant_id);
    const ids = nodes.map((node) => node.id);
    for (const id of ["__start__", "__end__", "tools", facts.react.model]) assert.ok(ids.includes(id), `${id} is not in ${ids}`);
    for (const edge of edges) assert.ok(ids.includes(edge.source) && ids.includes(edge.target), JSON.stringify(edge));
    const schemas = await client.assistants.getSchemas(found.assistant_id);
    assert.equal(schemas.graph_id, agent);
    if (language === "python") assert.ok("messages" in schemas.input_schema.properties); // a graph of TypeScript types has no schema
  },

  async approval() {
    const { yes, no, other, draft, ends, question } = facts.approval;
    let thread = await asked();
    await wantsQuestion(thread);
    const parts = await collect(client.runs.stream(thread, agent, { command: { resume: yes }, streamMode: "updates" }));
    assert.deepEqual(keys(data(parts, "updates")), [["approve"], ["send"]]);
    await wantsSent(thread, (await client.threads.getState(thread)).values, draft);
    thread = await asked();
    await wantsSent(thread, await client.runs.wait(thread, agent, { command: { resume: other } }), "Dear customer, it is mended.");
    thread = await asked();
    assert.deepEqual(await client.runs.wait(thread, agent, { command: { resume: no } }), { ...lamp, draft, ...ends });
    const values = await client.runs.wait(await create(), agent, { input: lamp });
    assert.deepEqual(asks(values.__interrupt__), [question]);
  },

  async approval_returned() {
    const { yes, draft, returned: rest } = facts.approval;
    const thread = await create();
    await client.runs.wait(thread, agent, { input: lamp });
    const first = [[lamp], [{ draft }]];
    assert.deepEqual(await returned(thread), [...first, [null]]);
    await client.runs.wait(thread, agent, { command: { resume: yes } });
    assert.deepEqual(await returned(thread), [...first, ...rest.map((result) => [result]), []]);
  },

  async edited() {
    const { yes, other, question } = facts.approval;
    const thread = await asked();
    const before = await wantsQuestion(thread);
    await client.threads.updateState(thread, { values: { draft: "Dear customer, no." }, asNode: "write" });
    const changed = { ...question, draft: "Dear customer, no." };
    const values = await client.runs.wait(thread, agent, { input: null });
    assert.deepEqual(asks(values.__interrupt__), [changed]);
    await wantsQuestion(thread, changed);
    await wantsSent(thread, await client.runs.wait(thread, agent, { command: { resume: yes } }), "Dear customer, no.");
    const forked = await client.runs.wait(thread, agent, { command: { resume: other }, checkpointId: before.checkpoint.checkpoint_id });
    await wantsSent(thread, forked, "Dear customer, it is mended.");
  },

  async pause() {
    const thread = await asked();
    await wantsQuestion(thread);
    console.log(thread);
  },

  async answer() {
    const [thread] = rest;
    await wantsQuestion(thread);
    await wantsSent(thread, await client.runs.wait(thread, agent, { command: { resume: facts.approval.yes } }), facts.approval.draft);
  },

  async subgraph() {
    const { nodes, inner, question, found, resume, values } = facts.subgraph;
    const thread = await create();
    const parts = await collect(client.runs.stream(thread, agent, { input: { city: "Rome" }, streamMode: ["updates", "values"], streamSubgraphs: true }));
    const [space] = new Set(parts.map((part) => part.event.split("|")[1]).filter(Boolean));
    assert.equal(space.split(":")[0], nodes[1]);
    const updates = parts.filter((part) => part.event.startsWith("updates")).map((part) => [part.event, ...Object.keys(part.data)]);
    const within = `updates|${space}`;
    assert.deepEqual(updates, [["updates", nodes[0]], [within, inner[0]], [within, "__interrupt__"], ["updates", "__interrupt__"]]);
    const state = await client.threads.getState(thread, undefined, { subgraphs: true });
    assert.deepEqual(state.next, [nodes[1]]);
    assert.deepEqual(asks(state.tasks[0].interrupts), [question]);
    const below = state.tasks[0].state;
    assert.deepEqual([partOf(below.values, found), below.next], [found, [inner[1]]]);
    const final = await client.runs.wait(thread, agent, { command: { resume } });
    assert.deepEqual(partOf(final, values), values);
  },

  async map_reduce() {
    const { input, first, branch, last, count, best } = facts["map-reduce"];
    const thread = await create();
    const parts = await collect(client.runs.stream(thread, agent, { input, streamMode: "updates" }));
    assert.deepEqual(keys(data(parts, "updates")).flat(), [...first, ...Array(count).fill(branch), last]);
    const { values } = await client.threads.getState(thread);
    assert.deepEqual([values.jokes.length, values.best], [count, best]);
  },

  async map_reduce_returned() {
    const thread = await create();
    const { jokes } = await client.runs.wait(thread, agent, { input: facts["map-reduce"].input });
    const [branches] = (await returned(thread)).filter((found) => found.length > 1);
    assert.deepEqual(branches, jokes.map((joke) => ({ jokes: [joke] })));
  },

  async killed() {
    const { input, branch, count, best } = facts["map-reduce"];
    const thread = await create();
    let done = 0;
    for await (const part of client.runs.stream(thread, agent, { input, streamMode: "updates", streamResumable: true })) {
      assert.ok(!part.event.startsWith("error"), JSON.stringify(part));
      if (part.event === "updates" && branch in part.data && ++done === count - 1) console.log("done");
    }
    const { values, next } = await client.threads.getState(thread);
    assert.deepEqual([values.jokes.length, values.best, next], [count, best, []]);
    assert.deepEqual((await client.runs.list(thread)).map((run) => run.status), ["success"]);
  },

  async custom() {
    const { says, values } = facts.custom;
    const thread = await create();
    const parts = await collect(client.runs.stream(thread, agent, { input: { files: ["a", "b"] }, streamMode: ["custom", "updates"] }));
    assert.deepEqual(data(parts, "custom"), says);
    assert.deepEqual((await client.threads.getState(thread)).values, values);
    const again = await collect(client.runs.stream(thread, agent, { input: { files: ["a", "b"] }, streamMode: "values" }));
    assert.deepEqual(data(again, "values"), [values, values]); // also of a step that changes nothing
  },

  async store() {
    const { tell, told, member, answer, join } = facts.store;
    const namespace = ["memories", "bob"];
    const config = { configurable: { user_id: "bob" } };
    const say = async (content) => {
      const values = await client.runs.wait(await create(), agent, { input: { messages: [{ role: "user", content }] }, config });
      return values.messages.at(-1).content;
    };
    assert.equal(await say(tell), told);
    const { items } = await client.store.searchItems(namespace);
    assert.deepEqual(items.map((item) => item.value), [{ [member]: "I like tea" }]);
    await client.store.putItem(namespace, "from outside", { [member]: "I have a cat" });
    assert.equal(await say("what do you know?"), answer.replace("{}", ["I have a cat", "I like tea"].join(join)));
  },
};

(async () => {
  for (const story of told.split(",")) await stories[story]();
})().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
