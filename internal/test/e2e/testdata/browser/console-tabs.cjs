// Is a person with many pages of the console, all of which can be seen, and with a workspace whose
// limit of requests is used up.
// Arguments: the server's address, an API key, and the id of a deployment. The agent follows the
// script of each run.
const { client, tell } = require("./story.cjs");

const [base, key, deployment] = process.argv.slice(2);
const call = client(base, key);

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = {};
  await page.goto((await call("POST", "/console/codes")).url);
  const row = page.getByRole("row").filter({ has: page.locator(`a[href="#/deployments/${deployment}"]`) });
  await row.getByText("deployed").waitFor();

  // A list reads the newest revision only of a deployment for which another one serves, or none.
  const { id: failed, latest_revision_id: revision } = await call("POST", "/v2/deployments", {
    name: "never-served", source: "github", source_config: { repo_url: "file:///nowhere/at/all" }, source_revision_config: { repo_ref: "main" }, secrets: [],
  });
  await page.getByRole("row").filter({ has: page.getByRole("link", { name: "never-served" }) }).getByText("build failed").waitFor();
  const read = [];
  page.on("request", (r) => read.push(r.url().slice(base.length).match(/^\/v2\/deployments\/.*\/revisions\/.*/)?.[0]));
  await page.reload();
  await row.getByText("deployed").waitFor();
  seen.read = read.filter((at) => at).map((at) => at === `/v2/deployments/${failed}/revisions/${revision}` ? "never-served" : at);

  // A read that is refused again and again says why, until it is answered.
  let full = true;
  await page.route("**/v2/api-keys*", (route) => full
    ? route.fulfill({ status: 429, headers: { "Retry-After": "1" }, json: { detail: "Planted limit." } }) : route.continue());
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByText("Planted limit. The console tries again").waitFor();
  full = false;
  await page.getByRole("row").nth(1).waitFor();
  await page.getByText("Planted limit.").waitFor({ state: "detached" });
  await page.close();

  // Eight pages follow a thread each, though a browser has six connections: what happens is shown,
  // and another page loads meanwhile.
  const pages = [];
  for (let i = 0; i < 8; i++) {
    const { thread_id: thread } = await call("POST", `/d/${deployment}/threads`, {});
    const one = await browser.newPage();
    await one.goto(`${base}/console/#/deployments/${deployment}/threads/${thread}`);
    await one.getByText("Write the first message.").waitFor();
    pages.push({ one, thread });
  }
  const say = (thread, content) => call("POST", `/d/${deployment}/threads/${thread}/runs`, {
    assistant_id: "agent", input: { messages: [{ role: "user", content }] }, stream_resumable: true, stream_mode: ["messages-tuple", "values"],
  });
  seen.answered = 0;
  for (const text of ["first", "second"]) {
    for (const { thread } of pages) await say(thread, text);
    for (const { one } of pages) {
      await one.waitForFunction((t) => [...document.querySelectorAll(".message.human")].some((m) => m.textContent.includes(t)), text);
      await one.waitForFunction((n) => document.querySelectorAll(".message.ai").length === n, text === "first" ? 1 : 2);
      seen.answered++;
    }
  }
  const another = await browser.newPage();
  await another.goto(`${base}/console/#/keys`);
  await another.getByRole("row").nth(1).waitFor();
  return seen;
});
