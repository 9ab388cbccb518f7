// Lets the framework's client without a URL reach the deployment's own agent server, as graphs that
// run in the public server do: with the agent's invoke token and the user of the run that makes the
// request, so that whatever it starts belongs to the same user.
import { AsyncLocalStorage } from "node:async_hooks";

/** Names the user of a run to the agent server, which takes it from agents alone. */
const CALLER = "x-slipway-caller";
/** Stands for the agent server in what the client asks for, before it is known. */
const PLACEHOLDER = "http://agent-server.invalid";

const places = new AsyncLocalStorage();
/**
 * The server that the last invocation named, for what runs beside invocations. It acts for nobody.
 */
let lastURL = "";

/**
 * Has clients without a URL, that the function and what it starts use, reach a server as a user.
 */
export function reaching(serverURL, user, work) {
  lastURL = serverURL || lastURL;
  return places.run({ url: serverURL, user }, work);
}

/**
 * Comes before the graphs are loaded, which may make their clients when they are imported. The
 * client looks here for its server and for its fetch.
 */
export function installLoopback(env) {
  globalThis[Symbol.for("langgraph_api:url")] = PLACEHOLDER;
  globalThis[Symbol.for("langgraph_api:fetch")] = (input, init = {}) => {
    const url = String(input?.url ?? input);
    if (!url.startsWith(`${PLACEHOLDER}/`)) return fetch(input, init); // it has a URL of its own
    const place = places.getStore();
    const base = (place?.url || lastURL).replace(/\/+$/, "");
    if (base === "") return Promise.reject(new TypeError("the agent server is not known before it has invoked this agent"));
    const headers = new Headers(init.headers ?? input.headers);
    for (const name of ["authorization", CALLER]) headers.delete(name);
    headers.set("x-api-key", env.SLIPWAY_INVOKE_TOKEN ?? "");
    headers.set("x-tenant-id", env.PLATFORM_TENANT_ID ?? "");
    if (place?.user) headers.set(CALLER, Buffer.from(JSON.stringify(place.user)).toString("base64").replaceAll("+", "-").replaceAll("/", "_"));
    return fetch(base + url.slice(PLACEHOLDER.length), { ...init, headers });
  };
}
