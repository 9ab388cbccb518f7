// Drives the edges of the interrupt scenario through the JavaScript SDK. Arguments: the agent's
// URL, the key.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { Client } = require("@langchain/langgraph-sdk");
const { answered, apiKey, apiUrl, ask, client, create, fast, slow, tell, thinking, types, until } = require("./story.cjs");

const interrupting = { multitaskStrategy: "interrupt" };
const questions = ({ messages }) => messages.filter(({ type }) => type === "human").map(({ content }) => content);
const start = (thread, city, config, options) => client.runs.create(thread, "agent", { input: ask(city), config, ...options });
const interrupt = (thread, city) => client.runs.wait(thread, "agent", { input: ask(city), config: fast, ...interrupting });
const wantRuns = async (thread, ...statuses) => assert.deepEqual((await client.runs.list(thread)).map(({ status }) => status).reverse(), statuses);

/** begun is a thread with a run in the middle of its answer. */
async function begun() {
  const thread = await create();
  const { run_id: run } = await start(thread, "sf", slow);
  await until(async () => types((await client.threads.getState(thread)).values).length === 3);
  return [thread, run];
}

async function beforeTheFirstCheckpoint() {
  const thread = await create();
  await start(thread, "sf", thinking);
  assert.deepEqual(types(await interrupt(thread, "nyc")), ["human", ...answered]);
  await wantRuns(thread, "interrupted", "success");
}

async function withRunsQueued() {
  const [thread] = await begun();
  for (const city of ["rome", "oslo"]) await start(thread, city, fast);
  const values = await interrupt(thread, "nyc");
  assert.deepEqual(types(values), ["human", "ai", "tool", "human", "human", ...answered]);
  assert.deepEqual(questions(values), ["sf", "rome", "oslo", "nyc"].map((city) => ask(city).messages[0].content));
  await wantRuns(thread, "interrupted", "interrupted", "interrupted", "success");
}

async function twoAtOnce() {
  const [thread] = await begun();
  await Promise.all(["rome", "oslo"].map((city) => start(thread, city, thinking, interrupting)));
  assert.deepEqual(types(await interrupt(thread, "nyc")), ["human", "ai", "tool", "human", "human", ...answered]);
  await wantRuns(thread, "interrupted", "interrupted", "interrupted", "success");
}

async function afterSuccess() {
  const thread = await create();
  await client.runs.wait(thread, "agent", { input: ask("sf"), config: fast });
  assert.deepEqual(types(await interrupt(thread, "nyc")), [...answered, ...answered]);
  await wantRuns(thread, "success", "success");
}

async function twoCancelsAtOnce() {
  const [thread, run] = await begun();
  const answers = await Promise.allSettled([1, 2].map(() => client.runs.cancel(thread, run, true)));
  assert.deepEqual(answers.map(({ status, reason }) => reason?.status ?? status).sort(), [404, "fulfilled"]);
  await assert.rejects(client.runs.cancel(thread, run, false, "rollback"), { status: 404 });
  await wantRuns(thread, "interrupted");
}

/**
 * called is a thread whose run was cancelled between the call of a tool, which it took over from a
 * run that failed there, and its result.
 */
async function called() {
  const thread = await create();
  const failing = { configurable: { node_delay_ms: 0, fail: "tools" } };
  await client.runs.wait(thread, "agent", { input: ask("sf"), config: failing, raiseError: false });
  const [, call] = (await client.threads.getState(thread)).values.messages;
  const { run_id: run } = await client.runs.create(thread, "agent", { config: thinking });
  await until(async () => (await client.runs.get(thread, run)).status === "running");
  await client.runs.cancel(thread, run, true);
  return [thread, call.tool_calls[0].id];
}

/** The client answers it, or has the agent go on there. */
async function aCallWithoutAResult() {
  const [thread, call] = await called();
  const result = { type: "tool", tool_call_id: call, content: "Never mind." };
  await client.threads.updateState(thread, { values: { messages: [result] }, asNode: "tools" });
  assert.deepEqual(types(await client.runs.wait(thread, "agent", { input: ask("nyc"), config: fast })), ["human", "ai", "tool", ...answered]);
  const [other] = await called();
  assert.deepEqual(types(await client.runs.wait(other, "agent", { config: fast })), answered);
}

/**
 * The answer to a creation is lost, and the SDK asks again by itself; the client has named the
 * creation so that it happens once.
 */
async function aCreationRepeated() {
  let lost = 0;
  const losing = async (url, init) => {
    const answer = await fetch(url, init);
    return lost++ === 0 ? new Response("", { status: 502 }) : answer;
  };
  const again = new Client({ apiUrl, apiKey, defaultHeaders: { "Idempotency-Key": randomUUID() }, callerOptions: { fetch: losing } });
  const thread = await create();
  const run = await again.runs.create(thread, "agent", { input: ask("sf"), config: fast });
  assert.deepEqual(types(await client.runs.join(thread, run.run_id)), answered);
  assert.equal(lost, 2);
  await wantRuns(thread, "success");
}

tell(beforeTheFirstCheckpoint, withRunsQueued, twoAtOnce, afterSuccess, twoCancelsAtOnce, aCallWithoutAResult, aCreationRepeated);
