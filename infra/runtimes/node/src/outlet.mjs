/**
 * A comment so often, where there is nothing to say, shows proxies and the server that the agent is
 * there.
 */
const HEARTBEAT_MS = 15_000;

/** Sends events as they come; those of one turn of the event loop in one packet. */
export class Outlet {
  #response;
  #corked = false;

  constructor(response) {
    this.#response = response;
    const beat = setInterval(() => response.destroyed || response.writableEnded || response.write(": heartbeat\n\n"), HEARTBEAT_MS);
    beat.unref?.();
    response.once("close", () => clearInterval(beat));
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.flushHeaders();
  }

  emit = (event, json) => {
    const response = this.#response;
    if (response.destroyed || response.writableEnded) return;
    if (!this.#corked) {
      this.#corked = true;
      response.cork();
      setImmediate(() => {
        this.#corked = false;
        response.uncork();
      });
    }
    response.write(`event: ${event.replace(/[\r\n]/g, " ")}\ndata: ${json}\n\n`);
  };

  drain() {
    const response = this.#response;
    if (!response.writableNeedDrain || response.destroyed) return undefined;
    return new Promise((resolve) => {
      const done = () => {
        response.off("drain", done);
        response.off("close", done);
        resolve();
      };
      response.on("drain", done);
      response.on("close", done);
    });
  }
}
