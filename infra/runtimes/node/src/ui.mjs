// The components of a user interface: ui/bundle.mjs has bundled them, and this module serves them
// in the form of the framework's own server. A page that has the framework's client package shows a
// component by the HTML that POST /ui/{name} answers with.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { json } from "node:stream/consumers";
import { PREFIX } from "./app.mjs";
import { UserError } from "./errors.mjs";

/** Where ui/bundle.mjs writes, below the directory of the configuration file. */
const BUNDLES = ".slipway-ui";
/** The paths that are the user interface's. */
const PATH = "/ui/";
const TYPES = { ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };
const OTHER_TYPE = "application/octet-stream";

/** The bundles of a repository. */
export class Components {
  #directory;
  #bundles;
  #prefix;

  /**
   * @param {string} directory of the bundles
   * @param {Record<string, {assets: string[]}>} bundles by name
   * @param {string} prefix of all paths
   */
  constructor(directory, bundles, prefix) {
    this.#directory = directory;
    this.#bundles = new Map(Object.entries(bundles));
    this.#prefix = prefix;
  }

  /**
   * Whether a request is for the user interface.
   * @param {string} url as it comes from the agent server
   */
  isFor(url) {
    return url.startsWith(PREFIX + this.#prefix + PATH);
  }

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {import("node:http").ServerResponse} response
   */
  async handle(request, response) {
    const { pathname } = new URL(request.url, "http://agent");
    const [name, file, ...more] = pathname.slice((PREFIX + this.#prefix + PATH).length).split("/").map(unescape);
    const assets = more.length === 0 ? this.#bundles.get(name)?.assets : undefined;
    if (file === undefined) {
      if (request.method !== "POST") return refuse(request, response, 405, "The path takes POST.", { allow: "POST" });
      const component = await json(request).then((body) => body?.name, () => undefined);
      if (typeof component !== "string") return refuse(request, response, 422, 'name: the body must be a JSON object with the name of a component, as {"name": "weather"}.');
      if (assets === undefined) return refuse(request, response, 404, `The key ui of the configuration file has no "${name}".`);
      return send(request, response, "text/html; charset=utf-8", this.#fragment(request, name, assets, component));
    }
    if (!["GET", "HEAD"].includes(request.method)) return refuse(request, response, 405, "The path takes GET and HEAD.", { allow: "GET, HEAD" });
    if (!assets?.includes(file)) return refuse(request, response, 404, "There is no such file of a component.");
    return send(request, response, TYPES[path.extname(file)] ?? OTHER_TYPE, await readFile(path.join(this.#directory, "public", name, file)));
  }

  /** The HTML that shows a component. The client replaces the name of the shadow root. */
  #fragment({ headers }, name, assets, component) {
    const base = `${originOf(headers)}${headers["x-forwarded-prefix"] ?? ""}${this.#prefix}${PATH}${encodeURIComponent(name)}/`;
    const urls = (suffix) => assets.filter((file) => path.extname(file) === suffix).map((file) => escape(base + encodeURIComponent(file)));
    const global = `__LGUI_${name.replace(/[^a-zA-Z0-9]/g, "_")}`;
    return [
      ...urls(".css").map((url) => `<link rel="stylesheet" href="${url}" />`),
      ...urls(".js").map((url) => `<script src="${url}" onload='${global}.render(${escape(JSON.stringify(component))}, "{{shadowRootId}}")'></script>`),
    ].join("\n");
  }
}

/**
 * Finds the components that the configuration file names.
 * @param {import("./config.mjs").Config} config
 * @returns {Promise<Components | undefined>}
 */
export async function loadComponents({ directory, hasComponents, http: { prefix } }) {
  if (!hasComponents) return undefined;
  const bundles = path.join(directory, BUNDLES);
  try {
    return new Components(bundles, JSON.parse(await readFile(path.join(bundles, "schemas.json"), "utf8")), prefix);
  } catch (error) {
    throw new UserError(`ui: the components have not been bundled (${error.message}); the build of a deployment bundles them, or: node ui/bundle.mjs framework.json`);
  }
}

/**
 * The beginning of the URL at which the client has found the agent server. A page that came by
 * HTTPS loads no script by HTTP.
 */
function originOf({ "x-forwarded-host": forwarded, "x-forwarded-proto": protocol, host }) {
  const name = forwarded || host || "";
  const isHere = /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(name);
  return `${protocol === "https" ? "https:" : isHere ? "http:" : ""}//${name}`;
}

function unescape(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Makes a text safe in the value of an attribute of HTML. */
function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Answers with an error in the form of the agent server's own errors. */
function refuse(request, response, status, detail, headers = {}) {
  send(request, response, "application/json", JSON.stringify({ detail }), status, headers);
}

function send(request, response, type, content, status = 200, headers = {}) {
  response.writeHead(status, { ...headers, "content-type": type, "content-length": Buffer.byteLength(content), "x-content-type-options": "nosniff" });
  response.end(request.method === "HEAD" ? undefined : content);
}
