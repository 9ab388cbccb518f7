// The components of a user interface: how they are bundled, and how they are served.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { test } from "node:test";
import { project, run, Runtime, token, write } from "./runtime.mjs";

const CARD = `import { useStreamContext } from "@langchain/langgraph-sdk/react-ui";
import { degrees } from "./degrees";
import "./card.css";

function Card({ city, celsius }: { city: string; celsius: number }) {
  const { submit } = useStreamContext();
  return <button className="card" onClick={() => submit({})}>{city}: {degrees(celsius)}</button>;
}
export default { card: Card };
`;
const repository = (ui, more = {}) => ({
  "framework.json": { graphs: { agent: "../noop.mjs:builder" }, ui: { agent: "./src/ui.tsx" }, ...more },
  "src/ui.tsx": ui, "src/degrees.ts": "export const degrees = (celsius: number) => `${celsius} °C`;", "src/card.css": ".card { color: teal }",
});
const keys = { SLIPWAY_KEYS: "http ui ui_config" };

async function bundle(config) {
  const child = spawn(process.execPath, [path.join(process.env.RUNTIME_DIR, "ui", "bundle.mjs"), path.join(project, config)], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  const [code] = await once(child, "close");
  return { code, said };
}

const ask = (runtime, at, { headers, ...options } = {}) =>
  fetch(`${runtime.url}/app${at}`, { headers: { "x-slipway-authorization": `Bearer ${token}`, "content-type": "application/json", ...headers }, ...options });
const show = (runtime, at, name, headers) => ask(runtime, at, { method: "POST", body: JSON.stringify({ name }), headers });
const forwarded = { "x-forwarded-host": "agents.test", "x-forwarded-proto": "https", "x-forwarded-prefix": "/d/one" };

test("components are bundled and served", async (t) => {
  const config = write(repository(CARD));
  assert.deepEqual(await bundle(config), { code: 0, said: "" });
  const runtime = await Runtime.start(t, config, keys);

  const fragment = await show(runtime, "/ui/agent", "card", forwarded);
  assert.equal(fragment.headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(await fragment.text(), '<link rel="stylesheet" href="https://agents.test/d/one/ui/agent/entrypoint.css" />\n' +
    `<script src="https://agents.test/d/one/ui/agent/entrypoint.js" onload='__LGUI_agent.render(&#34;card&#34;, "{{shadowRootId}}")'></script>`);
  assert.match(await (await show(runtime, "/ui/agent", "card")).text(), /href="http:\/\/127\.0\.0\.1:\d+\/ui\/agent\/entrypoint\.css"/);
  assert.match(await (await show(runtime, "/ui/agent", "card", { "x-forwarded-host": "agents.test", "x-forwarded-proto": "http" })).text(), /src="\/\/agents\.test\/ui/);

  const script = await ask(runtime, "/ui/agent/entrypoint.js");
  assert.deepEqual([script.status, script.headers.get("content-type"), script.headers.get("x-content-type-options")], [200, "text/javascript; charset=utf-8", "nosniff"]);
  const text = await script.text();
  for (const word of ["__LGUI_agent", "LGUI_REQUIRE", "\\xB0C"]) assert.ok(text.includes(word), word);
  const style = await ask(runtime, "/ui/agent/entrypoint.css");
  assert.deepEqual([style.headers.get("content-type"), (await style.text()).includes("teal")], ["text/css; charset=utf-8", true]);
});

test("attack: names, files and headers", async (t) => {
  const config = write(repository(CARD, { http: { mount_prefix: "/api" } }));
  assert.equal((await bundle(config)).code, 0);
  const runtime = await Runtime.start(t, config, keys);

  const hostile = await (await show(runtime, "/api/ui/agent", `card'></script><script>alert(1)</script>`, { ...forwarded, "x-forwarded-host": `a"><i>` })).text();
  assert.ok(hostile.includes("/d/one/api/ui/agent/entrypoint.js"));
  assert.deepEqual(hostile.match(/<[a-z]+/g), ["<link", "<script"]);
  for (const [at, options, status] of [
    ["/api/ui/nobody", { method: "POST", body: '{"name": "card"}' }, 404], ["/api/ui/__proto__", { method: "POST", body: '{"name": "card"}' }, 404],
    ["/api/ui/agent", { method: "POST", body: '{"name": 1}' }, 422], ["/api/ui/agent", { method: "POST", body: "no JSON" }, 422], ["/api/ui/agent", {}, 405],
    ["/api/ui/agent/entrypoint.js", { method: "DELETE" }, 405], ["/api/ui/agent/..%2F..%2Fschemas.json", {}, 404], ["/api/ui/agent/%2e%2e%2fentrypoint.js", {}, 404],
    ["/api/ui/agent/entrypoint.js/more", {}, 404], ["/api/ui/agent/%ff", {}, 404],
  ]) {
    const refused = await ask(runtime, at, options);
    assert.deepEqual([at, refused.status, typeof (await refused.json()).detail], [at, status, "string"]);
  }
  assert.equal((await ask(runtime, "/ui/agent/entrypoint.js")).status, 404); // there is no application
  assert.equal((await fetch(`${runtime.url}/app/api/ui/agent/entrypoint.js`)).status, 401);
});

test("what is wrong with components", async () => {
  const broken = await bundle(write(repository(CARD.replace("./degrees", "./kelvin"))));
  assert.equal(broken.code, 1);
  assert.match(broken.said, /Could not resolve "\.\/kelvin"[\s\S]*src\/ui\.tsx:2:/);
  const outside = await bundle(write(repository(CARD, { ui: { agent: "../noop.mjs" } })));
  assert.match(outside.said, /^ui: the components cannot be bundled: .*"\.\.\/noop\.mjs"/);
  const { code, stderr } = await run(["--config", path.join(project, write(repository(CARD)))], { env: { PATH: process.env.PATH, ...keys } });
  assert.deepEqual([code, stderr.includes("ui: the components have not been bundled")], [1, true]);
});
