// Opens pages that show a thread with the SDK's React hook, and has people use them. Arguments: the
// agent's URL, the key, the stories, with commas between them; "asked" is that of the approval
// examples, whose language follows. For "parallel" and "nested" the agent follows scripts. "killed"
// says "shown" when the server may be killed.
const assert = require("node:assert/strict");
process.env.NODE_ENV = "production"; // the pages are built as they are served
const modules = require("node:module").createRequire(process.env.SDK_MODULES); // the release of the SDK that the test names
const { JSDOM } = modules("jsdom");
const { window } = new JSDOM("", { url: "http://page.test/" });
Object.assign(globalThis, { window, document: window.document });
const { createElement, useEffect } = modules("react");
const { createRoot } = modules("react-dom/client");
const { useStream } = modules("@langchain/langgraph-sdk/react");
const { answered, apiKey, apiUrl, client, create, tell } = require("./story.cjs");

const [told, language] = process.argv.slice(4);
const types = (messages) => messages.map((message) => message.type);
const questions = (messages) => messages.filter(({ type }) => type === "human").map(({ content }) => content);
const ask = (city) => ({ messages: [{ type: "human", id: `ask-${city}-${Math.random()}`, content: `what's the weather in ${city}?` }] });
const at = (configurable) => ({ config: { configurable } });
const fast = at({ token_delay_ms: 1, node_delay_ms: 1 });
const brisk = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 100 });
const long = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 400 }); // it is not over when a busy machine has opened another page
const endless = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 10_000 });
const following = (script) => at({ script });
const stateOf = async (thread) => (await client.threads.getState(thread)).values.messages;

/**
 * Page is a component with the hook, in a document. What it is asked to wait for is looked at
 * whenever it has been drawn.
 */
class Page {
  #waiting = [];
  #closed = new AbortController();

  constructor(options = {}) {
    this.drawn = []; // the text of the last message, each time
    this.errors = [];
    const callerOptions = { // a browser ends the requests of a page that is closed
      maxRetries: 0, fetch: (url, init) => fetch(url, { ...init, signal: AbortSignal.any([this.#closed.signal, ...(init.signal ? [init.signal] : [])]) }),
    };
    const all = {
      apiUrl, apiKey, assistantId: "agent", callerOptions, onThreadId: (id) => { this.thread = id; }, onCreated: (run) => { this.run = run.run_id; },
      onError: (error) => { this.errors.push(error); }, onFinish: (state) => { this.finished = state; }, ...options,
    };
    this.thread = options.threadId;
    this.root = createRoot(this.element = document.createElement("main"));
    this.root.render(createElement(() => {
      const stream = this.hook = useStream(all);
      const { messages } = stream; // reading them is what subscribes to them
      useEffect(() => {
        this.drawn.push(messages.at(-1)?.content ?? "");
        this.#waiting = this.#waiting.filter(({ is, done }) => !is(stream) || done());
      });
      return messages.map((message, i) => createElement("p", { key: message.id ?? i }, message.content));
    }));
  }

  /** until returns when the page has been drawn as it is asked for. */
  until(is) {
    return new Promise((resolve) => {
      if (this.hook && is(this.hook)) resolve();
      else this.#waiting.push({ is, done: () => { resolve(); } });
    });
  }

  shows(kinds) { return this.until(({ messages, isLoading }) => !isLoading && types(messages).join() === kinds.join()); }

  /** writing returns when the answer to the last question is on the page in part. */
  writing() {
    return this.until(({ messages, isLoading }) => isLoading && messages.at(-1)?.type === "ai" && messages.at(-1).content.split(" ").length > 5);
  }

  async idle() { await this.until(({ isLoading, isThreadLoading }) => !isLoading && !isThreadLoading); }

  close() {
    this.root.unmount();
    this.#closed.abort();
  }
}

/** opened is a page that has loaded what there is. */
async function opened(options) {
  const page = new Page(options);
  await page.until(({ isThreadLoading }) => !isThreadLoading);
  return page;
}

/** stopped is a page on which a person stops the answer: what was shown is kept. */
async function stopped(options) {
  const page = await opened(options);
  page.hook.submit(ask("rome"), endless);
  await page.writing();
  page.hook.stop();
  await page.idle();
  const shown = page.drawn.findLast((text) => text.startsWith("I have")); // the newest release takes it off the page
  await client.runs.join(page.thread, page.run);
  assert.equal((await client.runs.get(page.thread, page.run)).status, "interrupted");
  const kept = await stateOf(page.thread);
  assert.deepEqual(types(kept), answered);
  assert.ok(kept[3].content.startsWith(shown), "what was shown is kept");
  page.hook.submit(ask("nyc"), fast);
  await page.shows([...answered, ...answered]);
  assert.deepEqual([page.hook.messages.slice(0, 4), page.errors], [kept, []]);
}

const stories = {
  async streamed() {
    const page = await opened();
    const question = ask("sf");
    page.hook.submit(question, { ...brisk, optimisticValues: (before) => ({ messages: [...(before.messages ?? []), ...question.messages] }) });
    await page.until(({ messages }) => messages.length === 1);
    assert.equal(page.run, undefined, "the question is there before the run is");
    await page.writing();
    await page.shows(answered);
    const { messages } = page.hook;
    assert.deepEqual(messages, await stateOf(page.thread));
    assert.deepEqual(messages[0].id, question.messages[0].id);
    const pieces = page.drawn.filter((text) => text && messages[3].content.startsWith(text));
    assert.ok(new Set(pieces).size > 20, `the answer grew in ${pieces.length} pieces`);
    assert.equal(page.element.lastChild.textContent, messages[3].content);
    assert.deepEqual(page.hook.getMessagesMetadata(messages[3]).streamMetadata.run_id, page.run);
    page.hook.submit(ask("nyc"), fast);
    await page.shows([...answered, ...answered]);
    assert.deepEqual([page.errors, page.finished.next], [[], []]);
    assert.deepEqual(page.finished.values.messages, page.hook.messages);
  },

  async reloaded() {
    const page = await opened({ reconnectOnMount: true });
    page.hook.submit(ask("sf"), long);
    await page.writing();
    page.close();
    const shown = page.drawn.at(-1);
    const again = await opened({ threadId: page.thread, reconnectOnMount: true });
    await again.writing();
    await again.shows(answered);
    assert.deepEqual(again.hook.messages, await stateOf(page.thread));
    assert.ok(again.hook.messages[3].content.startsWith(shown));
    assert.equal((await client.runs.list(page.thread)).length, 1);
    assert.equal(window.sessionStorage.getItem(`lg:stream:${page.thread}`), null);
    const late = await opened({ threadId: page.thread, reconnectOnMount: true });
    assert.deepEqual(late.hook.messages, again.hook.messages);
  },

  async joined() {
    const threadId = await create();
    const page = await opened({ threadId });
    const run = await client.runs.create(threadId, "agent", { input: ask("sf"), ...long, streamMode: ["values", "messages-tuple"], streamResumable: true });
    page.hook.joinStream(run.run_id);
    await page.writing();
    await page.shows(answered);
    assert.deepEqual(page.hook.messages, await stateOf(threadId));
    const drawn = page.drawn.length;
    await page.hook.joinStream(run.run_id); // after the end
    await page.until(() => page.drawn.length > drawn);
    await page.shows(answered);
  },

  stopped: () => stopped({ reconnectOnMount: true }), // the hook cancels the run

  left: () => stopped({ reconnectOnMount: false }), // the hook ends the connection, and the server cancels the run

  async again() {
    const page = await opened();
    page.hook.submit(ask("sf"), { ...endless, onDisconnect: "continue" });
    await page.writing();
    const first = page.run;
    page.hook.submit(ask("nyc"), { ...fast, multitaskStrategy: "interrupt" }); // which the hook sends when the stream before has ended
    page.hook.stop();
    await page.shows([...answered, ...answered]);
    assert.notEqual(page.run, first);
    assert.deepEqual(page.hook.messages, await stateOf(page.thread));
    assert.equal((await client.runs.get(page.thread, first)).status, "interrupted");
  },

  async overtaken() {
    const first = await opened();
    first.hook.submit(ask("sf"), endless);
    await first.writing();
    const second = await opened({ threadId: first.thread });
    second.hook.submit(ask("nyc"), { ...fast, multitaskStrategy: "interrupt" });
    await second.shows([...answered, ...answered]);
    await first.idle();
    const kept = await stateOf(first.thread);
    assert.deepEqual(second.hook.messages, kept);
    assert.deepEqual([first.errors, second.errors, first.hook.error], [[], [], undefined]);
    assert.ok(first.drawn.some((text) => text === kept[3].content), "the page was shown all that was kept");
    await assert.rejects(client.runs.cancel(first.thread, first.run), { status: 404 });
  },

  async branched() {
    const page = await opened({ fetchStateHistory: { limit: 100 } });
    for (const city of ["sf", "rome"]) {
      page.hook.submit(ask(city), fast);
      await page.until(({ messages, isLoading }) => !isLoading && messages.length > 3 && messages.at(-4).content.includes(city) && page.finished?.next.length === 0);
    }
    const [first, , , , second] = page.hook.messages;
    const edited = async (message, city) => { // as a page has people edit what they have said
      const { firstSeenState } = page.hook.getMessagesMetadata(message);
      page.hook.submit(ask(city), { ...fast, checkpoint: firstSeenState.parent_checkpoint });
      await page.until(({ messages, isLoading }) => !isLoading && questions(messages).at(-1)?.includes(city) && messages.at(-1).type === "ai");
    };
    await edited(second, "oslo");
    assert.deepEqual(questions(page.hook.messages).map((text) => text.slice(22)), ["sf?", "oslo?"]);
    const { branch, branchOptions } = page.hook.getMessagesMetadata(page.hook.messages[4]);
    assert.deepEqual([branchOptions.length, branchOptions.includes(branch)], [2, true]);
    page.hook.setBranch(branchOptions.find((other) => other !== branch));
    await page.until(({ messages }) => questions(messages)[1]?.includes("rome"));
    assert.equal(page.hook.messages[4].id, second.id);
    page.hook.submit(ask("nyc"), { ...fast, checkpoint: page.hook.history.at(-1).checkpoint }); // on the branch that is shown
    await page.until(({ messages, isLoading }) => !isLoading && questions(messages)[2]?.includes("nyc") && messages.length === 12);
    assert.deepEqual(questions(page.hook.messages).map((text) => text.slice(22)), ["sf?", "rome?", "nyc?"]);
    assert.equal(page.hook.history.at(-1).values.messages.length, 12);
    await edited(first, "tokyo");
    assert.deepEqual(questions(page.hook.messages).map((text) => text.slice(22)), ["tokyo?"]);
    assert.deepEqual(page.errors, []);
  },

  async failed() {
    const page = await opened();
    page.hook.submit(ask("sf"), at({ node_delay_ms: 0, fail: "tools" }));
    await page.until(({ error, isLoading }) => error && !isLoading);
    assert.deepEqual([page.hook.error.name, page.errors.length], ["NodeError", 1]);
    const again = await opened({ threadId: page.thread });
    assert.equal((await client.threads.get(page.thread)).status, "error");
    again.hook.submit(ask("nyc"), fast);
    await again.shows(["human", "ai", ...answered]);
    assert.equal(again.hook.error, undefined);
    // The hook leaves the failed request for the history to the window, beside its own report of
    // it.
    process.once("unhandledRejection", (error) => { assert.equal(error.status, 404); });
    const lost = new Page({ threadId: "0191f6a0-0000-7000-8000-000000000000" });
    await lost.until(({ error }) => error?.status === 404);
  },

  async asked() {
    const facts = require("./agents.json")[language].approval;
    const page = await opened();
    page.hook.submit({ request: "the broken lamp" });
    await page.until(({ interrupt, isLoading }) => interrupt && !isLoading);
    assert.deepEqual(page.hook.interrupt.value, facts.question);
    page.close();
    const later = await opened({ threadId: page.thread });
    assert.deepEqual(later.hook.interrupts.map(({ value }) => value), [facts.question]);
    later.hook.submit(undefined, { command: { resume: facts.yes } });
    await later.until(({ values, isLoading }) => !isLoading && (values.status ?? values.sent));
    assert.deepEqual([later.hook.interrupt, later.hook.values.draft], [undefined, facts.draft]);
  },

  /**
   * parallel has two tools wait for a person at once, who opens the page again and answers for both
   * there.
   */
  async parallel() {
    const questions = ["delete", "send"].map((tool) => ({ id: `q-${tool}`, value: { tool } }));
    const page = await opened();
    page.hook.submit(ask("sf"), following([{ event: "interrupt", data: questions }]));
    await page.until(({ interrupts, isLoading }) => interrupts.length === 2 && !isLoading);
    assert.equal((await client.threads.get(page.thread)).status, "interrupted");
    page.close();
    const later = await opened({ threadId: page.thread });
    assert.deepEqual(later.hook.interrupts.map(({ id, value }) => ({ id, value })), questions);
    const resume = { "q-delete": { approved: false }, "q-send": { approved: true } };
    const done = { event: "updates", data: { model: { messages: [{ type: "ai", id: "m1", content: "Done" }] } } };
    later.hook.submit(undefined, { command: { resume }, ...following([done]) });
    await later.until(({ interrupts, isLoading, messages }) => interrupts.length === 0 && !isLoading && messages.at(-1).content === "Done");
    const [{ kwargs }] = await client.runs.list(page.thread);
    assert.deepEqual([kwargs.command.resume, page.errors, later.errors], [resume, [], []]);
  },

  /** nested is told what a subgraph says and does, with the place of the subgraph. */
  async nested() {
    const told = [];
    const page = await opened({ onUpdateEvent: (data, { namespace }) => { told.push([namespace, data]); } });
    const part = (content) => ({ event: "messages|inner:1", data: [{ type: "AIMessageChunk", id: "m5", content }, {}] });
    const whole = { messages: [{ type: "ai", id: "m5", content: "It is blue." }] };
    const script = [part("It is "), part("blue."), { event: "updates|inner:1", data: { model: { n: 1 } } }, { event: "updates", data: { inner: whole } }];
    page.hook.submit(ask("sf"), { ...following(script), streamMode: ["messages-tuple"], streamSubgraphs: true });
    await page.until(({ messages, isLoading }) => !isLoading && messages.at(-1)?.content === "It is blue.");
    assert.ok(page.drawn.includes("It is "), "the words of the subgraph are there as they come");
    assert.deepEqual(told, [[["inner:1"], { model: { n: 1 } }], [undefined, { inner: whole }]]);
    assert.deepEqual(page.errors, []);
  },

  /**
   * killed is a page that is open while the server is killed and started again. The agent gives the
   * next attempt at the answer a new id.
   */
  async killed() {
    const page = await opened({ reconnectOnMount: true });
    page.hook.submit(ask("sf"), at({ token_delay_ms: 30, node_delay_ms: 20, answer_words: 200 }));
    await page.writing();
    const cut = page.hook.messages.at(-1).id;
    console.log("shown");
    await page.shows(answered);
    assert.ok(page.hook.messages.every(({ id }) => id !== cut), "the page drops what the first attempt has shown");
    assert.deepEqual([page.hook.messages, page.errors], [await stateOf(page.thread), []]);
    const runs = await client.runs.list(page.thread);
    assert.deepEqual(runs.map(({ status }) => status), ["success"]);
  },
};

tell(...told.split(",").map((name) => stories[name]));
