// Opens pages that show a thread with a newest hook, which speaks the thread-centric protocol.
// Arguments: the agent's URL, the key, the transport, the stories, with commas between them, and
// the file of the program that "readme" and "approved" run. For "asked", "nested" and "approved"
// the agent follows scripts. "killed" says "shown" when the server may be killed.
const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { isDeepStrictEqual } = require("node:util");
process.env.NODE_ENV = "production"; // the pages are built as they are served
const { JSDOM } = createRequire(process.env.SDK_MODULES)("jsdom");
const { window } = new JSDOM("", { url: "http://page.test/" });
Object.assign(globalThis, { window, document: window.document });
const isSvelte = "svelte" in require(process.env.SDK_MODULES).dependencies;
const { draw, useStream } = require(isSvelte ? "./draw-svelte.cjs" : "./draw-react.cjs");
const { client, transport, webSocketFactory } = require("./threads-v3.cjs");
const { answered, apiKey, apiUrl, create, fast, tell } = require("./story.cjs");

const [told, program] = process.argv.slice(5);
const kinds = (messages) => messages.map((message) => message.type).join();
const ask = (city) => ({ messages: [{ type: "human", content: `what's the weather in ${city}?` }] });
const at = (configurable) => ({ config: { configurable } });
const brisk = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 150 });
const long = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 400 }); // it is not over when a busy machine has opened another page
const endless = at({ token_delay_ms: 15, node_delay_ms: 10, answer_words: 10_000 });
const following = (script) => at({ script });
const updates = (...messages) => ({ event: "updates", data: { model: { messages } } });
const tools = ["delete", "send"];
const pauses = [
  updates({ type: "ai", id: "m1", content: "I need two tools", tool_calls: tools.map((name) => ({ name, args: {}, id: `call-${name}`, type: "tool_call" })) }),
  { event: "interrupt", data: tools.map((tool) => ({ id: `q-${tool}`, value: { tool } })) },
];
const goesOn = [
  updates(...tools.map((name) => ({ type: "tool", id: `r-${name}`, tool_call_id: `call-${name}`, content: `did ${name}` }))),
  updates({ type: "ai", id: "m2", content: "Done" }),
];
const stateOf = async (thread) => (await client.threads.getState(thread)).values.messages;

/**
 * Page is a component with the hook, in a document. What it is asked to wait for is looked at
 * whenever it has been drawn.
 */
class Page {
  #waiting = [];

  constructor(threadId, use) {
    this.texts = []; // the text of the last message, each time
    this.thread = threadId;
    const onThreadId = (id) => { this.thread = id; };
    const drawn = (hook) => {
      this.hook = hook;
      this.texts.push(hook.messages.at(-1)?.text ?? "");
      this.#waiting = this.#waiting.filter(({ is, done }) => !is(hook) || done());
    };
    // A busy machine may take longer to start a killed server again than the hook tries by default.
    const maxReconnectAttempts = 100;
    const options = { client, transport, webSocketFactory, maxReconnectAttempts, assistantId: "agent", threadId, onThreadId };
    this.element = document.createElement("main");
    this.close = draw(this.element, { options, use, drawn, answer: () => { this.answer(); } });
  }

  /** until returns when the page has been drawn as it is asked for. */
  until(is) {
    return new Promise((resolve) => {
      if (this.hook && is(this.hook)) resolve();
      else this.#waiting.push({ is, done: () => { resolve(); } });
    });
  }

  /**
   * shows returns what the thread keeps, when the page shows just that. Over server-sent events the
   * hook has two connections, and one may be behind: isLoading then ends before the page has the
   * last words, or with the end of the run before.
   */
  async shows(types) {
    await this.until(({ messages, isLoading }) => !isLoading && kinds(messages) === types.join());
    const [{ run_id }] = await client.runs.list(this.thread);
    await client.runs.join(this.thread, run_id);
    const kept = (await stateOf(this.thread)).map(({ content }) => content);
    await this.until(({ messages }) => isDeepStrictEqual(messages.map(({ text }) => text), kept));
    return kept;
  }

  /** writing returns when the answer to the last question is on the page in part. */
  writing() { return this.until(({ messages }) => messages.at(-1)?.type === "ai" && messages.at(-1).text.split(" ").length > 5); }

  /** answer approves the tools that are ticked, and refuses the others. */
  answer() {
    const ticks = [...this.element.querySelectorAll("input")].map(({ name, checked }) => [name, { approved: checked }]);
    this.answered = this.hook.respondAll(Object.fromEntries(ticks), following(goesOn));
  }
}

/** opened is a page that has loaded what there is. */
async function opened(threadId, use) {
  const page = new Page(threadId, use);
  await page.until(({ isThreadLoading }) => !isThreadLoading);
  return page;
}

async function streamed() {
  const page = await opened();
  page.hook.submit(ask("sf"), brisk);
  await page.writing();
  const kept = await page.shows(answered);
  assert.equal([...page.element.querySelectorAll("p")].at(-1).textContent, kept[3]);
  page.hook.submit(ask("nyc"), { config: fast });
  await page.shows([...answered, ...answered]);
  assert.equal(page.hook.error, undefined);
  page.close();
}

/** reloaded comes back in the middle of the answer. */
async function reloaded() {
  const page = await opened();
  page.hook.submit(ask("sf"), long);
  await page.writing();
  page.close();
  const again = await opened(page.thread);
  await again.writing();
  await again.shows(answered);
  assert.equal((await client.runs.list(page.thread)).length, 1);
  again.close();
}

/** stopped keeps what was shown while the answer grew. */
async function stopped() {
  const page = await opened();
  const pieces = () => [...new Set(page.texts.filter((text) => text.startsWith("I have looked")))];
  page.hook.submit(ask("rome"), endless);
  await page.until(() => pieces().length > 2);
  await page.hook.stop();
  await page.until(({ isLoading }) => !isLoading);
  const [{ run_id }] = await client.runs.list(page.thread);
  await client.runs.join(page.thread, run_id);
  assert.equal((await client.runs.get(page.thread, run_id)).status, "interrupted");
  const kept = await stateOf(page.thread);
  assert.equal(kinds(kept), answered.join());
  for (const piece of pieces()) assert.ok(kept[3].content.startsWith(piece), piece);
  page.hook.submit(ask("nyc"), at({ token_delay_ms: 1, node_delay_ms: 1 }));
  await page.shows([...answered, ...answered]);
  page.close();
}

/** overtaken is a tab whose answer another tab interrupts. */
async function overtaken() {
  const first = await opened();
  first.hook.submit(ask("sf"), endless);
  await first.writing();
  await client.runs.create(first.thread, "agent", {
    input: ask("nyc"), config: { configurable: { token_delay_ms: 1, node_delay_ms: 1 } }, multitaskStrategy: "interrupt",
  });
  const second = await opened(first.thread);
  const kept = await second.shows([...answered, ...answered]);
  assert.ok(first.texts.some((text) => text.split(" ").length > 5 && text !== ask("sf").messages[0].content && kept[3].startsWith(text)));
  first.close();
  second.close();
}

async function failed() {
  const page = await opened();
  page.hook.submit(ask("sf"), at({ node_delay_ms: 0, fail: "tools" }));
  await page.until(({ error, isLoading }) => error && !isLoading);
  assert.match(page.hook.error.message, /^node tools fails/);
  page.close();
}

/**
 * forked goes on from before the question, with another one. The first run is not over before the
 * hook has both its subscriptions, also on a busy machine: the hook would drop what comes later.
 */
async function forked() {
  const page = await opened();
  page.hook.submit(ask("sf"), brisk);
  await page.shows(answered);
  const first = (await client.threads.getHistory(page.thread, { limit: 100 })).findLast(({ values }) => values.messages?.length > 0);
  page.hook.submit(ask("rome"), { config: fast, forkFrom: first.parent_checkpoint.checkpoint_id });
  await page.until(({ messages }) => messages[0].text === ask("rome").messages[0].content);
  await page.shows(answered);
  page.close();
}

/**
 * nested shows a subgraph, and what it says by itself. For the hook, a subgraph is what has a node
 * inside. The run goes on until the page shows all that was said: the hook drops what comes for a
 * subgraph after the end of the run.
 */
async function nested() {
  const part = (content) => ({ event: "messages|inner:1|model:2", data: [{ type: "AIMessageChunk", id: "m5", content }, {}] });
  const page = await opened();
  page.hook.submit({ messages: [] }, following([part("It is "), part("blue."), { hold: true }]));
  await page.until(({ inner, subgraphs }) => subgraphs.size === 1 && inner.at(-1)?.text === "It is blue.");
  const [{ namespace, status }] = page.hook.subgraphs.values();
  assert.deepEqual([namespace, status], [["inner:1"], "running"]);
  await page.hook.stop();
  await page.until(({ isLoading, subgraphs }) => !isLoading && [...subgraphs.values()][0].status === "complete");
  page.close();
}

/** shown is a page with the program of the README. */
function shown(threadId) {
  const component = new Function("useStream", "apiUrl", "apiKey", "threadId", "onThreadId", `${readFileSync(program, "utf8")}\nreturn { ...stream, say, approve };`);
  return opened(threadId, (thread) => component(useStream, apiUrl, apiKey, thread.threadId, thread.onThreadId));
}

/** readme is the page of the README, where a question interrupts an answer. */
async function readme() {
  const page = await shown();
  page.hook.say("the weather in sf?");
  await page.until(({ messages }) => messages.length === answered.length && messages.at(-1).text);
  page.hook.say("and in nyc?");
  await page.shows([...answered, ...answered]);
  assert.deepEqual((await client.runs.list(page.thread)).map(({ status }) => status), ["success", "interrupted"]);
  page.close();
}

/**
 * approved is the page of the README, where a person approves all tools. The answer has the
 * configuration of the run before: it asks the same again.
 */
async function approved() {
  const thread = await create();
  await client.runs.wait(thread, "agent", { input: { messages: [] }, ...following(pauses) });
  const page = await shown(thread);
  await page.until(({ interrupts }) => interrupts.length === 2);
  await page.hook.approve();
  const [{ kwargs }] = await client.runs.list(thread);
  assert.deepEqual(kwargs.command.resume, { "q-delete": { approved: true }, "q-send": { approved: true } });
  page.close();
}

/**
 * asked has two tools wait for a person at once, who opens the page again and answers for both
 * there.
 */
async function asked() {
  const page = await opened();
  page.hook.submit({ messages: [{ type: "human", content: "go" }] }, following(pauses));
  await page.until(({ interrupts, isLoading }) => interrupts.length === 2 && !isLoading);
  assert.deepEqual([...page.element.querySelectorAll("label")].map(({ textContent }) => textContent), tools);
  assert.equal((await client.threads.get(page.thread)).status, "interrupted");
  page.close();
  const again = await opened(page.thread);
  await again.until(({ interrupts }) => interrupts.length === 2);
  again.element.querySelector("input[name=q-send]").click();
  again.element.querySelector("button").click();
  await again.until(({ interrupts, isLoading, messages }) => interrupts.length === 0 && !isLoading && messages.at(-1).text === "Done");
  await again.answered;
  assert.deepEqual([...again.element.querySelectorAll("p")].map(({ textContent }) => textContent), ["go", "I need two tools", "did delete", "did send", "Done"]);
  const [{ kwargs }] = await client.runs.list(page.thread);
  assert.deepEqual(kwargs.command.resume, { "q-delete": { approved: false }, "q-send": { approved: true } });
  assert.equal((await client.runs.list(page.thread)).length, 2);
  again.close();
}

/**
 * killed is a page that is open while the server is killed and started again. The agent gives the
 * next attempt at the answer a new id: the page drops what it had shown of the first attempt, and a
 * page that is opened in the middle of the second attempt does so, too.
 */
async function killed() {
  const page = await opened();
  page.hook.submit(ask("sf"), at({ token_delay_ms: 30, node_delay_ms: 20, answer_words: 400 }));
  await page.writing();
  const cut = page.hook.messages.at(-1).id;
  console.log("shown");
  await page.until(({ messages }) => messages.at(-1)?.type === "ai" && messages.at(-1).id !== cut && messages.at(-1).text);
  const other = await opened(page.thread);
  for (const open of [page, other]) {
    await open.shows(answered);
    assert.ok(open.hook.messages.every(({ id }) => id !== cut));
  }
  assert.deepEqual([page.hook.error, (await client.runs.list(page.thread)).length], [undefined, 1]);
  page.close();
  other.close();
}

const stories = { streamed, reloaded, stopped, overtaken, failed, forked, asked, nested, killed, readme, approved };
tell(...told.split(",").map((name) => stories[name]));
