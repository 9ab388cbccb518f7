// The repository's own authentication: its handlers say who sent a request to the agent server, and
// what that user may do. The agent server asks for every request and enforces the answers. Nothing
// is kept from one question to the next. A user is let in only if the handler returns a user, in a
// form that is known; any other answer, and any error, lets nobody in.
import { InvalidInvocation, Refusal, UserError } from "./errors.mjs";
import { asUser } from "./invocation.mjs";
import { importVariable } from "./load.mjs";

/** How long a handler may take. The agent server waits a little longer. */
const LIMIT_MS = 8_000;
/** The operations of an invocation that are questions, with the status of a denial. */
const DENIALS = { authenticate: [401, "Unauthorized"], authorize: [403, "Forbidden"] };
/** What the client package's Auth keeps its handlers under. */
const HANDLERS = "~handlerCache";
const USER_FIELDS = ["identity", "display_name", "is_authenticated", "permissions"];

/** A handler has said no. */
class Denied extends Error {}

/** The handlers of one Auth object. */
export class Authentication {
  #handlers;

  constructor(auth) {
    this.#handlers = auth[HANDLERS];
  }

  /**
   * Answers a question of the agent server. An error that no handler means is one of the
   * repository, and no answer.
   * @param {{operation: "authenticate" | "authorize", request?: object, access?: object}} question
   */
  async rule(question) {
    const [status, text] = DENIALS[question.operation];
    const work = question.operation === "authenticate" ? this.#user(objectIn(question, "request")) : this.#access(objectIn(question, "access"));
    try {
      return JSON.stringify({ allowed: true, ...(await inTime(work)) });
    } catch (error) {
      if (error instanceof InvalidInvocation) throw error;
      if (error instanceof Denied) return JSON.stringify({ allowed: false, status, detail: text });
      if (isMeant(error)) return JSON.stringify({ allowed: false, status: isFailure(error.status) ? error.status : status, detail: String(error.message || text), headers: headersOf(error) });
      console.error("ERROR: the repository's own authentication has failed:", error);
      throw new Refusal(500, "InternalServerError", `the repository's own authentication has failed: ${error?.name ?? typeof error}`);
    }
  }

  async #user(asked) {
    return { user: userOf(await this.#handlers.authenticate(requestOf(asked))) };
  }

  async #access(asked) {
    const [resource, action, value] = [String(asked.resource), String(asked.action), objectIn(asked, "value")];
    const handler = this.#handlerOf(resource, action);
    if (handler === undefined) return { value };
    const user = asUser(objectIn(asked, "user"));
    const answer = await handler({ event: `${resource}:${action}`, resource, action, value, user, permissions: user.permissions });
    if (answer === false) throw new Denied();
    if (answer === undefined || answer === null || answer === true) return { value };
    // JSON would leave out the member of {owner: undefined}, and the filter would match everything.
    if (!isPlain(answer) || !isJSON(answer)) throw new TypeError(`the handler of ${resource}:${action} returned neither nothing, nor a boolean, nor a filter of strings, numbers and booleans`);
    return { value, filter: answer };
  }

  /** The most specific handler, as the framework's own server chooses it. */
  #handlerOf(resource, action) {
    const name = [`${resource}:${action}`, resource, `*:${action}`, "*"].find((name) => Object.hasOwn(this.#handlers.callbacks ?? {}, name));
    return name && this.#handlers.callbacks[name];
  }
}

/**
 * Imports the Auth object that the configuration file names.
 * @param {import("./config.mjs").Config} config
 * @returns {Promise<Authentication | undefined>}
 */
export async function loadAuth({ directory, auth: place }) {
  if (place === undefined) return undefined;
  const auth = await importVariable(directory, "auth", place);
  if (auth === null || typeof auth !== "object" || typeof auth[HANDLERS] !== "object") {
    throw new UserError(`auth: "${place.variable}" of ${place.name} is not an Auth object of @langchain/langgraph-sdk/auth`);
  }
  if (typeof auth[HANDLERS].authenticate !== "function") throw new UserError("auth: there is no handler of authenticate(), so nobody could be let in");
  return new Authentication(auth);
}

/**
 * Returns the question for the repository's own authentication that a body is, nothing for an
 * invocation of a graph.
 * @param {string} body
 */
export function questionOf(body) {
  if (!Object.keys(DENIALS).some((operation) => body.includes(`"${operation}"`))) return undefined;
  try {
    const fields = JSON.parse(body);
    return isPlain(fields) && Object.keys(DENIALS).includes(fields.operation) ? fields : undefined;
  } catch {
    return undefined; // it is read as an invocation next, and refused there with the reason
  }
}

async function inTime(work) {
  let late;
  const limit = new Promise((_resolve, reject) => (late = setTimeout(() => reject(new Error(`it has not answered within ${LIMIT_MS / 1000} s`)), LIMIT_MS)));
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(late);
  }
}

/** The client's request, without its body. */
function requestOf(asked) {
  const headers = objectIn(asked, "headers");
  const path = String(asked.path || "/");
  const url = urlOf(String(headers.host || "agent-server"));
  url.pathname = encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23");
  url.search = String(asked.query ?? "");
  // A URL has no path like /a/../b: the handler would decide about another one.
  if (decodeURIComponent(url.pathname) !== path) throw new InvalidInvocation("request.path: is no path of a URL");
  const bytes = (text) => Buffer.from(String(text)).toString("latin1"); // which is how a header has other characters
  return new Request(url, { method: String(asked.method), headers: Object.entries(headers).map(([name, value]) => [name, bytes(value)]) });
}

/**
 * The URL of a host. A Host header that is more than a host would change the path that the handler
 * sees, or name a user.
 */
function urlOf(host) {
  const text = `http://${host}/`;
  if (/[/?#@\\\s]/.test(host) || !URL.canParse(text)) throw new InvalidInvocation("request.headers.host: is no host of a URL");
  return new URL(text);
}

/** The user as JSON has it. The forms are those that the framework's own server takes. */
function userOf(found) {
  if (typeof found === "string") return userOf({ identity: found });
  const fields = { ...found };
  for (const name of USER_FIELDS) if (found?.[name] !== undefined) fields[name] = found[name]; // which may be getters
  const { identity } = fields;
  const permissions = fields.permissions ?? [];
  if (typeof identity !== "string") throw new TypeError("the handler of authenticate() returned no user: a string, or an object with an identity, was expected");
  // A handler that names it without a value has not said that the user is authenticated.
  if (Object(found) === found && "is_authenticated" in found && fields.is_authenticated !== true) throw new Denied();
  if (!Array.isArray(permissions) || !permissions.every((permission) => typeof permission === "string")) throw new TypeError("the permissions of the user are not a list of strings");
  // Values that JSON does not have, such as a client's object, stay with the handler.
  const kept = Object.fromEntries(Object.entries(fields).filter(([, value]) => isJSON(value)));
  return asUser({ ...kept, permissions });
}

/**
 * Whether an error is the client package's HTTPException, or Hono's, or a response. The message of
 * any other one is not for the client.
 */
function isMeant(error) {
  if (error instanceof Response) return true;
  for (let of = error; typeof of === "object" && of !== null; of = Object.getPrototypeOf(of)) if (of.constructor?.name === "HTTPException") return true;
  return false;
}

/** The headers that a denial has for the client, nothing if it has none that can be read. */
function headersOf({ headers, res }) {
  try {
    const found = Object.fromEntries(new Headers(headers ?? res?.headers));
    return Object.keys(found).length > 0 ? found : undefined;
  } catch {
    return undefined;
  }
}

function isFailure(status) {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

function isJSON(value, depth = 0) {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || depth > 100) return false;
  return (Array.isArray(value) || isPlain(value)) && Object.values(value).every((member) => isJSON(member, depth + 1));
}

function isPlain(value) {
  return typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function objectIn(fields, name) {
  const value = fields[name] ?? {};
  if (!isPlain(value)) throw new InvalidInvocation(`${name}: must be of type object`);
  return value;
}
