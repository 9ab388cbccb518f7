// Drives the runtime as a real process, over HTTP, and keeps for its threads what the contract says
// that a server keeps.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

export const project = process.env.PROJECT_DIR;
const main = path.join(process.env.RUNTIME_DIR, "main.mjs");
export const token = "a token";

/**
 * Writes a repository beside the graphs, and returns its configuration file, as a path in the
 * project.
 */
export function write(files) {
  const directory = mkdtempSync(path.join(project, "graphs", "config-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), typeof text === "string" ? text : JSON.stringify(text));
  }
  return path.relative(project, path.join(directory, "framework.json"));
}

/** Runs the program to its end. */
export async function run(args, options = {}) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"], ...options });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
  const [code] = await once(child, "close");
  return { code, ...output };
}

/** A process of the runtime. */
export class Runtime {
  /** @param {import("node:test").TestContext | {after: Function}} t */
  static async start(t, config, env = {}) {
    const runtime = new Runtime();
    runtime.child = spawn(process.execPath, [main, "--config", path.join(project, config)], {
      env: { PATH: process.env.PATH, HOST: "127.0.0.1", PORT: "0", SLIPWAY_INVOKE_TOKEN: token, ...env }, stdio: ["ignore", "pipe", "pipe"],
    });
    t.after(() => runtime.kill());
    runtime.stderr = "";
    runtime.child.stderr.setEncoding("utf8").on("data", (text) => (runtime.stderr += text));
    runtime.exited = once(runtime.child, "close");
    for await (const line of createInterface({ input: runtime.child.stdout })) {
      const listening = /^listening on (\S+)/.exec(line);
      if (listening) {
        runtime.url = listening[1];
        runtime.child.stdout.resume();
        return runtime;
      }
    }
    throw new Error(`the runtime did not start: ${runtime.stderr}`);
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.exited;
  }

  post(body, { signal, headers = {} } = {}) {
    return fetch(`${this.url}/invocations`, {
      method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body), signal,
    });
  }

  async ping() {
    return (await fetch(`${this.url}/ping`)).json();
  }
}

/** @returns {AsyncGenerator<{name: string, data: any}>} */
export async function* eventsOf(response) {
  assert.equal(response.status, 200);
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end));
      yield { name, data: JSON.parse(data) };
      text = text.slice(end + 2);
    }
  }
  assert.equal(text, "");
}

/** A thread as the server keeps it: what an invocation gets of it is only what events brought. */
export class Thread {
  id = randomUUID();
  /**
   * @type {{root: object, since: Map<string, object>, kept: Map<string, object>, writes: object[]}[]}
   */
  log = [];
  pending = [];

  constructor(runtime, graph = "agent") {
    Object.assign(this, { runtime, graph });
  }

  get head() {
    return this.log.at(-1);
  }

  /** The checkpoint's view as clients see it. */
  get state() {
    return this.head?.root;
  }

  invocation({ from, ...options } = {}) {
    const at = from === undefined ? this.head : this.log.find(({ root }) => root.id === from);
    return {
      operation: "run", graph: this.graph, thread_id: this.id, run_id: randomUUID(), attempt: 1, input: null, command: null, config: {}, context: null,
      stream_mode: ["updates"], durability: "async",
      state: { values: {}, checkpoint: at ? { ...asSeed(at), superseded: at !== this.head } : null, pending: this.pending },
      ...(from === undefined ? {} : { config: { configurable: { checkpoint_id: from } } }),
      ...options,
    };
  }

  /** Invokes the graph and returns all events, after taking them. */
  async invoke(options) {
    return this.collect(await this.runtime.post(this.invocation(options)));
  }

  async collect(response) {
    const events = [];
    for await (const event of eventsOf(response)) {
      this.take(event);
      events.push(event);
    }
    return events;
  }

  take({ name, data }) {
    if (name === "checkpoint") this.#takeCheckpoint(data);
    if (name === "writes" && this.head) {
      const same = (w) => w.checkpoint_id === data.checkpoint_id && w.ns === data.ns && w.task_id === data.task_id;
      this.head.writes = [...this.head.writes.filter((w) => !same(w)), data];
    }
  }

  #takeCheckpoint(checkpoint) {
    for (const field of ["id", "ns", "values", "next", "tasks", "metadata", "data"]) assert.notEqual(checkpoint[field], undefined, field);
    if (checkpoint.ns !== "") {
      this.head?.since.set(checkpoint.ns, checkpoint);
      return;
    }
    if (this.head?.root.id === checkpoint.id) {
      this.head.root = checkpoint;
      return;
    }
    const before = this.head ? [...this.head.kept, ...[...this.head.since].filter(([, c]) => c.persistent)] : [];
    this.log.push({ root: checkpoint, since: new Map(), kept: new Map(before), writes: [] });
    this.pending = [];
  }
}

function asSeed({ root, since, kept, writes }) {
  const bare = ({ id, parent_id, ns, persistent, data }) => ({ id, parent_id, ns, persistent, data });
  return { id: root.id, checkpoints: [root, ...new Map([...kept, ...since]).values()].map(bare), writes };
}

export const named = (events, name) => events.filter((event) => event.name === name).map((event) => event.data);

/** Waits until a condition holds. */
export async function until(what, condition) {
  const end = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what}: not in time`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
