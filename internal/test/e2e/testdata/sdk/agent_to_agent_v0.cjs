// Another agent asks this agent with a client of version 0.3 of the Agent2Agent protocol.
// Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const { randomUUID } = require("node:crypto");
const { apiUrl, apiKey, collect, tell } = require("./story.cjs");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } = createRequire(process.env.SDK_MODULES)("a2a-js-sdk-v0/client");

const fetchImpl = (url, { headers, ...init } = {}) => fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(headers)), "X-Api-Key": apiKey } });
const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) });

const message = (contextId) => ({
  message: { kind: "message", messageId: randomUUID(), contextId, role: "user", parts: [{ kind: "text", text: "what's the weather in sf?" }] },
});

async function asked() {
  const client = await factory.createFromUrl(`${apiUrl}/a2a/agent/`);
  const events = await collect(client.sendMessageStream(message()));
  const { taskId: id, contextId, artifact } = events.find(({ kind }) => kind === "artifact-update");
  assert.ok(artifact.parts[0].text);
  assert.deepEqual([events.at(-1).status.state, events.at(-1).final], ["completed", true]);

  const again = await client.sendMessage(message(contextId));
  assert.ok(again.id !== id && again.contextId === contextId && again.status.state === "completed" && again.history[0].role === "user");
  assert.deepEqual((await client.getTask({ id })).artifacts.at(-1).parts, artifact.parts);
  await assert.rejects(client.cancelTask({ id }), { name: "TaskNotCancelableError" });
}

tell(asked);
