// The repository's own authentication: the values that its handlers get, and the use of their
// answers.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { eventsOf, named, project, run, Runtime, Thread, until, write } from "./runtime.mjs";

const GRAPH = `import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ seen: Annotation<unknown> });

function node(_state: unknown, { configurable }: any) {
  return { seen: [configurable.langgraph_auth_user, configurable.langgraph_auth_user_id, configurable.langgraph_auth_permissions, configurable.user_id] };
}

export const graph = new StateGraph(State).addNode("a", node).addEdge(START, "a").compile();
`;
const AUTH = `import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { HTTPException as HonoException } from "hono/http-exception";

class Client { secret = "hunter2"; }
class Person { identity = "person"; get permissions() { return ["write"]; } }

async function who(request: Request): Promise<any> {
  const name = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
  const url = new URL(request.url);
  switch (name) {
    case "plain": return "plain";
    case "ada": return { identity: "ada", permissions: ["read"], role: "author", client: new Client(), made: () => 1, absent: undefined };
    case "person": return new Person();
    case "seen": return { identity: "seen", seen: [request.method, url.pathname, Object.fromEntries(url.searchParams), request.headers.get("x-custom"), [...request.headers.keys()]] };
    case "late": throw new HTTPException(403, { message: "The token is old." });
    case "hono": throw new HonoException(401, { message: "Says Hono." });
    case "odd": throw new HTTPException(200, { message: "Fine." });
    case "response": throw new Response("no", { status: 402, headers: { "X-Price": "7" } });
    case "hono response": throw new HonoException(409, { message: "Says Hono.", res: new Response(null, { headers: { "X-Price": "7" } }) });
    case "paid": throw new HTTPException(402, { message: "Pay.", headers: { "X-Price": "7", "WWW-Authenticate": "Bearer realm=x" } });
    case "listed": throw new HTTPException(429, { headers: [["Retry-After", "7"]] });
    case "unreadable": throw new HTTPException(402, { message: "Pay.", headers: { "not a name": "7" } });
    case "throw": throw new Error("the database password is hunter2");
    case "service": throw Object.assign(new Error("the key sk-hunter2 is wrong"), { status: 401, headers: {} });
    case "text": throw "hunter2";
    case "nothing": throw undefined;
    case "visitor": return { identity: "" };
    case "nobody": return { permissions: [] };
    case "number": return 7;
    case "none": return null;
    case "undefined": return undefined;
    case "true": return true;
    case "list": return ["ada"];
    case "identity": return { identity: { $ne: "" } };
    case "permissions": return { identity: "x", permissions: "all" };
    case "unauthenticated": return { identity: "x", is_authenticated: false, permissions: [] };
    case "unset": return { identity: "x", is_authenticated: undefined };
    case "null": return { identity: "x", is_authenticated: null };
    case "yes": return { identity: "x", is_authenticated: "yes" };
    case "getter": return new (class { identity = "x"; get is_authenticated() { return null; } })();
    case "hang": return new Promise(() => {});
  }
  throw new HTTPException(401, { message: "Who are you?" });
}

export const auth = new Auth()
  .authenticate(who)
  .on("*", () => false)
  .on("*:search", () => ({ searched: true }))
  .on(["threads", "crons"], ({ value, user }: any) => {
    value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity, teams: { $contains: ["red"] } };
  })
  .on("threads:delete", ({ permissions, event, resource, action }: any) => permissions.includes([event, resource, action].join(" ")))
  .on("threads:read", () => { throw new Error("hunter2"); })
  .on("threads:search", () => "owner" as any)
  .on("threads:update", ({ user }: any) => ({ owner: user.organization }))
  .on("assistants:read", ({ user }: any) => ({ owner: { $eq: user.organization } }))
  .on("assistants:search", () => new Map([["owner", "ada"]]) as any)
  .on("assistants:update", () => { throw new HTTPException(404, { message: "There is none." }); })
  .on("assistants:create", ({ value }: any) => { value.count = 1n; })
  .on("crons:read", () => new Promise(() => {}))
  .on("crons:delete", () => 1 as any)
  .on("store", ({ value, user }: any) => { value.namespace = [user.identity, ...value.namespace]; });
`;
const config = { graphs: { agent: "./src/agent.ts:graph" }, auth: { path: "./src/auth.ts:auth" } };
const asked = { SLIPWAY_AUTH: "./src/auth.ts:auth" };
const files = { "framework.json": config, "src/agent.ts": GRAPH, "src/auth.ts": AUTH };

let guarded;
const cleanups = [];
before(async () => (guarded = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, write(files), asked)));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

async function ask(question) {
  const response = await guarded.post(question);
  const text = await response.text();
  assert.ok(!text.includes("hunter2"), text);
  return { status: response.status, answer: JSON.parse(text) };
}

function authenticate(name, { headers, ...request } = {}) {
  return ask({
    operation: "authenticate",
    request: { method: "GET", path: "/info", path_params: {}, query: "", headers: { host: "agents.test", authorization: `Bearer ${name}`, ...headers }, ...request },
  });
}

function authorize(resource, action, value, user = {}) {
  return ask({ operation: "authorize", access: { resource, action, value, user: { identity: "ada", ...user } } });
}

/** What lets nobody in: an answer that says nothing about it. */
function wantNoAnswer({ status, answer }, what) {
  assert.deepEqual([status, "allowed" in answer], [500, false], `${what}: ${JSON.stringify(answer)}`);
}

test("users", async () => {
  const plain = { identity: "plain", display_name: "plain", is_authenticated: true, permissions: [] };
  assert.deepEqual(await authenticate("plain"), { status: 200, answer: { allowed: true, user: plain } });
  assert.deepEqual((await authenticate("ada")).answer.user, { identity: "ada", display_name: "ada", is_authenticated: true, permissions: ["read"], role: "author" });
  assert.deepEqual((await authenticate("person")).answer.user, { identity: "person", display_name: "person", is_authenticated: true, permissions: ["write"] });
  assert.deepEqual((await authenticate("visitor")).answer.user, { identity: "", display_name: "", is_authenticated: true, permissions: [] });
});

test("what a handler sees", async () => {
  const request = { method: "POST", path: "/threads/t 1/history?", query: "a=1&b=", headers: { "x-custom": "ĝi" } };
  const { user } = (await authenticate("seen", request)).answer;
  assert.deepEqual(user.seen, ["POST", "/threads/t%201/history%3F", { a: "1", b: "" }, Buffer.from("ĝi").toString("latin1"), ["authorization", "host", "x-custom"]]);
});

test("attack: nobody is let in who is not meant", async () => {
  for (const [name, status, detail] of [
    ["", 401, "Who are you?"], ["other", 401, "Who are you?"], ["late", 403, "The token is old."], ["hono", 401, "Says Hono."], ["odd", 401, "Fine."],
    ...["unauthenticated", "unset", "null", "yes", "getter"].map((name) => [name, 401, "Unauthorized"]),
  ]) {
    assert.deepEqual(await authenticate(name), { status: 200, answer: { allowed: false, status, detail } }, name);
  }
});

test("a refusal has the handler's own words", async () => {
  for (const [name, status, detail, headers] of [
    ["paid", 402, "Pay.", { "www-authenticate": "Bearer realm=x", "x-price": "7" }], ["listed", 429, "Too Many Requests", { "retry-after": "7" }],
    ["response", 402, "Unauthorized", { "content-type": "text/plain;charset=UTF-8", "x-price": "7" }], ["hono response", 409, "Says Hono.", { "x-price": "7" }],
  ]) {
    assert.deepEqual(await authenticate(name), { status: 200, answer: { allowed: false, status, detail, headers } }, name);
  }
  // The headers are not such as a client can get.
  assert.deepEqual(await authenticate("unreadable"), { status: 200, answer: { allowed: false, status: 402, detail: "Pay." } });
});

test("attack: handlers that fail let nobody in, and tell nothing", async () => {
  for (const name of ["throw", "service", "text", "nothing", "nobody", "number", "none", "undefined", "true", "list", "identity", "permissions"]) wantNoAnswer(await authenticate(name), name);
  for (const access of ["threads read", "threads search", "threads update", "assistants read", "assistants search", "assistants create", "crons delete"]) {
    wantNoAnswer(await authorize(...access.split(" "), {}), access);
  }
  assert.equal((await authenticate("ada")).status, 200);
});

test("attack: handlers that hang let nobody in", async () => {
  const answers = Promise.all([authenticate("hang"), authorize("crons", "read", {})]);
  assert.equal((await guarded.ping()).status, "Healthy");
  for (const answer of await answers) wantNoAnswer(answer, "hang");
});

test("attack: questions that are none", async () => {
  for (const question of [
    { operation: "authenticate", request: { headers: [] } }, { operation: "authenticate", request: 7 }, { operation: "authorize", access: 7 },
    { operation: "authorize", access: { resource: "threads", action: "create", value: [] } }, { operation: ["authenticate"] },
  ]) {
    assert.equal((await ask(question)).status, 400, JSON.stringify(question));
  }
  for (const question of [{ operation: "authenticate" }, { operation: "authorize" }, { operation: "authorize", access: { resource: "constructor", action: "toString" } }]) {
    const { status, answer } = await ask(question);
    assert.notEqual(answer.allowed, true, JSON.stringify([question, status, answer]));
  }
  assert.equal((await authenticate("plain", { path: "/threads/../info" })).status, 400);
  for (const host of ["a b", "[", "a:b", "a/b", "a?b", "a#b", "ada@a", "a\\b", "a\tb"]) {
    const { status, answer } = await authenticate("plain", { headers: { host } });
    assert.deepEqual([host, status, answer.message], [host, 400, "request.headers.host: is no host of a URL"]);
  }
  assert.equal((await authenticate("plain", { headers: { host: "[::1]:8080" } })).status, 200);
  assert.equal(guarded.stderr.match(/TypeError.*URL/), null);
  wantNoAnswer(await authenticate("plain", { method: "TRACE" }), "TRACE");
  assert.equal((await guarded.post({ operation: "authenticate" }, { headers: { authorization: "Bearer another" } })).status, 401);
});

test("the most specific handler decides", async () => {
  const filtered = { allowed: true, value: { thread_id: "t", metadata: { owner: "ada" } }, filter: { owner: "ada", teams: { $contains: ["red"] } } };
  assert.deepEqual((await authorize("threads", "create", { thread_id: "t" })).answer, filtered);
  assert.deepEqual((await authorize("threads", "delete", {})).answer, { allowed: false, status: 403, detail: "Forbidden" });
  assert.deepEqual((await authorize("threads", "delete", {}, { permissions: ["threads:delete threads delete"] })).answer, { allowed: true, value: {} });
  assert.deepEqual((await authorize("assistants", "update", {})).answer, { allowed: false, status: 404, detail: "There is none." });
  assert.deepEqual((await authorize("assistants", "delete", {})).answer, { allowed: false, status: 403, detail: "Forbidden" });
  assert.deepEqual((await authorize("store", "put", { namespace: ["notes"], key: "k" })).answer, { allowed: true, value: { namespace: ["ada", "notes"], key: "k" } });
});

test("graphs see the user, whatever the client says about one", async () => {
  const { user } = (await authenticate("ada")).answer;
  const forged = { configurable: { langgraph_auth_user: { identity: "eve" }, langgraph_auth_user_id: "eve", langgraph_auth_permissions: ["all"] } };
  const thread = new Thread(guarded);
  const events = [];
  for await (const event of eventsOf(await guarded.post(thread.invocation({ input: {}, user, config: forged, context: { langgraph_auth_user_id: "eve" } })))) events.push(event);
  assert.deepEqual(named(events, "updates"), [{ a: { seen: [user, "ada", ["read"], "ada"] } }]);
});

test("user_id is the user's identity, unless the client or the assistant names another", async () => {
  const { user } = (await authenticate("ada")).answer;
  const events = await new Thread(guarded).invoke({ input: {}, user, config: { configurable: { user_id: "bob" } } });
  assert.deepEqual(named(events, "updates"), [{ a: { seen: [user, "ada", ["read"], "bob"] } }]);
});

test("attack: an agent is served only with the authentication that is asked", async () => {
  const sdk = 'import { Auth } from "@langchain/langgraph-sdk/auth";\n';
  for (const [auth, environment, said] of [
    [AUTH, {}, "framework.json: auth: is not served"],
    [AUTH, { SLIPWAY_AUTH: "./src/other.ts:auth" }, 'the platform asks "./src/other.ts:auth" about every request, not "./src/auth.ts:auth"'],
    ["export const auth = 1;", asked, 'auth: "auth" of ./src/auth.ts is not an Auth object'],
    ["export const other = 1;", asked, 'auth: ./src/auth.ts has no export "auth"'],
    [`${sdk}export const auth = new Auth();`, asked, "auth: there is no handler of authenticate()"],
    [`${sdk}export const auth = new Auth(;`, asked, "src/auth.ts, line 2: SyntaxError"],
    ['throw new TypeError("no settings");\nexport const auth = 1;', asked, "auth: src/auth.ts, line 1: TypeError: no settings"],
  ]) {
    const { code, stderr } = await run(["--config", path.join(project, write({ ...files, "src/auth.ts": auth }))], { env: { PATH: process.env.PATH, ...environment } });
    assert.deepEqual([code, stderr.includes(said)], [1, true], stderr);
  }
  const { stderr } = await run(["--config", path.join(project, write({ ...files, "framework.json": { graphs: config.graphs } }))], { env: { PATH: process.env.PATH, ...asked } });
  assert.match(stderr, /auth: the platform asks ".*" about every request, and the file names none/);
});

test("an agent without authentication answers no question", async (t) => {
  const runtime = await Runtime.start(t, write({ ...files, "framework.json": { graphs: config.graphs } }));
  assert.equal((await runtime.post({ operation: "authenticate", request: {} })).status, 404);
});

test("a question under way is answered after SIGTERM", async (t) => {
  const slow = AUTH.replace('case "plain": return "plain";', 'case "plain": console.error("asked"); await new Promise((resolve) => process.once("SIGTERM", resolve)); return "plain";');
  const runtime = await Runtime.start(t, write({ ...files, "src/auth.ts": slow }), asked);
  const answer = runtime.post({ operation: "authenticate", request: { method: "GET", path: "/info", headers: { authorization: "plain" } } });
  await until("the question", () => runtime.stderr.includes("asked"));
  runtime.child.kill("SIGTERM");
  assert.equal((await (await answer).json()).user.identity, "plain");
  assert.deepEqual(await runtime.exited, [0, null]);
});
