const KEY = Symbol.for("langgraph.api.sdk-logger");

/**
 * Gives graphs the logger that the client package's `getLogger()` hands out, which throws where no
 * server has put one there. What it is told is in the log of the agent.
 */
export function installLogger() {
  const say = (level) => (...words) => console.error(`${level}:`, ...words);
  globalThis[KEY] ??= Object.fromEntries(["error", "warn", "info", "debug"].map((level) => [level, say(level)]));
}
