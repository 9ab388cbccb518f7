// Is a person in the console whose actions fail, whose role is small, whose page is hidden, and
// whose server is away for a while.
// Arguments: the server's address, an API key, the deployment's id, and an API key of a viewer.
const { client, tell } = require("./story.cjs");

const [base, key, deployment, viewer] = process.argv.slice(2);
const call = client(base, key);

const question = (content) => ({ assistant_id: "agent", input: { messages: [{ role: "user", content }] }, stream_resumable: true, stream_mode: ["messages-tuple", "values"] });

tell(async (browser) => {
  // The test says when the page is hidden.
  await browser.addInitScript(() => {
    let hidden = false;
    Object.defineProperty(document, "hidden", { get: () => hidden });
    window.hide = (now) => { hidden = now; document.dispatchEvent(new Event("visibilitychange")); };
  });
  const page = await browser.newPage();
  const seen = {}, asked = [], streams = new Set();
  page.on("request", (r) => {
    asked.push(r.method() + " " + r.url().slice(base.length));
    if (r.headers().accept === "text/event-stream") streams.add(r);
  });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => streams.delete(r));
  page.on("response", (r) => {
    if (r.request().isNavigationRequest()) streams.clear(); // those of the page before end with it
  });
  const count = (text) => asked.filter((line) => line.includes(text)).length;
  const until = async (what, done) => {
    for (let tries = 0; !done(); tries++) {
      if (tries > 1200) throw new Error(`${what} does not happen: ${streams.size} streams, asked ${asked.join(", ")}`);
      await page.waitForTimeout(50);
    }
  };
  const go = (at) => page.goto(`${base}/console/#${at}`);
  const troubles = () => page.locator(".trouble").allInnerTexts();

  // The server is away when the page loads: the page tries again.
  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();
  await until("the events are followed", () => streams.size === 1);
  await page.route("**/v2/workspaces/current", (route) => route.abort(), { times: 1 });
  await page.reload();
  await page.getByText("The server does not answer.").waitFor();
  await page.getByRole("heading", { name: "Deployments" }).waitFor();
  await until("the events are followed", () => streams.size === 1);
  seen.fromNow = count("GET /v2/events?from=now") > 0 && count("GET /v2/events") === count("GET /v2/events?from=now");

  // A fragment that is not well encoded is no page.
  await go("/%E0%A4%A");
  await page.getByRole("heading", { name: "Not found" }).waitFor();

  // A link asks before it ends a session.
  await page.goto((await call("POST", "/console/codes", undefined, viewer)).url);
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  seen.stayed = await page.locator(".who").innerText();

  // A sign-out that fails is no sign-out.
  await page.route("**/console/session", (route) => route.abort(), { times: 1 });
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are still signed in").waitFor();

  // Events that are refused are told.
  await page.route("**/v2/events?*", (route) => route.fulfill({ status: 403, json: { detail: "Planted refusal." } }), { times: 1 });
  await page.reload();
  await page.getByText("Planted refusal.").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForFunction(() => !document.querySelector(".trouble"));

  // A stream that is one too many for a limit says so, and when the page asks again.
  const limited = { status: 429, headers: { "Retry-After": "3" }, json: { detail: "Planted limit." } };
  await page.route("**/v2/events?*", (route) => route.fulfill(limited), { times: 1 });
  await page.reload();
  await page.getByText("Planted limit. The console tries again in 3 s.").waitFor();
  await page.getByText("Planted limit.").waitFor({ state: "detached" });
  await until("the events are followed after the limit", () => streams.size === 1);

  // A thread that has its answers opens as it is: nothing rewinds, and the runs are read once.
  const { thread_id: thread } = await call("POST", `/d/${deployment}/threads`, {});
  for (const text of ["first", "second"]) {
    const { run_id } = await call("POST", `/d/${deployment}/threads/${thread}/runs`, question(text));
    await call("GET", `/d/${deployment}/threads/${thread}/runs/${run_id}/join`);
  }
  await page.addInitScript(() => {
    window.sizes = [];
    new MutationObserver(() => {
      const size = document.querySelectorAll(".message").length;
      if (size !== window.sizes.at(-1)) window.sizes.push(size);
    }).observe(document, { subtree: true, childList: true });
  });
  await go(`/deployments/${deployment}/threads/${thread}`);
  await page.getByRole("slider").waitFor();
  await page.route("**/threads/*/stream*", (route) => route.fulfill(limited), { times: 1 });
  await page.reload();
  await page.getByText("Planted limit. The console tries again in 3 s.").waitFor();
  await page.getByRole("slider").waitFor();
  asked.length = 0;
  await page.reload();
  await page.getByRole("slider").waitFor();
  // The log of events has been read when it has the end of the second run.
  await page.waitForFunction(() => document.querySelector("slipway-chat").events.filter((e) => e.data.status === "run_done").length === 2);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  seen.sizes = (await page.evaluate(() => window.sizes)).filter((size) => size > 0);
  seen.runsRead = count("/runs?limit=20");

  // A message that is not taken comes back, and the reason stays.
  await page.route("**/threads/*/runs", (route) => route.fulfill({ status: 403, json: { detail: "Planted quota." } }), { times: 1 });
  const box = page.getByLabel("Message", { exact: true });
  await box.fill("worth keeping");
  asked.length = 0;
  await box.press("Enter");
  await page.getByText("Planted quota.").waitFor();
  await until("the runs are read after the refusal", () => count("/runs?limit=20") > 0);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  seen.kept = await box.inputValue();
  seen.sendTroubles = await troubles();

  // A hidden page has no connection, and takes up what it follows when it is seen again.
  await until("the thread is followed", () => streams.size === 2);
  await page.evaluate(() => window.hide(true));
  await until("a hidden page lets go", () => streams.size === 0);
  await page.evaluate(() => window.hide(false));
  await until("the page takes up again", () => streams.size === 2);

  // Eight tabs more, of which one is seen at a time: each shows what happened while it was hidden.
  const tabs = [];
  for (let i = 0; i < 8; i++) {
    const tab = await browser.newPage();
    await tab.goto(`${base}/console/#/`);
    await tab.getByRole("heading", { name: "Deployments" }).waitFor();
    await tab.evaluate(() => window.hide(true));
    tabs.push(tab);
  }
  const make = (name) => call("POST", "/v2/deployments", {
    name, source: "github", source_config: { repo_url: "file:///nowhere/at/all" }, source_revision_config: { repo_ref: "main" }, secrets: [],
  });
  const { name } = await make("made-behind-eight-tabs");
  seen.tabs = 0;
  for (const tab of tabs) {
    await tab.evaluate(() => window.hide(false));
    await tab.getByRole("link", { name }).waitFor();
    await tab.evaluate(() => window.hide(true));
    seen.tabs++;
  }
  // When the page that follows the events for all is hidden, the one that is seen follows them.
  await tabs[0].evaluate(() => window.hide(false));
  await page.evaluate(() => window.hide(true));
  await make("made-behind-the-hidden-page");
  await tabs[0].getByRole("link", { name: "made-behind-the-hidden-page" }).waitFor();
  await page.evaluate(() => window.hide(false));
  for (const tab of tabs) await tab.close();

  // An error on a deployment's page stays in sight after the page was read again.
  await go(`/deployments/${deployment}`);
  await page.locator(".revisions strong.mark").waitFor();
  await page.route("**/redeploy", (route) => route.fulfill({ status: 409, json: { detail: "Planted conflict." } }), { times: 1 });
  asked.length = 0;
  await page.getByRole("button", { name: "Redeploy" }).first().click();
  await page.getByText("Planted conflict.").waitFor();
  await until("the page is read again", () => count("/revisions?limit=20") > 0);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  seen.changeTroubles = await troubles();

  // A viewer reads why the buttons are disabled. The late answer to a request of the session before
  // does not end the viewer's session.
  const late = new Promise((resolve) => page.route("**/late", resolve));
  await page.evaluate(async () => {
    const { get } = await import("/console/api.js");
    window.late = get("/v2/late").catch((error) => error.status);
  });
  await page.goto((await call("POST", "/console/codes", undefined, viewer)).url);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in by the link" }).click();
  await page.locator(".who").getByText("viewer").waitFor();
  await (await late).fulfill({ status: 401, json: { detail: "Planted end of the session." } });
  await page.evaluate(() => window.late);
  await go(`/deployments/${deployment}`);
  const remove = page.getByRole("button", { name: "Delete" });
  seen.disabled = [await remove.isDisabled(), await page.getByRole("button", { name: "Redeploy" }).first().isDisabled()];
  seen.reason = await remove.getAttribute("title");
  await go(`/deployments/${deployment}/threads/${thread}`);
  await page.getByText("This needs the role editor or admin.").waitFor();
  seen.disabled.push(await page.getByRole("button", { name: "Send" }).isDisabled());
  return seen;
});
