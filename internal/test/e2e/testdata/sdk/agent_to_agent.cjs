// Another agent asks this agent with the client of the Agent2Agent protocol, also with the option
// that version 0.3 needed. Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const { randomUUID } = require("node:crypto");
const { apiUrl, apiKey, client: server, slow, collect, tell } = require("./story.cjs");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } = createRequire(process.env.SDK_MODULES)("@a2a-js/sdk/client");
const { Role, TaskState } = createRequire(process.env.SDK_MODULES)("@a2a-js/sdk");

const fetchImpl = (url, { headers, ...init } = {}) => fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(headers)), "X-Api-Key": apiKey } });

/** The address ends with a slash: the client looks for the card beside its last part. */
const agent = (id, more) => {
  const options = { fetchImpl, ...more };
  const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory(options)], cardResolver: new DefaultAgentCardResolver(options) });
  return factory.createFromUrl(`${apiUrl}/a2a/${id}/`);
};

const message = (contextId, configuration) => ({
  message: {
    messageId: randomUUID(), contextId, taskId: "", role: Role.ROLE_USER, extensions: [], referenceTaskIds: [],
    parts: [{ content: { $case: "text", value: "what's the weather in sf?" }, filename: "", mediaType: "" }],
  },
  configuration, tenant: "",
});

const textOf = (parts) => parts.map(({ content }) => content.value).join("");

async function asked(more) {
  const client = await agent("agent", more);
  assert.ok((await client.getAgentCard()).supportedInterfaces[0].url.startsWith(apiUrl));
  const events = (await collect(client.sendMessageStream(message("")))).map(({ payload }) => payload);
  const shown = events.filter(({ $case }) => $case === "statusUpdate").map(({ value }) => textOf(value.status.message?.parts ?? [])).filter(Boolean).at(-1);
  const { taskId: id, contextId, artifact } = events.find(({ $case }) => $case === "artifactUpdate").value;
  const answer = textOf(artifact.parts);
  assert.ok(answer && shown.includes(answer), shown);
  assert.equal(events.at(-1).value.status.state, TaskState.TASK_STATE_COMPLETED);

  const again = await client.sendMessage(message(contextId));
  assert.equal(again.contextId, contextId);
  assert.equal(again.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.ok(again.id !== id && again.history.length > 2 && again.history[0].role === Role.ROLE_USER);
  assert.equal(textOf((await client.getTask({ id, tenant: "" })).artifacts.at(-1).parts), answer);
}

async function cancelled() {
  const { assistant_id } = await server.assistants.create({ graphId: "agent", config: slow });
  const client = await agent(assistant_id);
  const { id } = await client.sendMessage(message("", { returnImmediately: true, acceptedOutputModes: [] }));
  const followed = client.resubscribeTask({ id, tenant: "" });
  assert.equal((await followed.next()).value.payload.value.id, id);
  assert.equal((await client.cancelTask({ id, tenant: "" })).status.state, TaskState.TASK_STATE_CANCELED);
  assert.equal((await collect(followed)).at(-1).payload.value.status.state, TaskState.TASK_STATE_CANCELED);
  await assert.rejects(collect(client.resubscribeTask({ id, tenant: "" })), /the task has ended/);
  await assert.rejects(client.cancelTask({ id, tenant: "" }), { name: "TaskNotCancelableError" });
}

const askedAsBefore = () => asked({ legacyCompat: { enabled: true } });

tell(asked, askedAsBefore, cancelled);
