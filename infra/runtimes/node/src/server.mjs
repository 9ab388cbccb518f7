import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { PREFIX } from "./app.mjs";
import { questionOf } from "./auth.mjs";
import { describeAll } from "./describe.mjs";
import { encode } from "./encode.mjs";
import { InvalidInvocation, Refusal } from "./errors.mjs";
import { Invocation } from "./invocation.mjs";
import { Outlet } from "./outlet.mjs";
import { Run } from "./run.mjs";
import { storeOf } from "./store.mjs";

/**
 * An invocation carries the whole state of its thread, as the server keeps it and as the graph
 * does.
 */
const MAX_BODY_BYTES = 160 << 20;
/** How many seconds a signature's time may be from this clock. */
const SIGNATURE_AGE = 300;
/** How long running invocations may go on after a SIGTERM. */
const DRAIN_MS = 10_000;
/** How long what is stopped then may take to end. Code of the repository may never end. */
const STOP_MS = 2_000;
/**
 * How long an idle connection stays open. The caller must close it first, because a request that is
 * sent while we close fails: the server does so after seconds, a load balancer of AWS after up to
 * 4,000 s.
 */
const IDLE_MS = 4_100_000;

/**
 * Answers at $SLIPWAY_SOCKET, which no other agent of the machine reaches, or else on $HOST:$PORT,
 * until SIGTERM or SIGINT, then lets running invocations finish, but not for longer than DRAIN_MS
 * and STOP_MS.
 * @param {Map<string, import("./load.mjs").Source>} sources
 * @param {{auth?: import("./auth.mjs").Authentication, app?: import("./app.mjs").Application, embeddings?: import("./embeddings.mjs").Embeddings, components?: import("./ui.mjs").Components}}
 * own what the repository has beside its graphs
 * @param {NodeJS.ProcessEnv} env
 */
export async function serve(sources, own, env) {
  const agent = new Agent(sources, own, env.SLIPWAY_INVOKE_TOKEN ?? "");
  const server = createServer((request, response) => agent.handle(request, response));
  server.keepAliveTimeout = IDLE_MS;
  server.requestTimeout = 0;
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    const place = env.SLIPWAY_SOCKET ? { path: env.SLIPWAY_SOCKET } : { host: env.HOST || "0.0.0.0", port: Number(env.PORT || 8080) };
    server.listen(place, resolve);
  });
  console.log(`listening on ${addressOf(server.address())}`);
  await new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, resolve); // a second one ends the process at once
  });
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const late = setTimeout(() => agent.stop(), DRAIN_MS);
  await Promise.race([agent.idle(), wait(DRAIN_MS + STOP_MS)]);
  clearTimeout(late);
  server.closeAllConnections();
  await closed;
  process.exit(0);
}

/** Where a server listens: a path or a URL. */
function addressOf(place) {
  if (typeof place === "string") return place;
  return `http://${place.family === "IPv6" ? `[${place.address}]` : place.address}:${place.port}`;
}

/** Speaks the container contract. It keeps nothing from one invocation to the next. */
class Agent {
  #sources;
  #own;
  #token;
  /**
   * What is being answered: whether it is an invocation of a graph.
   * @type {Map<AbortController, boolean>}
   */
  #running = new Map();
  #since = Date.now();
  #waiting = [];

  constructor(sources, own, token) {
    this.#sources = sources;
    this.#own = own;
    this.#token = token;
  }

  async handle(request, response) {
    try {
      if ((this.#own.app || this.#own.components) && request.url.startsWith(`${PREFIX}/`)) {
        await this.#visit(request, response);
        return;
      }
      const { pathname } = new URL(request.url, "http://agent");
      const [handler, method] = { "/ping": [this.#ping, "GET"], "/invocations": [this.#invoke, "POST"] }[pathname] ?? [];
      if (!handler) throw new Refusal(404, "NotFound", `there is no ${pathname}`);
      if (request.method !== method) throw new Refusal(405, "MethodNotAllowed", `${pathname} takes ${method}`);
      await handler.call(this, request, response);
    } catch (error) {
      this.#refuse(request, response, error);
    }
  }

  #refuse(request, response, error) {
    if (response.headersSent || response.destroyed) {
      if (!response.destroyed) response.destroy();
      if (!(error instanceof Refusal)) console.error("ERROR: request failed:", error);
      return;
    }
    let { status, kind, message } = error ?? {}; // an application may throw anything
    if (error instanceof InvalidInvocation) [status, kind] = [400, "BadRequest"];
    else if (!(error instanceof Refusal)) {
      console.error("ERROR: request failed:", error);
      [status, kind, message] = [500, "InternalServerError", "the agent could not answer"];
    }
    if (status === 401) response.setHeader("www-authenticate", "Bearer");
    if (!request.complete) response.setHeader("connection", "close");
    answer(response, status, JSON.stringify({ error: kind, message }));
  }

  #ping(_request, response) {
    const status = this.#isBusy() ? "HealthyBusy" : "Healthy";
    answer(response, 200, JSON.stringify({ status, time_of_last_update: this.#since / 1000 }));
  }

  async #invoke(request, response) {
    this.#authorize(request, "authorization");
    const body = await readBody(request);
    const question = questionOf(body);
    if (question !== undefined) {
      await this.#rule(question, response);
      return;
    }
    const invocation = new Invocation(body, this.#own.auth !== undefined);
    if (invocation.operation === "describe" && invocation.graph === "") {
      answer(response, 200, encode({ ...(await describeAll(this.#sources, { typed: invocation.typed })), ...(this.#own.app ? { routes: this.#own.app.routes } : {}) }));
      return;
    }
    if (invocation.operation === "embed") {
      await this.#embed(invocation.embed, response);
      return;
    }
    const source = this.#sources.get(invocation.graph);
    if (!source) throw new Refusal(404, "NotFound", `there is no graph "${invocation.graph}"`);
    if (invocation.operation === "describe") {
      const { typed, user } = invocation;
      answer(response, 200, encode(await describeAll(new Map([[source.id, source]]), { typed, config: invocation.assistantConfig(), user })));
      return;
    }
    const controller = this.#begin(response, true);
    try {
      const makeStore = (framework) => {
        const Store = invocation.serverURL ? storeOf(framework) : undefined;
        return Store && new Store(invocation.serverURL, this.#token, controller.signal);
      };
      await new Run(source, invocation, makeStore, new Outlet(response), controller.signal).execute();
      if (!response.destroyed) {
        await new Promise((resolve) => {
          response.once("close", resolve);
          response.end(resolve); // who stops the process waits until all is on its way
        });
      }
    } finally {
      this.#end(controller);
    }
  }

  /** Has the repository embed texts for the store. */
  async #embed(texts, response) {
    if (!this.#own.embeddings) throw new Refusal(404, "NotFound", "the repository has no index of the store");
    const controller = this.#begin(response, false);
    try {
      answer(response, 200, JSON.stringify(await this.#own.embeddings.embed(texts)));
    } finally {
      this.#end(controller);
    }
  }

  /** Asks the repository's own authentication. */
  async #rule(question, response) {
    if (!this.#own.auth) throw new Refusal(404, "NotFound", "the repository has no authentication of its own");
    const controller = this.#begin(response, false);
    try {
      answer(response, 200, await this.#own.auth.rule(question));
    } finally {
      this.#end(controller);
    }
  }

  /** Lets the repository's own application, or the components of its user interface, answer. */
  async #visit(request, response) {
    this.#authorize(request, "x-slipway-authorization");
    const answerer = this.#own.components?.isFor(request.url) ? this.#own.components : this.#own.app;
    if (!answerer) throw new Refusal(404, "NotFound", "the repository has no such route");
    const controller = this.#begin(response, false);
    try {
      await answerer.handle(request, response, controller.signal);
    } finally {
      this.#end(controller);
    }
  }

  #authorize(request, header) {
    if (this.#token === "") return;
    if (!isSame(request.headers[header] ?? "", `Bearer ${this.#token}`)) throw new Refusal(401, "Unauthorized", "the bearer token is missing or wrong");
    const signature = request.headers["x-slipway-signature"];
    if (signature !== undefined && !this.#isSigned(signature)) throw new Refusal(401, "Unauthorized", "the signature is wrong, or too old");
  }

  /** Whether the platform made the signature, and made it just now. */
  #isSigned(signature) {
    const pairs = Object.fromEntries(signature.split(",").map((pair) => /^([^=]*)=?(.*)$/.exec(pair).slice(1)));
    const wanted = createHmac("sha256", this.#token).update(`${pairs.t ?? ""}.${pairs.n ?? ""}`, "latin1").digest("hex");
    const isFresh = /^[0-9]+$/.test(pairs.t ?? "") && Math.abs(Date.now() / 1000 - Number(pairs.t)) <= SIGNATURE_AGE;
    return isSame(pairs.v1 ?? "", wanted) && isFresh;
  }

  #isBusy() {
    return [...this.#running.values()].includes(true);
  }

  #begin(response, isInvocation) {
    const controller = new AbortController();
    response.once("close", () => response.writableFinished || controller.abort()); // work that an answer has begun may go on after it
    this.#note(() => this.#running.set(controller, isInvocation));
    return controller;
  }

  #end(controller) {
    this.#note(() => this.#running.delete(controller));
    if (this.#running.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Notes when the change makes the agent busy, or no longer so. */
  #note(change) {
    const before = this.#isBusy();
    change();
    if (this.#isBusy() !== before) this.#since = Date.now();
  }

  /** Resolves when nothing runs. */
  async idle() {
    while (this.#running.size > 0) await new Promise((resolve) => this.#waiting.push(resolve));
  }

  stop() {
    for (const controller of this.#running.keys()) controller.abort();
  }
}

/**
 * Digests are compared, so that the time it takes says nothing about the secret, its length
 * included.
 */
function isSame(got, want) {
  const [one, other] = [got, want].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(one, other);
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Refusal(413, "PayloadTooLarge", `the body is larger than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function answer(response, status, json) {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(json) });
  response.end(json);
}
