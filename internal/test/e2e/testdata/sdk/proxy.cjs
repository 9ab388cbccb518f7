// Talks to the agent through the proxy that public chat applications on Next.js use, which passes
// bodies on without their Content-Type. Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { createRequire, register } = require("node:module");
const { pathToFileURL } = require("node:url");
const { Client } = require("@langchain/langgraph-sdk");
const { answered, apiKey, apiUrl, ask, collect, fast, tell, types } = require("./story.cjs");

// The proxy needs one class of Next.js, which is a Response with more members.
const standIn = "data:text/javascript,export const NextResponse = Response";
register(`data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) =>
  name === "next/server" ? { url: ${JSON.stringify(standIn)}, shortCircuit: true } : next(name, context);`)}`);

/** opened is a client whose requests go through a proxy with these options. */
async function opened(options) {
  const found = createRequire(process.env.SDK_MODULES).resolve("langgraph-nextjs-api-passthrough");
  const { initApiPassthrough } = await import(pathToFileURL(found));
  const routes = initApiPassthrough({ apiUrl, baseRoute: "api/", disableWarningLog: true, ...options });
  const pass = (url, init = {}) => {
    const request = new Request(url, init);
    return routes[request.method](Object.assign(request, { nextUrl: new URL(url) }));
  };
  return new Client({ apiUrl: "http://application.test/api", apiKey: null, callerOptions: { fetch: pass, maxRetries: 0 } });
}

/** used is what an application does: it sends, streams, edits, searches, stores and deletes. */
async function used(options) {
  const client = await opened(options);
  const mark = randomUUID();
  const { thread_id: thread } = await client.threads.create({ metadata: { mark } });
  const parts = await collect(client.runs.stream(thread, "agent", { input: ask("sf"), config: fast, streamMode: ["values"] }));
  assert.deepEqual([parts[0].event, types(parts.at(-1).data)], ["metadata", answered]);
  await client.threads.update(thread, { metadata: { title: "The weather" } });
  const found = await client.threads.search({ metadata: { mark } });
  assert.deepEqual(found.map(({ thread_id: id, metadata: { title } }) => [id, title]), [[thread, "The weather"]]);
  await client.store.putItem([mark], "a", { title: "The weather" });
  assert.deepEqual((await client.store.getItem([mark], "a")).value, { title: "The weather" });
  await client.threads.delete(thread);
  await assert.rejects(client.threads.get(thread), { status: 404 });
}

/** keyed has a proxy with the key, tokened has a proxy that sends a token in place of the key. */
const keyed = () => used({ apiKey });
const tokened = () => used({ apiKey: "", headers: () => ({ Authorization: `Bearer ${apiKey}` }) });

tell(keyed, tokened);
