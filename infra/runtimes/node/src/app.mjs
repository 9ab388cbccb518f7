// The repository's own HTTP application: the agent server sends it the requests that are for it,
// and this module hands them to it, as requests of the Fetch standard. The application runs in the
// process of the graphs.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Refusal, UserError } from "./errors.mjs";
import { asUser } from "./invocation.mjs";
import { importVariable } from "./load.mjs";
import { reaching } from "./loopback.mjs";
import { middlewareOf, routesOf } from "./routes.mjs";

/** The prefix that the agent server puts before the paths of the application. */
export const PREFIX = "/app";
/** Headers that begin so are the platform's. */
const OWN = "x-slipway-";
/**
 * Headers that concern one connection only. The agent server's connection to this process is not
 * the client's connection to the agent server.
 */
const OF_CONNECTION = ["connection", "keep-alive", "transfer-encoding"];

/** Whatever has fetch(request), such as an application of Hono. */
export class Application {
  #fetch;
  #prefix;

  /**
   * @param {{fetch: (request: Request, env: object) => Response | Promise<Response>}} app
   * @param {string} prefix of all paths; the application does not see it
   */
  constructor(app, prefix) {
    this.#fetch = isHono(app) ? withUser(app) : (request) => app.fetch(request);
    this.#prefix = prefix;
    /** The routes that the application has in place of routes of the agent server. */
    this.routes = routesOf(app, prefix);
  }

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {import("node:http").ServerResponse} response
   * @param {AbortSignal} signal says that the client has gone, or that the process ends
   */
  async handle(request, response, signal) {
    const user = userOf(request.headers[`${OWN}caller`]);
    const body = new Body(request);
    // The client may be called while the body of the answer is made, too.
    await reaching(request.headers[`${OWN}server`] ?? "", user, async () => {
      const found = await this.#fetch(this.#request(request, body, signal), user);
      if (!Number.isInteger(found?.status) || typeof found.headers?.entries !== "function") throw new TypeError("the repository's own application has answered with no Response");
      await send(found, request, response, signal);
    });
    await body.drain();
  }

  #request(request, body, signal) {
    const headers = new Headers();
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      const name = request.rawHeaders[i].toLowerCase();
      if (!name.startsWith(OWN) && !OF_CONNECTION.includes(name)) headers.append(name, request.rawHeaders[i + 1]);
    }
    let path = request.url.slice(PREFIX.length);
    if (this.#prefix && (path === this.#prefix || [`/`, `?`].some((next) => path.startsWith(this.#prefix + next)))) path = path.slice(this.#prefix.length);
    try {
      const url = new URL(`http://${request.headers.host || "agent-server"}${path.startsWith("/") ? "" : "/"}${path}`);
      return new Request(url, { method: request.method, headers, signal, ...(body.isEmpty ? {} : { body: body.stream, duplex: "half" }) });
    } catch (error) {
      throw new Refusal(400, "BadRequest", `the request cannot be handed to the application: ${error.message}`);
    }
  }
}

/**
 * Imports the application that the configuration file names.
 * @param {import("./config.mjs").Config} config
 * @returns {Promise<Application | undefined>}
 */
export async function loadApplication({ directory, http: { app: place, prefix } }) {
  if (place === undefined) return undefined;
  const app = await importVariable(directory, "http.app", place);
  if (typeof app?.fetch !== "function") throw new UserError(`http.app: "${place.variable}" of ${place.name} is no application: it must have fetch(request), such as one of Hono`);
  const middleware = middlewareOf(app);
  if (middleware.length > 0) {
    throw new UserError(
      `http.app: ${place.name} has the middleware ${middleware.join(", ")}, which would see requests to the application's own routes only: the agent server's routes run no ` +
        "middleware of a repository. Put it on the paths that it is for, as in app.use(\"/mine/*\", ...)",
    );
  }
  return new Application(app, prefix);
}

function isHono(app) {
  return Array.isArray(app.routes) && typeof app.route === "function" && typeof app.router?.match === "function";
}

/**
 * Gives the routes of an application the user that the platform has let in, as the framework's own
 * server does: c.get("auth"). The application's own router gets a middleware before all routes, so
 * the application answers by itself, once, in every release of Hono.
 */
function withUser(app) {
  const inner = app.router;
  const handler = async (c, next) => {
    if (c.env?.user) c.set("auth", { user: c.env.user, scopes: c.env.user.permissions });
    await next();
  };
  const first = [[handler, { basePath: "/", path: "/*", method: "ALL", handler }], {}];
  app.router = {
    name: inner.name,
    add: (...route) => inner.add(...route),
    match(method, path) {
      const [found, ...parameters] = inner.match(method, path);
      return [[first, ...found], ...parameters];
    },
  };
  return (request, user) => app.fetch(request, user === undefined ? {} : { user });
}

/** The user that the platform has let in, undefined if nobody was checked. */
function userOf(caller) {
  return caller ? asUser(JSON.parse(Buffer.from(caller, "base64url").toString())) : undefined;
}

/** The body of a request, read as far as the application reads it. */
class Body {
  #chunks;

  constructor(request) {
    const { "content-length": length, "transfer-encoding": encoding } = request.headers;
    this.isEmpty = ["GET", "HEAD"].includes(request.method) || (encoding === undefined && !(Number(length) > 0));
    this.#chunks = request[Symbol.asyncIterator]();
  }

  get stream() {
    return new ReadableStream({
      pull: async (controller) => {
        const { value, done } = await this.#chunks.next();
        if (done) controller.close();
        else controller.enqueue(new Uint8Array(value));
      },
    }, { highWaterMark: 0 });
  }

  /** Reads what the application has not read, so that the connection can take the next request. */
  async drain() {
    try {
      while (!(await this.#chunks.next()).done);
    } catch {
      // The client has gone.
    }
  }
}

/** Sends an answer while it is being made. */
async function send(found, request, response, signal) {
  for (const [name, value] of found.headers.entries()) if (name !== "set-cookie" && !OF_CONNECTION.includes(name)) response.setHeader(name, value);
  const cookies = found.headers.getSetCookie?.() ?? [];
  if (cookies.length > 0) response.setHeader("set-cookie", cookies);
  response.writeHead(found.status);
  if (!found.body || request.method === "HEAD") {
    await found.body?.cancel();
    response.end();
    return;
  }
  response.flushHeaders();
  // A Readable cancels its source at once, also while the source is silent.
  const body = found.body instanceof ReadableStream ? Readable.fromWeb(found.body) : found.body;
  try {
    await pipeline(body, response, { signal }); // the signal comes from the end of the process, too
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
