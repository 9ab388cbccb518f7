// The vectors of the store's items and of queries, as `store.index` of the configuration file says.
// The agent server keeps the items and compares the vectors; only this process has the packages and
// the code that make them.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { InvalidInvocation, UserError } from "./errors.mjs";
import { frameworkOf } from "./framework.mjs";
import { importVariable } from "./load.mjs";

/** How long a call may take. The agent server waits a little longer. */
const LIMIT_MS = 60_000;
/** How many texts a call of the embedding function has, and an item at most. */
const MAX_TEXTS = 1000;
const SCRIPT = /\.[cm]?[jt]sx?$/;
/** The packages and classes of providers that a name of a model begins with. */
const PROVIDERS = {
  azure_openai: ["@langchain/openai", "AzureOpenAIEmbeddings"], bedrock: ["@langchain/aws", "BedrockEmbeddings"], cohere: ["@langchain/cohere", "CohereEmbeddings"],
  google_genai: ["@langchain/google-genai", "GoogleGenerativeAIEmbeddings"], google_vertexai: ["@langchain/google-vertexai", "VertexAIEmbeddings"],
  mistralai: ["@langchain/mistralai", "MistralAIEmbeddings"], ollama: ["@langchain/ollama", "OllamaEmbeddings"], openai: ["@langchain/openai", "OpenAIEmbeddings"],
};

/** There are no vectors, for a reason that the client can read. */
class Failed extends Error {}

/**
 * Embeds items and queries. While a call of the embedding function is under way, the texts of
 * further items wait, and become one call.
 */
export class Embeddings {
  #embeddings;
  #textsOf;
  #dims;
  /**
   * @type {{texts: string[], resolve: (vectors: Buffer[]) => void, reject: (error: Error) => void}[]}
   */
  #waiting = [];
  #isBusy = false;

  /**
   * @param {{embedDocuments: (texts: string[]) => Promise<number[][]>, embedQuery: (text: string) => Promise<number[]>}}
   * embeddings
   * @param {(value: object, fields: string[] | undefined) => string[]} textsOf the texts of an
   * item, each once; without fields those of the configuration file
   * @param {number} dims
   */
  constructor(embeddings, textsOf, dims) {
    this.#embeddings = embeddings;
    this.#textsOf = textsOf;
    this.#dims = dims;
  }

  /**
   * Answers the operation embed.
   * @param {{items?: {value: object, fields?: string[] | null}[], queries?: string[]}} texts
   */
  async embed({ items, queries }) {
    const [values, asked] = [itemsOf(items), listOf(queries, "queries", (query) => typeof query === "string")];
    try {
      const vectors = await inTime(Promise.all([...values.map((item) => this.#item(item)), ...asked.map((query) => this.#query(query))]));
      const encoded = vectors.map((vector) => vector.toString("base64"));
      return { items: encoded.slice(0, values.length), queries: encoded.slice(values.length) };
    } catch (error) {
      return { error: failureOf(error).message };
    }
  }

  async #item({ value, fields }) {
    const texts = this.#textsOf(value, fields ?? undefined);
    if (texts.length > MAX_TEXTS) throw new Failed(`the item has ${texts.length} texts, and may have ${MAX_TEXTS}`);
    return Buffer.concat(texts.length > 0 ? await this.#documents(texts) : []);
  }

  async #query(text) {
    return this.#packed(await this.#embeddings.embedQuery(text));
  }

  #documents(texts) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ texts, resolve, reject });
      if (!this.#isBusy) this.#work();
    });
  }

  async #work() {
    this.#isBusy = true;
    await Promise.resolve(); // for the other items of the same operation
    while (this.#waiting.length > 0) {
      let [count, size] = [0, 0];
      for (const { texts } of this.#waiting) {
        if (count > 0 && size + texts.length > MAX_TEXTS) break;
        count++;
        size += texts.length;
      }
      await this.#answer(this.#waiting.splice(0, count));
    }
    this.#isBusy = false;
  }

  /**
   * Embeds the texts of several requests at once. If that fails, each half is embedded by itself,
   * so that no text spoils the others. The halves come one after the other: the function may have
   * failed because it is called too often. A call that takes too long is not repeated.
   */
  async #answer(batch) {
    const texts = [...new Set(batch.flatMap((request) => request.texts))];
    try {
      const vectors = await inTime(this.#vectors(texts));
      const known = new Map(texts.map((text, i) => [text, vectors[i]]));
      for (const request of batch) request.resolve(request.texts.map((text) => known.get(text)));
    } catch (error) {
      if (batch.length > 1 && !(error instanceof Late)) {
        const half = Math.ceil(batch.length / 2);
        await this.#answer(batch.slice(0, half));
        await this.#answer(batch.slice(half));
      } else {
        for (const request of batch) request.reject(error);
      }
    }
  }

  async #vectors(texts) {
    const vectors = await this.#embeddings.embedDocuments(texts);
    if (vectors?.length !== texts.length) throw new Failed(`${texts.length} texts were embedded as ${vectors?.length} vectors`);
    return Array.from(vectors, (vector) => this.#packed(vector));
  }

  #packed(vector) {
    if (vector?.length !== this.#dims) throw new Failed(`a vector has ${vector?.length} dimensions, and store.index.dims is ${this.#dims}`);
    const packed = Buffer.alloc(4 * this.#dims);
    for (const [i, number] of Array.from(vector).entries()) packed.writeFloatLE(number, 4 * i);
    return packed;
  }
}

class Late extends Failed {}

async function inTime(work) {
  let timer;
  const limit = new Promise((_resolve, reject) => (timer = setTimeout(() => reject(new Late(`the embedding function has not answered within ${LIMIT_MS / 1000} s`)), LIMIT_MS)));
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The failure that clients see. The text of an error of the repository may have secrets: only the
 * log has it.
 */
function failureOf(error) {
  if (error instanceof Failed) return error;
  console.error("ERROR: the embedding function has failed:", error);
  return new Failed(error instanceof Error ? error.name : typeof error);
}

function itemsOf(items) {
  const isFields = (fields) => fields === undefined || fields === null || (Array.isArray(fields) && fields.every((field) => typeof field === "string"));
  return listOf(items, "items", (item) => isObject(item) && isObject(item.value) && isFields(item.fields));
}

function listOf(values, name, isRight) {
  const found = values ?? [];
  if (!Array.isArray(found) || !found.every(isRight)) throw new InvalidInvocation(`embed.${name}: must be a list of ${name === "queries" ? "texts" : "objects with a value, and a list of fields or none"}`);
  return found;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Loads the embedding function that the configuration file names.
 * @param {import("./config.mjs").Config} config
 * @returns {Promise<Embeddings | undefined>} nothing if the file has no store.index
 */
export async function loadEmbeddings({ directory, graphs, index }) {
  if (index === undefined) return undefined;
  const { embed, dims, fields = ["$"] } = index;
  if (typeof embed !== "string" || !Number.isInteger(dims) || dims < 1 || !Array.isArray(fields) || !fields.every((field) => typeof field === "string")) {
    throw new UserError('store.index: must be as {"embed": "path/to/file.ts:function", "dims": 384, "fields": ["$"]}');
  }
  const { file } = Object.values(graphs)[0];
  const embeddings = await embeddingsOf(directory, file, embed);
  return new Embeddings(embeddings, textsOf((await frameworkOf(file)).checkpoints, embeddings, dims, fields), dims);
}

/** The framework's own store knows which texts an item has. */
function textsOf({ InMemoryStore }, embeddings, dims, fields) {
  const store = InMemoryStore && new InMemoryStore({ index: { dims, embeddings, fields } });
  if (typeof store?.extractTexts !== "function") throw new UserError("store.index: the repository's release of @langchain/langgraph-checkpoint embeds nothing");
  return (value, index) => Object.keys(store.extractTexts([{ namespace: [], key: "", value, index }]));
}

async function embeddingsOf(directory, file, embed) {
  const [before, after] = [embed.slice(0, embed.lastIndexOf(":")), embed.slice(embed.lastIndexOf(":") + 1)];
  if (!SCRIPT.test(before)) return modelOf(file, embed);
  const value = await importVariable(directory, "store.index.embed", { file: path.resolve(directory, before), name: before, variable: after });
  if (typeof value === "function") return { embedDocuments: async (texts) => value(texts), embedQuery: async (text) => (await value([text]))[0] };
  if (typeof value?.embedDocuments === "function" && typeof value.embedQuery === "function") return value;
  throw new UserError(`store.index.embed: ${embed} must be a function or an Embeddings object`);
}

/** A provider's model, of the provider's package in the project. */
async function modelOf(file, embed) {
  const [provider, model] = [embed.slice(0, embed.indexOf(":")), embed.slice(embed.indexOf(":") + 1)];
  if (!Object.hasOwn(PROVIDERS, provider)) throw new UserError(`store.index.embed: "${provider}" is no provider: it must be one of ${Object.keys(PROVIDERS).join(", ")}, or name a file`);
  const [name, constructor] = PROVIDERS[provider];
  try {
    const module = await import(pathToFileURL(createRequire(file).resolve(name)).href);
    return new module[constructor]({ model });
  } catch (error) {
    throw new UserError(`store.index.embed: ${embed} cannot be used: ${String(error.message).split("\n")[0]}`);
  }
}
