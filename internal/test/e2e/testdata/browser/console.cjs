// Is a person in the console: signs in by a code, finds a deployment, talks to its agent,
// interrupts it, and looks back at what was seen and kept.
// Arguments: the server's address, an API key, the deployment's id, and a directory for pictures or
// "".
const { audit, client, tell } = require("./story.cjs");
const path = require("node:path");

const [base, key, deployment, pictures] = process.argv.slice(2);
const call = client(base, key);

tell(async (browser) => {
  const complaints = [], elsewhere = [];
  const page = await browser.newPage();
  let loaded = 0;
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith("blob:")) elsewhere.push(request.url());
  });
  page.on("response", async (r) => {
    if (r.url().startsWith(base + "/console/") && r.request().method() === "GET") loaded += (await r.body().catch(() => "")).length;
  });
  const seen = {};
  const picture = (name) => pictures && page.screenshot({ path: path.join(pictures, name + ".png") });

  // Without a session the page shows the door and nothing else.
  await page.goto(base + "/");
  await page.getByText("slipway open").waitFor();
  seen.findings = await audit(page, "door");
  complaints.length = 0; // the 401 that told the page so

  const { url } = await call("POST", "/console/codes");
  await page.goto(url);
  const row = page.getByRole("row").filter({ has: page.locator(`a[href="#/deployments/${deployment}"]`) });
  await row.getByText("deployed").waitFor();
  seen.address = page.url();
  const sent = await page.evaluate(async () => {
    const status = async (headers) => (await fetch("/v2/workspaces/current", { headers })).status;
    return [await status({ "X-Slipway-Console": localStorage.getItem("proof") }), await status({ "X-Slipway-Console": "1" })];
  });
  seen.proven = sent.join(" ") === "200 401"; // what another port of the host has, the cookie, does not suffice
  complaints.length = 0;
  seen.keyInPage = await page.evaluate((k) => document.cookie.includes("slipway") || JSON.stringify({ ...localStorage }).includes(k), key);
  seen.first = loaded;
  seen.findings.push(...await audit(page, "deployments"));
  await picture("deployments");

  // A deployment that another client creates shows without a reload.
  const made = await call("POST", "/v2/deployments", {
    name: "made-elsewhere-" + Date.now(), source: "github", source_config: { repo_url: "file:///nowhere/at/all" }, source_revision_config: { repo_ref: "main" }, secrets: [],
  });
  await page.getByRole("link", { name: made.name }).waitFor();
  await page.getByRole("link", { name: made.name }).click();
  // Why it failed is on its page, without another click.
  await page.locator(".trouble").first().waitFor();
  seen.failure = await page.locator(".trouble").first().innerText();
  seen.findings.push(...await audit(page, "deployment"));
  await picture("failure");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(/#\/$/);
  await page.goto(`${base}/console/#/deployments/${deployment}`);
  await page.locator(".revisions strong.mark").waitFor();
  seen.copied = await page.getByRole("button", { name: "copy as curl" }).evaluate((b) => { b.click(); return b.dataset.command; });
  await picture("deployment");

  await page.getByRole("link", { name: "build log" }).first().click();
  await page.locator(".line").first().waitFor();
  seen.findings.push(...await audit(page, "log"));
  await picture("log");

  // Talks to an agent that takes its time, and interrupts while the answer is being written.
  await call("POST", `/d/${deployment}/assistants`, { graph_id: "agent", name: "slow", config: { configurable: { token_delay_ms: 400 } } });
  await page.goto(`${base}/console/#/deployments/${deployment}/threads`);
  await page.getByRole("button", { name: "New thread" }).click();
  await page.getByLabel("Assistant").selectOption({ label: "slow" });
  const box = page.getByLabel("Message", { exact: true });
  await box.fill("what is the weather in sf?");
  await box.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".message.ai .text")].some((p) => p.textContent.split(" ").length > 3));
  await picture("streaming");
  seen.enabled = await box.isEnabled();
  await box.fill("what is the weather in berlin?");
  await page.getByLabel("Assistant").selectOption({ label: "agent" });
  await box.press("Enter");
  await page.getByText("interrupted here").waitFor();
  await page.waitForFunction(() => document.querySelector(".composer button").textContent === "Send" && document.querySelectorAll(".message.human").length === 2);
  const thread = page.url().split("/").pop();
  seen.thread = thread;
  const texts = () => page.$$eval(".message", (all) => all.map((m) => ({ id: m.dataset.id, text: [...m.querySelectorAll(".text")].map((p) => p.textContent).join("") })));
  seen.shown = await texts();
  await picture("interrupt-light");
  await page.emulateMedia({ colorScheme: "dark" });
  seen.findings.push(...await audit(page, "dark thread"));
  await picture("interrupt-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.reload();
  await page.getByText("interrupted here").waitFor();
  seen.afterReload = await texts();
  seen.findings.push(...await audit(page, "thread"));

  // "Seen and kept": at the cut, the page shows what a client had seen.
  await page.getByRole("button", { name: "interrupt 1" }).click();
  seen.atCut = await texts();
  await picture("seen");
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText("History").click();
  await page.getByRole("table", { name: "Checkpoints" }).waitFor();

  // The page of a run draws the graph: each node below those that lead to it.
  await page.getByText("Runs", { exact: true }).click();
  await page.getByRole("table", { name: "Runs of this thread" }).getByRole("link").first().click();
  await page.locator(".node").first().waitFor();
  const tops = await page.$$eval(".node", (all) => all.map((n) => [n.textContent.trim(), n.querySelector("rect").getBoundingClientRect().top]));
  seen.drawn = [...new Set(tops.map(([, top]) => top))].sort((a, b) => a - b).map((top) => tops.filter((t) => t[1] === top).map(([name]) => name));
  seen.edges = await page.locator(".edge").count();
  seen.findings.push(...await audit(page, "graph"));
  await picture("layers");
  await page.goBack();
  await page.getByRole("button", { name: "interrupt 1" }).waitFor();

  // The other theme and a narrow window.
  await page.getByRole("button", { name: /light and dark/ }).click();
  await page.setViewportSize({ width: 390, height: 800 });
  seen.findings.push(...await audit(page, "narrow"));
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await picture("narrow");
  for (const name of ["keys", "members", "secrets", "listeners", "webhooks", "audit"]) {
    await page.goto(`${base}/console/#/${name}`);
    await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main").textContent.includes("Loading"));
    seen.findings.push(...await audit(page, name));
    if (!await page.locator("button.copy").count()) complaints.push(name + ": nothing can be copied as curl");
    if (await page.locator(".trouble").count()) complaints.push(name + ": " + await page.locator(".trouble").innerText());
  }

  // A script that is written into the page does not run.
  seen.ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    return window.ran === true;
  });
  seen.complaints = complaints.filter((c) => !c.includes("script")); // that of the test's own script

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("slipway open").waitFor();
  seen.proofAfter = await page.evaluate(() => localStorage.getItem("proof") ?? "");
  seen.cookies = (await browser.cookies()).map((c) => c.name);
  return { ...seen, elsewhere };
});
