// The parts that the stories of the thread-centric protocol share. Arguments of each script: the
// agent's URL, the key, the transport of events.
const { createRequire } = require("node:module");
const { apiKey, apiUrl } = require("./story.cjs");

const transport = process.argv[4];
const modules = createRequire(process.env.SDK_MODULES); // the release of the SDK that the test names
const { Client } = modules("@langchain/langgraph-sdk");
const WebSocket = modules("ws");

// Over WebSockets the SDK takes no key: what makes the connections adds it.
const keyed = (url, init) => fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), "x-api-key": apiKey } });
const client = transport === "sse" ? new Client({ apiUrl, apiKey }) : new Client({ apiUrl, apiKey: null, callerOptions: { fetch: keyed } });
const webSocketFactory = (url) => new WebSocket(url, { headers: { "x-api-key": apiKey } });

/** stream is a thread, or a new one. */
const stream = (id) => {
  const options = { assistantId: "agent", transport, webSocketFactory, maxReconnectAttempts: 1000, reconnectDelayMs: () => 200 };
  return id ? client.threads.stream(id, options) : client.threads.stream(options);
};

// The words of an agent that follows scripts in a subgraph, after which it goes on until it is
// stopped: the SDK finds no subgraphs once it knows the end of the run.
const blue = { messages: [{ type: "ai", id: "m5", content: "It is blue." }] };
const deep = [
  ...["It is ", "blue."].map((content) => ({ event: "messages|inner:1", data: [{ type: "AIMessageChunk", id: "m5", content }, {}] })),
  { event: "updates|inner:1", data: { model: blue } }, { event: "updates", data: { inner: blue } }, { hold: true },
];

const isRoot = (event) => event.method === "lifecycle" && event.params.namespace.length === 0;
const said = (event) => event.params.data.event;

/**
 * until reads events up to one. The SDK pauses a subscription at the end of a run, and ends one
 * whose loop is left.
 */
async function until(subscription, isLast) {
  const events = [];
  const iterator = subscription[Symbol.asyncIterator]();
  do {
    subscription.resume();
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      events.push(next.value);
      if (await isLast(next.value, events)) return events;
    }
  } while (subscription.isPaused);
  throw new Error(`the stream has ended after ${events.length} events`);
}

module.exports = { client, deep, isRoot, said, stream, transport, until, webSocketFactory };
