// Talks to the examples through the adapter with which CopilotKit and other clients of the AG-UI
// protocol use agents of the framework. Arguments: the agent's URL, the key, the agent's language,
// and the example that it is, after which the story is named.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const modules = require("node:module").createRequire(process.env.SDK_MODULES); // the release of the adapter that the test names
const { LangGraphAgent } = modules("@ag-ui/langgraph");
const { apiKey, apiUrl, ask, client, tell } = require("./story.cjs");

const [language, example] = process.argv.slice(4);
const facts = require("./agents.json")[language][example];
const of = (events, type) => events.filter((event) => event.type === type);
const question = (city) => ({ id: randomUUID(), role: "user", content: ask(city).messages[0].content });
const shown = (events) => of(events, "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta);
const last = (events) => of(events, "MESSAGES_SNAPSHOT").at(-1).messages;
const roles = (messages) => messages.map(({ role }) => role);
const kept = async ({ threadId }) => (await client.threads.getState(threadId)).values;

/** opened is the adapter in an application, with a thread that is new. */
const opened = (options) => new LangGraphAgent({ deploymentUrl: apiUrl, langsmithApiKey: apiKey, graphId: "agent", threadId: randomUUID(), ...options });

/** run returns the events of a run that ends well, each with a beginning and an end. */
async function run(agent, params = {}) {
  const events = [];
  await agent.runAgent(params, { onEvent: ({ event }) => { events.push(event); } });
  assert.deepEqual([events[0].type, events.at(-1).type, of(events, "RUN_ERROR").length], ["RUN_STARTED", "RUN_FINISHED", 0]);
  for (const what of ["TEXT_MESSAGE", "TOOL_CALL"]) assert.equal(of(events, `${what}_START`).length, of(events, `${what}_END`).length, what);
  assert.deepEqual(of(events, "STEP_STARTED").map(({ stepName }) => stepName), of(events, "STEP_FINISHED").map(({ stepName }) => stepName));
  return events;
}

const stories = {
  /** react asks twice in a thread, and then has the answer to the second question written again. */
  async react() {
    const { cities, answers, tool, model } = facts;
    const agent = opened();
    let messages;
    for (const [i, city] of cities.entries()) {
      agent.addMessage(question(city));
      const events = await run(agent);
      messages = last(events);
      assert.equal(shown(events).join(""), answers[i]);
      assert.ok(shown(events).length > 1);
      assert.deepEqual(of(events, "STEP_STARTED").map(({ stepName }) => stepName), [model, "tools", model]);
      const [call] = of(events, "TOOL_CALL_START");
      const [result] = of(events, "TOOL_CALL_RESULT");
      assert.deepEqual([call.toolCallName, result.toolCallId], [tool, call.toolCallId]);
    }
    const wanted = ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant"];
    const before = messages;
    assert.deepEqual(roles(before), wanted);
    assert.deepEqual(before.map(({ id }) => id), (await kept(agent)).messages.map(({ id }) => id));

    // The adapter forks the thread where it knows the question, and another message is the
    // application's own.
    agent.setMessages([before[0], { id: randomUUID(), role: "assistant", content: "It is cold." }, before[4]]);
    const events = await run(agent);
    const after = last(events);
    assert.equal(shown(events).join(""), answers[1]);
    assert.deepEqual([roles(after), after.slice(0, 5)], [wanted, before.slice(0, 5)]);
    assert.notEqual(after[7].id, before[7].id);
    assert.deepEqual(after.map(({ id }) => id), (await kept(agent)).messages.map(({ id }) => id));
  },

  /** approval answers a question in both ways in which applications do this. */
  async approval() {
    const lamp = { request: "the broken lamp" };
    const agent = opened({ initialState: lamp });
    const [asked] = of(await run(agent), "CUSTOM");
    assert.deepEqual([asked.name, JSON.parse(asked.value)], ["on_interrupt", facts.question]);
    assert.equal((await client.threads.get(agent.threadId)).status, "interrupted");
    await run(agent, { forwardedProps: { command: { resume: facts.yes } } });
    assert.equal((await client.threads.get(agent.threadId)).status, "idle");
    assert.deepEqual([(await kept(agent)).draft, agent.state.draft], [facts.draft, facts.draft]);

    const newer = opened({ initialState: lamp, emitInterruptOutcome: true, enableLegacyOnInterruptEvent: false });
    const { outcome } = (await run(newer)).at(-1);
    assert.deepEqual([outcome.type, outcome.interrupts.map(({ metadata }) => metadata.langgraph.raw)], ["interrupt", [facts.question]]);
    await run(newer, { resume: [{ interruptId: outcome.interrupts[0].id, status: "resolved", payload: facts.yes }] });
    assert.deepEqual([(await client.threads.get(newer.threadId)).status, (await kept(newer)).draft], ["idle", facts.draft]);
  },
};

tell(stories[example]);
