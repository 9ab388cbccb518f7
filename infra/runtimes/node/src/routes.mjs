// The routes of an application of Hono. Other applications do not tell their routes: they get the
// paths that the agent server does not have.

/** The first segments of the agent server's own paths. */
const SERVED = [".well-known", "a2a", "assistants", "docs", "info", "mcp", "metrics", "ok", "openapi.json", "runs", "store", "threads", "ui"];
/**
 * Middleware of Hono that the agent server's routes do not need: the agent server does the same
 * work, or the work concerns the own routes only. It is known by the name of its function.
 */
const OWN_ROUTES_ONLY = /^(appendTrailingSlash|bodyLimit|compress|contextStorage|cors|etag|logger|poweredBy|prettyJSON|requestId|secureHeaders|timeout|timing|trimTrailingSlash)\d*$/;

/**
 * Returns what the application answers itself, in the form of the contract. The documents of the
 * agent server's interface stay where they are.
 * @param {{routes?: unknown}} app
 * @param {string} prefix of all paths
 * @returns {{methods: string[], pattern: string}[]}
 */
export function routesOf(app, prefix) {
  const found = new Map();
  for (const { method, path, isMiddleware } of entriesOf(app)) {
    if (isMiddleware || path === "/openapi.json") continue;
    const methods = method === "ALL" ? [] : method === "GET" ? ["GET", "HEAD"] : [method];
    found.set(`${method} ${path}`, { methods, pattern: `^${literal(prefix)}${patternOf(path)}$` });
  }
  return [...found.values()];
}

/**
 * Returns the middleware that would be missing on the agent server's routes: the framework's own
 * server applies an application's middleware to them, too. That of one route is no such thing.
 * @param {{routes?: unknown}} app
 */
export function middlewareOf(app) {
  const entries = entriesOf(app);
  const answered = new Set(entries.filter(({ isMiddleware }) => !isMiddleware).map(({ method, path }) => `${method} ${path}`));
  const missing = entries.filter(({ method, path, name, isMiddleware }) =>
    isMiddleware && !answered.has(`${method} ${path}`) && !OWN_ROUTES_ONLY.test(name) && isServed(path));
  return [...new Set(missing.map(({ path, name }) => `${name || "(a function without a name)"} at ${path}`))];
}

function entriesOf(app) {
  const routes = Array.isArray(app.routes) ? app.routes : [];
  return routes.filter((route) => typeof route?.method === "string" && typeof route.path === "string").map(({ method, path, handler }) => {
    const own = unwrap(handler);
    return { method, path, name: own?.name ?? "", isMiddleware: own?.length > 1 }; // as Hono itself tells them apart
  });
}

/**
 * The handler that Hono has wrapped. It keeps it under a name, in older releases under a symbol.
 */
function unwrap(handler) {
  const key = Reflect.ownKeys(Object(handler)).find((key) => key === "__COMPOSED_HANDLER" || key.description === "composedHandler");
  return key === undefined ? handler : unwrap(handler[key]);
}

/** Whether a path may be one of the agent server's. */
function isServed(path) {
  const first = path.split("/")[1] ?? "";
  return /[:*{]/.test(first) || SERVED.includes(first);
}

/** The regular expression of a path of Hono's, without its ends. */
function patternOf(path) {
  const groups = [];
  const segments = path.replace(/\{([^}]+)\}/g, (_all, group) => `{${groups.push(group) - 1}}`).split("/").slice(1);
  return segments.map((segment, i) => {
    const isLast = i === segments.length - 1;
    if (segment === "*") return isLast ? "(?:/.*)?" : "/[^/]+";
    const [, group, optional] = /^:[^{}?]+(?:\{(\d+)\})?(\?)?$/.exec(segment) ?? [];
    if (!segment.startsWith(":")) return `/${literal(segment)}`;
    const one = `/(?:${group === undefined ? "[^/]+" : groups[Number(group)]})`;
    return optional && isLast ? `(?:${one})?` : one;
  }).join("");
}

function literal(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
