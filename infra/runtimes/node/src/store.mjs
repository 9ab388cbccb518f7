import { encode } from "./encode.mjs";

/** @type {WeakMap<object, any>} */
const classes = new WeakMap();

/**
 * Returns the class of stores of a framework. They keep their items in the agent server's own
 * store, over HTTP, in its public form. Releases before 0.2.10 have no stores of this form: graphs
 * get none.
 * @param {import("./framework.mjs").Framework} framework
 */
export function storeOf(framework) {
  if (framework.checkpoints.BaseStore === undefined) return undefined;
  if (!classes.has(framework)) classes.set(framework, define(framework.checkpoints));
  return classes.get(framework);
}

/** The most calls of the process at once: each has a connection of its own. */
const MOST_CALLS = 64;
let calls = 0;
const waiting = [];

/** Does work when its turn has come. */
async function inTurn(work) {
  if (calls < MOST_CALLS) calls++;
  else await new Promise((resolve) => waiting.push(resolve)); // for the place of work that ends
  try {
    return await work();
  } finally {
    if (waiting.length > 0) waiting.shift()();
    else calls--;
  }
}

/** What the server says when it refuses. */
export class StoreError extends Error {
  name = "StoreError";
}

function define({ BaseStore }) {
  return class Store extends BaseStore {
    #url;
    #headers;
    #signal;

    /**
     * @param {string} serverURL
     * @param {string} token
     * @param {AbortSignal} signal
     */
    constructor(serverURL, token, signal) {
      super();
      this.#url = serverURL.replace(/\/+$/, "");
      const tenant = process.env.PLATFORM_TENANT_ID; // a token that is no key needs the workspace beside it
      this.#headers = {
        "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}), ...(tenant ? { "x-tenant-id": tenant } : {}),
      };
      this.#signal = signal;
    }

    /** Reads see what was there before the writes; of several writes of an item the last counts. */
    async batch(operations) {
      const results = operations.map(() => undefined);
      const puts = new Map();
      await Promise.all(operations.map(async (operation, i) => {
        if ("namespacePrefix" in operation) results[i] = await this.#search(operation);
        else if ("value" in operation) puts.set(JSON.stringify([operation.namespace, operation.key]), operation);
        else if ("key" in operation) results[i] = await this.#get(operation);
        else results[i] = await this.#namespaces(operation);
      }));
      await Promise.all([...puts.values()].map((operation) => this.#put(operation)));
      return results;
    }

    toJSON() {
      return "[Store]"; // it holds a token
    }

    async #get({ namespace, key }) {
      const query = new URLSearchParams({ namespace: namespace.join("."), key });
      const found = await this.#call("GET", `/store/items?${query}`);
      return found ? asItem(found) : null;
    }

    async #put({ namespace, key, value, index }) {
      if (value === null) return this.#call("DELETE", "/store/items", { namespace, key });
      return this.#call("PUT", "/store/items", { namespace, key, value, ...(index === undefined ? {} : { index }) });
    }

    async #search({ namespacePrefix, filter, limit, offset, query }) {
      const { items } = await this.#call("POST", "/store/items/search", { namespace_prefix: namespacePrefix, filter, limit, offset, query });
      return items.map(asItem);
    }

    async #namespaces({ matchConditions = [], maxDepth, limit, offset }) {
      const [prefix, suffix] = ["prefix", "suffix"].map((type) => matchConditions.find((condition) => condition.matchType === type)?.path);
      const { namespaces } = await this.#call("POST", "/store/namespaces", { prefix, suffix, max_depth: maxDepth, limit, offset });
      return namespaces;
    }

    async #call(method, path, body) {
      const options = { method, headers: this.#headers, signal: this.#signal, redirect: "error", ...(body === undefined ? {} : { body: encode(body) }) };
      const [response, text] = await inTurn(async () => {
        const answer = await fetch(this.#url + path, options);
        return [answer, await answer.text()];
      });
      if (!response.ok) throw new StoreError(`the store answered ${method} ${path.split("?")[0]} with status ${response.status}: ${text.slice(0, 500)}`);
      return text === "" ? null : JSON.parse(text);
    }
  };
}

function asItem({ namespace, key, value, created_at: created, updated_at: updated, score }) {
  return { namespace, key, value, createdAt: new Date(created), updatedAt: new Date(updated), ...(score === undefined || score === null ? {} : { score }) };
}
