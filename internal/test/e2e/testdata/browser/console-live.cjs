// Is a person who watches a rollout in the list and on the deployment's page, and follows a log
// while the server is killed twice.
// Arguments: the server's address, an API key, the id of a deployment whose branch "held" builds
// until a file is there, this file, the address that kills the server and starts it again, and how
// many lines the agent prints after each of its starts.
const { client, tell } = require("./story.cjs");
const fs = require("node:fs");

const [base, key, deployment, gate, restart, lines] = process.argv.slice(2);
const call = client(base, key);
const phases = ["creating", "awaiting build", "building", "awaiting deploy", "deploying", "deployed"];

tell(async (browser) => {
  const seen = {};
  const open = async (at) => {
    const page = await browser.newPage();
    await page.goto(`${base}/console/#${at}`);
    return page;
  };
  const list = await open("/");
  await list.goto((await call("POST", "/console/codes")).url);
  const row = list.getByRole("row").filter({ has: list.locator(`a[href="#/deployments/${deployment}"]`) });
  await row.getByText("deployed").waitFor();
  const detail = await open(`/deployments/${deployment}`);
  await detail.locator(".revisions strong.mark").waitFor();

  // A deployment that another client makes is in the list without a reload.
  const body = { name: "made-elsewhere", source: "github", source_config: { repo_url: "file:///nowhere/at/all" }, source_revision_config: { repo_ref: "main" }, secrets: [] };
  const asked = Date.now();
  await call("POST", "/v2/deployments", body);
  await list.getByRole("link", { name: body.name }).waitFor();
  seen.appearedAfter = Date.now() - asked;

  // The list and the page of the deployment show the same status, and neither goes back to an
  // earlier one.
  const record = (page, selector) => page.evaluate((at) => {
    window.statuses = [];
    const note = () => {
      const status = document.querySelector(at)?.textContent.trim().slice(1).trim();
      if (status && status !== window.statuses.at(-1)) window.statuses.push(status);
    };
    new MutationObserver(note).observe(document, { subtree: true, childList: true, characterData: true });
  }, selector);
  await record(list, `tr:has(a[href="#/deployments/${deployment}"]) .badge`);
  await record(detail, ".head .badge");
  const { latest_revision_id: held } = await call("PATCH", `/v2/deployments/${deployment}`, { source_revision_config: { repo_ref: "held" } });
  const same = async (status) => {
    await row.locator(".badge", { hasText: status }).waitFor();
    await detail.locator("main > * > .head .badge", { hasText: status }).waitFor();
    return (await call("GET", `/v2/deployments/${deployment}/revisions/${held}`)).status;
  };
  seen.together = [await same("building")];
  // The time of the present phase goes on.
  const took = detail.locator(".phases").first().locator("b").last(), before = await took.innerText();
  await took.filter({ hasNotText: before }).waitFor();
  fs.writeFileSync(gate, "");
  await detail.locator(".revisions > li").first().locator("strong.mark").waitFor();
  seen.together.push(await same("deployed"));
  seen.backwards = [];
  for (const page of [list, detail]) {
    const statuses = await page.evaluate(() => window.statuses);
    const ranks = statuses.slice(statuses.indexOf("creating")).map((status) => phases.indexOf(status));
    if (ranks.some((rank, i) => rank < 0 || rank < ranks[i - 1])) seen.backwards.push(statuses.join(", "));
  }
  await detail.close();

  // The log of the agent is followed while the server is killed: the page shows each line that the
  // server kept, once and in order, and takes no reload.
  const log = await open(`/deployments/${deployment}/revisions/${held}/logs/deploy`);
  const shown = () => log.evaluate(() => document.querySelector("slipway-logs").lines.map((line) => line.message));
  const kept = async () => {
    const found = [];
    for (let offset = ""; offset !== null;) {
      const { logs, next_offset: next } = await call("GET", `/v2/deployments/${deployment}/revisions/${held}/logs?type=deploy&limit=1000${offset && `&offset=${encodeURIComponent(offset)}`}`);
      found.push(...logs.map((line) => line.message));
      offset = next;
    }
    return found;
  };
  // until waits until the agent prints for the nth time and has come to a line, and the page shows
  // as many lines as the server had then.
  const until = async (round, line) => {
    for (;;) {
      const all = await kept(), last = all.lastIndexOf("line 1");
      if (all.filter((text) => text === "line 1").length === round && all.slice(last).includes(`line ${line}`)) {
        while ((await shown()).length < all.length) await log.waitForTimeout(50);
        return all;
      }
      await log.waitForTimeout(50);
    }
  };
  await log.locator("slipway-logs").waitFor({ state: "attached" });
  await log.evaluate(() => { window.kept = true; });
  for (const round of [1, 2]) {
    await until(round, 100);
    const answer = await fetch(restart, { method: "POST" });
    if (!answer.ok) throw new Error(await answer.text());
  }
  const all = await until(3, lines);
  await log.locator(".line", { hasText: `line ${lines}` }).waitFor();
  const page = await shown();
  seen.same = JSON.stringify(page) === JSON.stringify(all);
  const numbers = page.map((text) => Number(/^line (\d+)$/.exec(text)?.[1])).filter((n) => n);
  seen.gaps = numbers.filter((n, i) => n !== 1 && n !== numbers[i - 1] + 1).length;
  seen.kept = await log.evaluate(() => window.kept === true);
  // The page of the list has gone on, too.
  await list.getByText("The server does not answer.").waitFor({ state: "detached" });
  await call("POST", "/v2/deployments", { ...body, name: "made-afterwards" });
  await list.getByRole("link", { name: "made-afterwards" }).waitFor();
  return seen;
});
