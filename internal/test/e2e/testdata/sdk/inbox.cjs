// Makes the calls that the application Agent Inbox makes, at commit f38301b of its repository, with
// its release of the SDK. Arguments: the agent's URL, the key. A comment at each call names the
// file of src/components/agent-inbox that makes it. An inbox is a graph, or an assistant by its id.
const assert = require("node:assert/strict");
const modules = require("node:module").createRequire(process.env.SDK_MODULES); // the release that the application pins
const { Client } = modules("@langchain/langgraph-sdk");
const { apiKey, apiUrl, collect, tell } = require("./story.cjs");

const client = new Client({ apiUrl, defaultHeaders: { "x-api-key": apiKey } }); // src/lib/client.ts
const END = "__end__"; // of @langchain/langgraph/web, which contexts/ThreadContext.tsx imports

/** page is contexts/ThreadContext.tsx, fetchThreads: the threads of a view, page by page. */
const page = (metadata, status, offset = 0, limit = 10) => client.threads.search({ offset, limit, ...(status && { status }), metadata });

/** questionOf is contexts/utils.ts, getInterruptFromThread: a thread has its questions by task. */
function questionOf({ interrupts }) {
  const asked = Object.values(interrupts).flatMap(([first]) => first.value);
  assert.equal(asked.length, 1);
  return asked[0];
}

/**
 * accepting is what utils.ts, createDefaultHumanResponse, and hooks/use-interrupted-actions.tsx,
 * handleSubmit, make of a question whose text may be edited, but is not.
 */
const accepting = (question) => ({ type: "accept", args: question.action_request });

/**
 * answer is contexts/ThreadContext.tsx, sendHumanResponse. It returns the nodes that
 * hooks/use-interrupted-actions.tsx, handleSubmit, finds in the events.
 */
async function answer(thread, inbox, response) {
  const chunks = await collect(client.runs.stream(thread, inbox, { command: { resume: [response] }, streamMode: "events" }));
  assert.deepEqual(chunks.filter(({ event }) => event === "error"), []);
  const begun = chunks.filter(({ data }) => data?.event === "on_chain_start" && data.metadata?.langgraph_node);
  return [...new Set(begun.map(({ data }) => data.metadata.langgraph_node))];
}

/** wantsGone has a thread not in the view of those that wait. */
async function wantsGone(id) {
  const waiting = await page({ graph_id: "agent" }, "interrupted", 0, 100);
  assert.ok(!waiting.some(({ thread_id: other }) => other === id), "the inbox does not have it any more");
}

/** asked is a thread whose mail waits for a person. */
async function asked(to, inbox = "agent") {
  const { thread_id: id } = await client.threads.create();
  await client.runs.wait(id, inbox, { input: { to } });
  return id;
}

/**
 * opened is contexts/ThreadContext.tsx, fetchSingleThread, and components/state-view.tsx, which
 * shows the values.
 */
async function opened(id, status, values) {
  const thread = await client.threads.get(id);
  assert.deepEqual([thread.status, thread.values], [status, values]);
  return thread;
}

const stories = {
  /** listed shows the threads of an inbox by their statuses, some to a page, the newest first. */
  async listed() {
    const { assistant_id: inbox } = await client.assistants.create({ graphId: "agent" });
    const waiting = [];
    for (const to of ["Ada", "Bob", "Cem"]) waiting.push(await asked(to, inbox));
    const done = await asked("Dan", inbox);
    await answer(done, inbox, accepting(questionOf(await client.threads.get(done))));
    const ids = (threads) => threads.map(({ thread_id: id }) => id);
    assert.deepEqual(new Set(ids(await page({ assistant_id: inbox }))), new Set([...waiting, done]));
    const first = await page({ assistant_id: inbox }, "interrupted", 0, 2);
    const second = await page({ assistant_id: inbox }, "interrupted", 2, 2);
    assert.deepEqual([first.length, ids(first.concat(second)).toSorted()], [2, waiting.toSorted()]);
    assert.deepEqual(first.concat(second).map(questionOf).map(({ description }) => description).toSorted(), ["Ada", "Bob", "Cem"].map((to) => `A mail to ${to}`));
    assert.deepEqual([ids(await page({ assistant_id: inbox }, "idle")), await page({ assistant_id: inbox }, "busy"), await page({ assistant_id: inbox }, "error")], [[done], [], []]);
    assert.ok(ids(await page({ graph_id: "agent" }, "interrupted", 0, 100)).includes(waiting[0]), "a graph's inbox has the threads of its assistants");
    assert.ok(first.every(({ created_at: at, updated_at: changed }) => new Date(at) <= new Date(changed)));
  },

  /** answered has a person ask for another text, change it, and send it. */
  async answered() {
    const id = await asked("Eva");
    const question = questionOf(await opened(id, "interrupted", { to: "Eva", text: "Dear Eva" }));
    assert.deepEqual(question, {
      action_request: { action: "send_mail", args: { to: "Eva", text: "Dear Eva" } },
      config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true }, description: "A mail to Eva",
    });
    assert.deepEqual(await answer(id, "agent", { type: "response", args: "thank you" }), ["review"]);
    const again = questionOf(await opened(id, "interrupted", { to: "Eva", text: "Dear Eva, thank you" }));
    assert.equal(again.action_request.args.text, "Dear Eva, thank you");
    const edited = { action: "send_mail", args: { to: "Eve", text: "Dear Eve" } };
    assert.deepEqual(await answer(id, "agent", { type: "edit", args: edited }), ["review", "send"]);
    const thread = await opened(id, "idle", { to: "Eve", text: "Dear Eve", sent: "Eve: Dear Eve" });
    assert.deepEqual(thread.interrupts, {});
  },

  /** accepted has a person send the text as it is. */
  async accepted() {
    const id = await asked("Fay");
    const question = questionOf(await client.threads.get(id));
    assert.deepEqual(await answer(id, "agent", accepting(question)), ["review", "send"]);
    await opened(id, "idle", { to: "Fay", text: "Dear Fay", sent: "Fay: Dear Fay" });
  },

  /**
   * ignored is hooks/use-interrupted-actions.tsx, handleIgnore, which does not follow the run, but
   * lists the threads that wait at once.
   */
  async ignored() {
    const id = await asked("Gus");
    const { run_id: run } = await client.runs.create(id, "agent", { command: { resume: [{ type: "ignore", args: null }] } });
    await wantsGone(id);
    await client.runs.join(id, run);
    await opened(id, "idle", { to: "Gus", text: "Dear Gus", ignored: true });
  },

  /**
   * resolved is hooks/use-interrupted-actions.tsx, handleResolve, and contexts/ThreadContext.tsx,
   * ignoreThread: it ends the graph where it waits.
   */
  async resolved() {
    const id = await asked("Hal");
    await client.threads.updateState(id, { values: null, asNode: END });
    const thread = await opened(id, "idle", { to: "Hal", text: "Dear Hal" });
    assert.deepEqual([thread.interrupts, (await client.threads.getState(id)).next], [{}, []]);
    await wantsGone(id);
  },

  /**
   * stopped waits for a person without a question: contexts/ThreadContext.tsx, fetchSingleThread,
   * and contexts/utils.ts, processThreadWithoutInterrupts, look for the question in the state's
   * last task.
   */
  async stopped() {
    const { thread_id: id } = await client.threads.create();
    await client.runs.wait(id, "agent", { input: { to: "Ivo" }, interruptBefore: ["review"] });
    assert.deepEqual((await opened(id, "interrupted", { to: "Ivo", text: "Dear Ivo" })).interrupts, {});
    const { tasks } = await client.threads.getState(id);
    assert.deepEqual([tasks.at(-1).name, tasks.at(-1).interrupts], ["review", []]);
    await client.threads.updateState(id, { values: null, asNode: END });
    await wantsGone(id);
  },
};

tell(...Object.values(stories));
