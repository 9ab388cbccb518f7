// Opens pages that show a thread with assistant-ui, whose runtime streams from the SDK's client,
// and has people use them. Arguments: the agent's URL, the key, the stories, with commas between
// them. For "approved" the agent follows scripts.
const assert = require("node:assert/strict");
const { pathToFileURL } = require("node:url");
process.env.NODE_ENV = "production"; // the pages are built as they are served
const modules = require("node:module").createRequire(process.env.SDK_MODULES); // the release of assistant-ui that the test names
const { JSDOM } = modules("jsdom");
const { window } = new JSDOM("", { url: "http://page.test/", pretendToBeVisual: true });
const { document, requestAnimationFrame, cancelAnimationFrame } = window;
Object.assign(globalThis, { window, document, requestAnimationFrame, cancelAnimationFrame });
const { createElement, useEffect, useMemo } = modules("react");
const { createRoot } = modules("react-dom/client");
const { Client } = modules("@langchain/langgraph-sdk");
const { answered, apiKey, apiUrl, brisk, fast, tell } = require("./story.cjs");

const client = new Client({ apiUrl, apiKey });
/** long is an answer that a busy machine, too, shows in several pieces. */
const long = { configurable: { token_delay_ms: 20, node_delay_ms: 20, answer_words: 400 } };
const endless = { configurable: { token_delay_ms: 15, node_delay_ms: 10, answer_words: 10_000 } };
const question = (city) => `what's the weather in ${city}?`;
const textOf = ({ content }) => content.filter(({ type }) => type === "text").map(({ text }) => text).join("");
const kept = async (thread) => (await client.threads.getState(thread)).values.messages;
/** textsOf returns the texts that a page shows of a thread's messages. */
const textsOf = (messages) => messages.filter(({ type, content }) => type !== "tool" && content).map(({ content }) => content);

/** threads is where the pages keep their threads: at the agent. */
const threads = {
  list: async () => ({ threads: (await client.threads.search({ metadata: { page: "threads" } })).map(({ thread_id: id }) => ({ status: "regular", remoteId: id, externalId: id })) }),
  initialize: async () => {
    const { thread_id: id } = await client.threads.create({ metadata: { page: "threads" } });
    return { remoteId: id, externalId: id };
  },
  fetch: async (id) => {
    const { thread_id: found } = await client.threads.get(id);
    return { status: "regular", remoteId: found, externalId: found };
  },
  generateTitle: async () => new ReadableStream({ start: (controller) => { controller.close(); } }),
};

/** load is what a page reads of a thread that it opens. */
async function load(thread) {
  const { values, tasks } = await client.threads.getState(thread);
  return { messages: values.messages ?? [], interrupts: tasks.flatMap(({ interrupts }) => interrupts) };
}

/**
 * checkpointOf finds the checkpoint at which the thread had these messages. A page forks it there.
 */
async function checkpointOf(thread, messages) {
  const ids = messages.map(({ id }) => id).join();
  const states = await client.threads.getHistory(thread, { limit: 100 });
  return states.find(({ values }) => (values.messages ?? []).map(({ id }) => id).join() === ids)?.checkpoint.checkpoint_id ?? null;
}

/** application opens pages with the modules of assistant-ui. */
async function application() {
  const [{ AssistantRuntimeProvider, MessagePartPrimitive, MessagePrimitive, ThreadPrimitive }, { useLangGraphInterruptState, useLangGraphRuntime, useLangGraphSendCommand }] =
    await Promise.all(["@assistant-ui/react", "@assistant-ui/react-langgraph"].map((name) => import(pathToFileURL(modules.resolve(name)))));

  /** Page is a page. What it is asked to wait for is looked at whenever it has been drawn. */
  return class Page {
    #waiting = [];

    constructor({ thread, streamMode = ["messages-tuple", "updates"], multitaskStrategy, config = brisk } = {}) {
      Object.assign(this, { thread, config, drawn: [], errors: [] });
      const stream = async (messages, { initialize, abortSignal, command, checkpointId }) => {
        this.thread = (await initialize()).externalId;
        return client.runs.stream(this.thread, "agent", {
          input: messages.length ? { messages } : null, config: this.config, streamMode, signal: abortSignal, onDisconnect: "cancel", multitaskStrategy, command,
          onRunCreated: ({ run_id: id }) => { this.run = id; }, ...(checkpointId && { checkpoint: { checkpoint_id: checkpointId } }),
        });
      };
      const eventHandlers = { onError: (error) => { this.errors.push(error); } };
      const Watched = () => {
        Object.assign(this, { interrupt: useLangGraphInterruptState(), answer: useLangGraphSendCommand() });
        useEffect(() => { this.#drawn(); });
        return null;
      };
      const parts = { Text: () => createElement(MessagePartPrimitive.Text, { smooth: false }) };
      const Message = () => createElement(MessagePrimitive.Root, null, createElement(MessagePrimitive.Parts, { components: parts }));
      const App = () => {
        const runtime = useLangGraphRuntime({
          stream, load, eventHandlers, getCheckpointId: checkpointOf, unstable_threadListAdapter: threads, unstable_allowCancellation: true, initialThreadId: thread,
        });
        this.runtime = runtime;
        useEffect(() => runtime.thread.subscribe(() => { this.#drawn(); }), [runtime]);
        const components = useMemo(() => ({ Message }), []);
        return createElement(AssistantRuntimeProvider, { runtime },
          createElement(ThreadPrimitive.Root, null, createElement(ThreadPrimitive.Messages, { components })), createElement(Watched));
      };
      this.root = createRoot(this.element = document.createElement("main"));
      this.root.render(createElement(App));
    }

    get messages() { return this.runtime?.thread.getState().messages ?? []; }

    get texts() { return this.messages.map(textOf); }

    get running() { return !this.runtime || this.runtime.thread.getState().isRunning || this.runtime.thread.getState().isLoading; }

    #drawn() {
      this.drawn.push(this.texts.at(-1) ?? "");
      this.#waiting = this.#waiting.filter(({ is, done }) => !is(this) || done());
    }

    /** until returns when the page has been drawn as it is asked for. */
    until(is) {
      return new Promise((resolve) => {
        if (is(this)) resolve();
        else this.#waiting.push({ is, done: () => { resolve(); } });
      });
    }

    say(text) {
      this.runtime.thread.composer.setText(text);
      this.runtime.thread.composer.send();
    }

    /** writing returns when the answer to the last question is on the page in part. */
    writing() { return this.until(() => this.running && this.messages.at(-1)?.role === "assistant" && this.texts.at(-1).split(" ").length > 5); }

    /** done returns when nothing is written any more, and the page shows what its thread keeps. */
    async done(questions) {
      await this.until(() => !this.running && this.messages.length === 2 * questions);
      return kept(this.thread);
    }
  };
}

const stories = {
  /** streamed asks twice in a thread, in each of the two modes in which pages are told words. */
  async streamed() {
    const Page = await application();
    for (const streamMode of [["messages-tuple", "updates"], ["messages", "updates"], ["messages-tuple", "values"]]) {
      const page = new Page({ streamMode, config: long });
      await page.until(() => !page.running);
      page.say(question("sf"));
      await page.writing();
      const first = await page.done(1);
      assert.deepEqual(first.map(({ type }) => type), answered);
      assert.ok(page.texts[1].endsWith(first[3].content), page.texts[1]);
      const grown = page.drawn.filter((text) => text && page.texts[1].startsWith(text));
      assert.deepEqual(grown, grown.toSorted((a, b) => a.length - b.length), "the words come in order");
      assert.ok(new Set(grown).size > 2, `the answer grew in ${new Set(grown).size} pieces`);
      assert.ok(page.element.textContent.includes(first[3].content), "the document shows it");
      page.config = fast;
      page.say(question("nyc"));
      const both = await page.done(2);
      assert.deepEqual([both.slice(0, 4), page.errors], [first, []]);
      assert.deepEqual(page.messages[1].content.find(({ type }) => type === "tool-call").toolCallId, first[1].tool_calls[0].id);
    }
  },

  /** stopped is a person who stops an answer, and asks something else. */
  async stopped() {
    const Page = await application();
    const page = new Page({ config: endless });
    await page.until(() => !page.running);
    page.say(question("rome"));
    await page.writing();
    page.runtime.thread.cancelRun();
    await page.until(() => !page.running);
    await client.runs.join(page.thread, page.run);
    assert.equal((await client.runs.get(page.thread, page.run)).status, "interrupted");
    const stopped = await kept(page.thread);
    assert.ok(page.texts[1] && textsOf(stopped).at(-1).startsWith(page.texts[1].slice(page.texts[1].indexOf("I have"))), "what was shown is kept");
    page.config = fast;
    page.say(question("nyc"));
    const both = await page.done(2);
    assert.deepEqual([both.slice(0, 4), both.map(({ type }) => type), page.errors], [stopped, [...answered, ...answered], []]);
  },

  /** overtaken has a message on a second page interrupt the answer that the first page shows. */
  async overtaken() {
    const Page = await application();
    const first = new Page({ config: endless });
    await first.until(() => !first.running);
    first.say(question("sf"));
    await first.writing();
    const second = new Page({ thread: first.thread, multitaskStrategy: "interrupt", config: fast });
    await second.until(() => !second.running && second.messages.length > 0);
    second.say(question("nyc"));
    await second.until(() => !second.running && second.texts.at(-1).includes("New York"));
    await first.until(() => !first.running);
    const both = await kept(first.thread);
    assert.deepEqual(both.map(({ type }) => type), [...answered, ...answered]);
    assert.ok(first.texts[1].endsWith(both[3].content), "the page was shown all that was kept");
    assert.deepEqual([first.errors, second.errors], [[], []]);
    const third = new Page({ thread: first.thread });
    await third.until(() => !third.running && third.messages.length === 4);
    assert.deepEqual(third.texts, textsOf(both));
  },

  /** edited has a person change a question, and have the answer to it written again. */
  async edited() {
    const Page = await application();
    const page = new Page({ config: fast });
    await page.until(() => !page.running);
    for (const [i, city] of ["sf", "rome"].entries()) {
      page.say(question(city));
      await page.done(i + 1);
    }
    const before = await kept(page.thread);
    const composer = page.runtime.thread.getMessageByIndex(2).composer;
    composer.beginEdit();
    composer.setText(question("nyc"));
    composer.send();
    await page.until(() => !page.running && page.texts.at(-1).includes("New York"));
    const after = await kept(page.thread);
    assert.deepEqual([after.slice(0, 4), after.length], [before.slice(0, 4), 8]);
    const { run } = page;
    page.runtime.thread.getMessageByIndex(3).reload();
    await page.until(() => !page.running && page.run !== run);
    const again = await kept(page.thread);
    assert.deepEqual([again.slice(0, 5), again.length, page.errors], [after.slice(0, 5), 8, []]);
    assert.notEqual(again[7].id, after[7].id);
  },

  /** approved is a tool that waits for a person, who opens the page again and answers there. */
  async approved() {
    const Page = await application();
    const asked = { id: "q-send", value: { tool: "send", text: "Send it?" } };
    const following = (...script) => ({ configurable: { script } });
    const page = new Page({ config: following({ event: "interrupt", data: [asked] }) });
    await page.until(() => !page.running);
    page.say(question("sf"));
    await page.until(() => page.interrupt && !page.running);
    assert.deepEqual(page.interrupt.value, asked.value);
    assert.equal((await client.threads.get(page.thread)).status, "interrupted");
    const done = { event: "updates", data: { model: { messages: [{ type: "ai", id: "m1", content: "Sent" }] } } };
    const later = new Page({ thread: page.thread, config: following(done) });
    await later.until(() => later.interrupt && !later.running);
    assert.deepEqual(later.interrupt.value, asked.value);
    later.answer({ resume: "yes" });
    await later.until(() => !later.running && later.texts.at(-1) === "Sent");
    const [{ kwargs }] = await client.runs.list(page.thread);
    assert.deepEqual([kwargs.command.resume, later.interrupt, page.errors, later.errors], ["yes", undefined, [], []]);
    assert.equal((await client.threads.get(page.thread)).status, "idle");
  },
};

tell(...process.argv[4].split(",").map((name) => stories[name]));
