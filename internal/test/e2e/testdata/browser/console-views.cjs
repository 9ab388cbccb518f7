// Is a person who opens each view of the console: while it loads, with nothing in it, when it
// cannot be read, and as it is, in both themes and both widths, by keyboard, and with its copied
// command.
// Arguments: the server's address, an API key, the id of a deployment with two revisions, and a
// directory for pictures or "".
const { audit, client, tell } = require("./story.cjs");
const { execFileSync } = require("node:child_process");
const path = require("node:path");

const [base, key, deployment, pictures] = process.argv.slice(2);
const call = client(base, key);
const agent = `/d/${deployment}`;
const at = `/deployments/${deployment}`;

// begun is a run on a new thread that has ended.
async function begun(script) {
  const { thread_id: thread } = await call("POST", `${agent}/threads`, {});
  const { run_id: run } = await call("POST", `${agent}/threads/${thread}/runs`, {
    assistant_id: "agent", input: { messages: [{ role: "user", content: "planted question" }] }, config: script ? { configurable: { script } } : {},
  });
  await call("GET", `${agent}/threads/${thread}/runs/${run}/join`);
  return { thread, run };
}

const list = (name, empty, has) => ({ name, at: `/${name}`, reads: [`/v2/${name}`], empty: { resources: [] }, says: empty, has });

// views returns each view: its place, what it reads, what the server says if there is nothing, what
// the view says then, and a text that it and its copied command have. A view without "says" is
// never empty.
async function views() {
  const [newest] = (await call("GET", `/v2${at}/revisions`)).resources;
  const { thread, run } = await begun();
  const asking = await begun([{ event: "interrupt", data: [{ id: "asked", value: "planted inquiry" }] }]);
  const { name } = await call("GET", `/v2${at}`);
  await call("POST", "/v2/workspaces/current/members", { user: "ada@example.com", role: "viewer" });
  await call("POST", "/v2/secrets", { name: "planted-secret", data: { word: "open-sesame" } });
  await call("POST", "/v2/listeners", { compute_type: "k8s", compute_id: "planted-cluster", compute_config: { k8s_namespaces: ["agents"] } });
  await call("POST", "/v2/webhooks", { url: "http://127.0.0.1:1/planted" });
  const { assistant_id: planted } = await call("POST", `${agent}/assistants`, { graph_id: "agent", name: "planted assistant", config: { tags: ["first"] } });
  await call("PATCH", `${agent}/assistants/${planted}`, { config: { tags: ["second"] } });
  const ended = 'event: end\ndata: {"status":"DEPLOYED"}\n\n';
  return [
    { name: "deployments", at: "/", reads: ["/v2/deployments?limit=100"], empty: { resources: [] }, says: "There is no deployment yet.", has: name },
    { name: "deployment", at, reads: [`/v2${at}`], has: name },
    { name: "difference", at: `${at}/revisions/${newest.id}/difference`, reads: [`/v2${at}/revisions/${newest.id}/difference`], has: "source_revision_config.repo_ref",
      empty: { settings: [], secrets: [] }, says: "No secret changed." },
    { name: "log", at: `${at}/revisions/${newest.id}/logs/build`, reads: [`/v2${at}/revisions/${newest.id}/logs`], loads: "live", empty: ended, says: "0 lines", has: "planted line" },
    { name: "threads", at: `${at}/threads`, reads: [`${agent}/threads/search`], empty: [], says: "There is no thread yet.", has: "planted question" },
    { name: "thread", at: `${at}/threads/${thread}`, reads: [`${agent}/threads/${thread}/state`], empty: { values: {} }, says: "Write the first message.", has: "planted question" },
    { name: "run", at: `${at}/threads/${thread}/runs/${run}`, reads: [`${agent}/threads/${thread}/runs/${run}/explanation`], has: run },
    { name: "assistants", at: `${at}/assistants`, reads: [`${agent}/assistants/search`], empty: [], says: "There is no assistant yet.", has: "planted assistant" },
    { name: "metrics", at: `${at}/metrics`, reads: [`${agent}/metrics?format=json`], empty: {}, says: "No request was answered yet.", has: "/threads/{thread_id}/runs" },
    { name: "inbox", at: "/inbox", reads: ["/v2/deployments?limit=100"], empty: { resources: [] }, says: "No thread waits for an answer.", has: "planted inquiry" },
    { ...list("keys", "There is no key.", key.slice(0, 8)), reads: ["/v2/api-keys"] },
    { ...list("members", "There is no member", "ada@example.com"), reads: ["/v2/workspaces/current/members"], empty: [] },
    list("secrets", "There is no secret of the workspace.", "planted-secret"),
    list("listeners", "There is no listener.", "k8s"),
    list("webhooks", "There is no webhook.", "http://127.0.0.1:1/planted"),
    { ...list("audit", "Nothing was changed yet.", "webhook"), reads: ["/v2/audit-log?limit=100"] },
  ];
}

// assistants goes back to the first version of an assistant, and deletes the assistant.
async function assistants(page) {
  await page.goto(`${base}/console/#${at}/assistants`);
  const row = page.getByRole("row", { name: "planted assistant" });
  const kept = () => call("POST", `${agent}/assistants/search`, { metadata: {}, name: "planted assistant" });
  await row.getByRole("button", { name: "versions" }).click();
  const versions = page.getByRole("region", { name: "Versions" });
  await versions.getByRole("row", { name: "second" }).getByText("in use").waitFor();
  const findings = await audit(page, "versions of an assistant");
  await versions.getByRole("button", { name: "Use" }).click();
  await versions.getByRole("row", { name: "first" }).getByText("in use").waitFor();
  await row.getByText("first").waitFor();
  const [{ version, config }] = await kept();
  if (version !== 1 || config.tags[0] !== "first") findings.push(`the assistant has version ${version}: ${JSON.stringify(config)}`);
  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete" }).getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  if ((await kept()).length) findings.push("the assistant is still there");
  return findings;
}

// pages reads lists that are longer than a page to their end.
async function pages(page) {
  const { id: webhook } = (await call("GET", "/v2/webhooks")).resources[0];
  for (let i = 0; i < 25; i++) {
    await call("POST", "/v2/secrets", { name: `further-${i}`, data: { word: "open-sesame" } });
    await call("POST", "/v2/listeners", { compute_type: "k8s", compute_id: `further-${i}`, compute_config: { k8s_namespaces: ["agents"] } });
    await call("POST", `/v2/webhooks/${webhook}/test`);
  }
  const { thread_id: thread } = await call("POST", `${agent}/threads`, {});
  for (let i = 0; i < 21; i++) {
    await call("POST", `${agent}/threads/${thread}/runs`, { assistant_id: "agent", input: { messages: [] } });
  }
  for (let i = 0; i < 50; i++) await call("POST", `${agent}/threads`, {});
  const findings = [];
  const whole = async (name, rows, more, least) => {
    const before = await rows.count();
    await more.click();
    await rows.nth(before).waitFor();
    if (before >= least || await rows.count() < least) findings.push(`${name} has ${before} rows, then ${await rows.count()}`);
  };
  const more = page.getByRole("button", { name: "show more" });
  for (const [name, place, least] of [["secrets", "/secrets", 26], ["listeners", "/listeners", 26], ["threads", `${at}/threads`, 51]]) {
    await page.goto(`${base}/console/#${place}`);
    const rows = page.locator("main tbody tr");
    await rows.first().waitFor();
    await whole(name, rows, more, least);
    await more.waitFor({ state: "detached" });
  }
  findings.push(...await audit(page, "list of several pages"));
  await page.goto(`${base}/console/#/webhooks`);
  await page.getByRole("button", { name: "deliveries" }).click();
  const deliveries = page.getByRole("region", { name: "Deliveries" }).locator("tbody tr");
  await deliveries.first().waitFor();
  await whole("deliveries", deliveries, more, 25);
  await page.goto(`${base}/console/#${at}/threads/${thread}`);
  await page.getByText("Runs", { exact: true }).click();
  const runs = page.getByRole("region", { name: "Runs of this thread" }).locator("tbody tr");
  await runs.first().waitFor();
  await whole("runs", runs, more, 21);
  return findings;
}

// palette goes to pages by the command palette, with the keyboard alone.
async function palette(page, name) {
  const findings = [];
  const choose = async (text, option) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(text);
    await page.getByRole("option", { name: option, selected: true }).waitFor();
    await page.keyboard.press("Enter");
  };
  const isAt = (heading) => page.getByRole("heading", { name: heading, level: 1 }).waitFor();
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: `${name} metrics` }).waitFor();
    findings.push(...await audit(page, `palette, ${colorScheme}`));
    await page.keyboard.type("no such name");
    await page.getByText("Nothing has such a name.").waitFor();
    await page.keyboard.press("Escape");
  }
  // An entry that the person moves to before the deployments are there stays chosen when they come.
  let answered;
  const wanted = new Promise((resolve) => { answered = resolve; });
  await page.route("**/v2/deployments?limit=20&*", async (route) => {
    await wanted;
    await route.continue();
  }, { times: 1 });
  await page.keyboard.press("Control+k");
  await page.keyboard.press("ArrowUp");
  await page.getByRole("option", { name: "Sign out", selected: true }).waitFor();
  answered();
  await page.getByRole("option", { name: `${name} metrics` }).waitFor();
  await page.getByRole("option", { name: "Sign out", selected: true }).waitFor();
  for (let i = 0; i < 2; i++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await isAt("Inbox");
  await choose(`${name} met`, `${name} metrics`);
  await isAt("Metrics");
  await choose(`${name} thr`, `${name} threads`);
  await isAt("Threads");
  await choose("light", "Switch between light and dark");
  await page.locator("html[data-theme=dark]").waitFor();
  return findings;
}

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = { findings: [], complaints: [], overflow: [], unreached: [], copied: [] };
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  const main = page.locator("main");

  /** open loads a view again. */
  const open = async (view) => {
    await page.goto("about:blank");
    await page.goto(`${base}/console/#${view.at}`);
  };
  /** instead has what a view reads answered by the test while it does something. */
  const instead = async (view, answer, doing) => {
    const is = (url) => view.reads.some((read) => (read.includes("?") ? url.pathname + url.search : url.pathname) === read);
    let asked = false;
    await page.route(is, (route) => {
      asked = true;
      return answer(route);
    });
    await open(view);
    await doing();
    await page.unroute(is);
    if (!asked) seen.complaints.push(`${view.name} does not read ${view.reads}`);
  };

  /** unreached are the elements of the view that one can use, but to which no Tab comes. */
  const unreached = async () => {
    await page.evaluate(() => {
      const usable = 'a[href], button:not([disabled]), input:not([disabled]), select, textarea, summary, [tabindex="0"]';
      window.missed = new Set([...document.querySelectorAll(`main :is(${usable})`)].filter((e) => e.checkVisibility()));
      document.querySelector("main").focus();
    });
    for (;;) {
      await page.keyboard.press("Tab");
      const goesOn = await page.evaluate(() => {
        const { activeElement: focused } = document;
        if (focused.matches(":focus-visible")) window.missed.delete(focused);
        return document.querySelector("main").contains(focused);
      });
      if (!goesOn) break;
    }
    return page.evaluate(() => [...window.missed].filter((e) => e.isConnected).map((e) => e.outerHTML.slice(0, 80)));
  };

  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();
  const all = await views();
  seen.views = all.length;
  for (const view of all) {
    let release;
    const held = new Promise((resolve) => { release = resolve; });
    await instead(view, async (route) => {
      await held;
      await route.continue();
    }, async () => {
      await main.getByText(view.loads ?? "Loading …").first().waitFor();
      if (await page.locator(".trouble").count()) seen.complaints.push(`${view.name} is in trouble while it loads`);
      release();
      await main.getByText(view.has).first().waitFor();
    });
    await instead(view, (route) => route.fulfill({ status: 403, json: { detail: "Planted refusal." } }), async () => {
      await main.locator(".trouble").getByText("Planted refusal.").first().waitFor();
      if (/Loading|There is no|Write the first/.test(await main.innerText())) seen.complaints.push(`${view.name} is in trouble, and says: ${await main.innerText()}`);
      seen.findings.push(...await audit(page, `${view.name} in trouble`));
    });
    if (view.says) {
      const answer = typeof view.empty === "string" ? { contentType: "text/event-stream", body: view.empty } : { json: view.empty };
      await instead(view, (route) => route.fulfill(answer), async () => {
        await main.getByText(view.says).first().waitFor();
        seen.findings.push(...await audit(page, `${view.name} with nothing`));
      });
    }

    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await open(view);
        await main.getByText(view.has).first().waitFor();
        const state = `${view.name}, ${colorScheme}, ${width}`;
        seen.findings.push(...await audit(page, state));
        if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) seen.overflow.push(state);
        if (pictures) await page.screenshot({ path: path.join(pictures, `view-${state.replaceAll(", ", "-")}.png`) });
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1280, height: 800 });
    seen.unreached.push(...(await unreached()).map((element) => `${view.name}: ${element}`));
    const command = await main.getByRole("button", { name: "copy as curl" }).first().evaluate((b) => { b.click(); return b.dataset.command; });
    const answer = execFileSync("sh", ["-c", command], { env: { ...process.env, KEY: key }, encoding: "utf8" });
    if (!answer.includes(view.has)) seen.copied.push(`${view.name}: ${command}: ${answer.slice(0, 200)}`);
  }
  seen.findings.push(...await assistants(page));
  seen.findings.push(...await pages(page));
  await open(all[0]);
  await main.getByText(all[0].has).first().waitFor();
  seen.findings.push(...await palette(page, all[0].has));
  return seen;
});
