// Is a person who does the main job by keyboard, enlarges the page, reads a long log, rolls back,
// and answers what agents ask.
// Arguments: the server's address, an API key, the id of a deployment with two revisions, the id of
// another deployment, and a directory for pictures or "". The agents follow the script of each run.
// The build of the newest revision prints the numbers up to 100000.
const { audit, client, tell } = require("./story.cjs");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");

const [base, key, deployment, other, pictures] = process.argv.slice(2);
const call = client(base, key);

tell(async (browser) => {
  let page = await browser.newPage();
  const seen = { findings: [], complaints: [] };
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  const go = (at) => page.goto(`${base}/console/#/deployments/${deployment}${at}`);
  const picture = (name) => pictures && page.screenshot({ path: path.join(pictures, name + ".png") });
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

  // tabTo presses Tab until the focus is at an element whose text or label begins with the name.
  const tabTo = async (name) => {
    const passed = [];
    for (let presses = 0; presses < 80; presses++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const e = document.activeElement;
        return (e.labels?.[0]?.textContent ?? e.textContent).trim();
      });
      if (at.startsWith(name)) return;
      passed.push(at);
    }
    throw new Error(`no Tab comes to ${name}: ${passed.join(", ")}`);
  };
  const open = async (name) => {
    await tabTo(name);
    await page.keyboard.press("Enter");
  };

  // The main job by keyboard: sign in, find the deployment, talk, interrupt, stop.
  const { code } = await call("POST", "/console/codes");
  const { name } = await call("GET", `/v2/deployments/${deployment}`);
  await call("POST", `/d/${deployment}/assistants`, { // its answers last until they are interrupted
    graph_id: "agent", name: "holding", config: { configurable: { script: [{ event: "messages", data: [{ type: "AIMessageChunk", id: "m", content: "Half an answer" }, {}] }, { hold: true }] } },
  });
  await page.goto(base + "/");
  await page.getByText("slipway open").waitFor();
  await tabTo("Or enter the code that the command prints");
  await page.keyboard.type(code + "\n");
  await page.getByRole("link", { name, exact: true }).waitFor();
  await open("Skip to the content");
  await open(name);
  await page.locator(".revisions strong.mark").waitFor();
  await open("Threads");
  await page.getByRole("button", { name: "New thread" }).waitFor();
  await open("New thread");
  const box = page.getByLabel("Message", { exact: true });
  await box.waitFor();
  const thread = page.url().split("/").pop();
  const say = async (assistant, text) => {
    await tabTo("Assistant");
    await page.keyboard.type(assistant);
    await tabTo("Message");
    await page.keyboard.type(text + "\n");
  };
  await say("holding", "take your time");
  await page.getByText("Half an answer").waitFor();
  await say("agent", "be quick");
  await page.getByText("interrupted here").waitFor();
  await page.getByText("ok", { exact: true }).waitFor();
  await page.waitForFunction(() => document.querySelector(".composer button").textContent === "Send");
  await say("holding", "once more");
  await page.getByRole("button", { name: "Stop" }).waitFor();

  // Nothing moves for those who want no motion.
  const moving = () => page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").length);
  await page.emulateMedia({ reducedMotion: "reduce" });
  seen.reduced = await moving();
  await page.emulateMedia({ reducedMotion: "no-preference" });
  seen.moving = await moving() > 0;
  await open("Stop");
  await page.waitForFunction(() => document.querySelector(".composer button").textContent === "Send");
  seen.statuses = (await call("GET", `/d/${deployment}/threads/${thread}/runs`)).map((r) => r.status);

  // At 200 % a page has half of the window's pixels.
  const session = await browser.newCDPSession(page);
  await session.send("Emulation.setDeviceMetricsOverride", { width: 640, height: 400, deviceScaleFactor: 2, mobile: false });
  seen.overflow = [];
  for (const [at, heading] of [["", name], ["/threads", "Threads"], [`/threads/${thread}`, "Thread"]]) {
    await go(at);
    await page.getByRole("heading", { name: heading, level: 1, exact: true }).waitFor();
    seen.overflow.push(await overflow());
    seen.findings.push(...await audit(page, "200 % " + at));
  }
  await box.click(); // it can be reached, and nothing covers it
  await picture("zoom");
  await session.send("Emulation.clearDeviceMetricsOverride");

  // A log of 100,000 lines: the page has few nodes wherever one scrolls, a line has an address, and
  // the filter and the download have all lines.
  const [newest, before] = (await call("GET", `/v2/deployments/${deployment}/revisions`)).resources;
  await go(`/revisions/${newest.id}/logs/build`);
  await page.waitForFunction(() => Number.parseInt(document.querySelector("main p[role=status]")?.textContent, 10) > 100000);
  const shows = (line) => page.waitForFunction((n) => [...document.querySelectorAll(".line")].some((e) => e.textContent.trim().endsWith(" " + n)), line);
  await shows(100000); // it is followed to its end
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  seen.nodes = [await nodes()];
  const log = page.locator(".log");
  for (const line of [50000, 10]) {
    await log.evaluate((e, top) => { e.scrollTop = top; }, line * 20);
    await shows(line);
    seen.nodes.push(await nodes());
  }
  await page.getByLabel("Filter").fill("99999");
  await page.waitForFunction(() => document.querySelectorAll(".line").length === 1);
  const address = await page.locator(".line a").getAttribute("href");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  seen.downloaded = fs.readFileSync(await download.path(), "utf8").split("\n").filter((line) => / \d+$/.test(line)).length;
  await go("");
  await page.locator(".revisions strong.mark").waitFor();
  await page.goto(base + "/console/" + address);
  await page.locator(".line.marked").waitFor();
  seen.marked = (await page.locator(".line.marked").textContent()).trim().split(" ").at(-1);
  seen.nodes.push(await nodes());
  await picture("long-log");

  // A rollback moves the mark to a revision with the earlier commit.
  await go("");
  const active = page.locator(".revisions > li.active");
  const commit = (r) => r.source_revision_config.repo_commit_sha;
  await active.locator(`code[title="${commit(newest)}"]`).waitFor();
  await page.locator(".revisions > li").filter({ has: page.locator(`code[title="${commit(before)}"]`) }).getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await active.locator(`code[title="${commit(before)}"]`).waitFor();
  seen.marks = await page.locator(".revisions strong.mark").count();
  const { active_revision_id: serves } = await call("GET", `/v2/deployments/${deployment}`);
  seen.flipped = commit(newest) !== commit(before) && serves !== newest.id && serves !== before.id;

  // Threads of two deployments that wait for an answer appear in the inbox and in the title, and an
  // answer that somebody else gives takes one away.
  const pause = async (at, value) => {
    const { thread_id: id } = await call("POST", `/d/${at}/threads`, {});
    const { run_id: run } = await call("POST", `/d/${at}/threads/${id}/runs`, {
      assistant_id: "agent", input: { messages: [{ role: "user", content: "ask me" }] }, config: { configurable: { script: [{ event: "interrupt", data: [{ id: "asked", value }] }] } },
    });
    await call("GET", `/d/${at}/threads/${id}/runs/${run}/join`);
    return `/d/${at}/threads/${id}`;
  };
  const titled = (text) => page.waitForFunction((t) => document.title === t, text);
  await page.goto(`${base}/console/#/inbox`);
  await page.getByText("No thread waits for an answer.").waitFor();
  await titled("Inbox · Slipway");
  const asked = await pause(deployment, [{ action_request: { action: "send", args: {} }, config: {}, description: "May I send it?" }]);
  await pause(other, "Which one?");
  await titled("(2) Inbox · Slipway");
  seen.inbox = await page.locator("tbody tr td:first-child").allInnerTexts();
  seen.findings.push(...await audit(page, "inbox"));
  // The copied command of the first row answers with its thread.
  const copied = await page.getByRole("button", { name: "copy as curl" }).first().evaluate((b) => { b.click(); return b.dataset.command; });
  const found = JSON.parse(execFileSync("sh", ["-c", copied], { env: { ...process.env, KEY: key } }));
  seen.copied = found.some((t) => asked.endsWith(t.thread_id));
  await picture("inbox");
  await call("POST", `${asked}/runs`, { assistant_id: "agent", command: { resume: [{ type: "accept", args: null }] } });
  await titled("(1) Inbox · Slipway");
  await page.reload();
  await titled("(1) Inbox · Slipway");
  await page.getByRole("link", { name: "Which one?" }).click();
  await page.getByRole("heading", { name: "The agent waits for an answer" }).waitFor();
  await page.getByLabel("Answer, as text or JSON").fill("that one");
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByRole("link", { name: "Inbox", exact: true }).click();
  await page.getByText("No thread waits for an answer.").waitFor();
  await titled("Inbox · Slipway");
  await page.close();

  // Eight pages that can all be seen show what happens, though a browser has six connections.
  const pages = [];
  for (let i = 0; i < 8; i++) {
    const one = await browser.newPage();
    await one.goto(`${base}/console/#/`);
    await one.getByRole("link", { name, exact: true }).waitFor();
    pages.push(one);
  }
  const shown = async (made) => {
    await call("POST", "/v2/deployments", { name: made, source: "github", source_config: { repo_url: "file:///nowhere/at/all" }, source_revision_config: { repo_ref: "main" }, secrets: [] });
    for (const one of pages) await one.getByRole("link", { name: made }).waitFor();
  };
  await shown("made-before-eight-pages");
  await pages.shift().close(); // it followed the events for all
  await shown("made-before-seven-pages");
  for (const one of pages) await one.close();

  // A page whose connections are cut says so, and shows later what happened meanwhile.
  const sockets = new Set();
  const wire = net.createServer((near) => {
    const far = net.connect(new URL(base).port, new URL(base).hostname);
    for (const end of [near, far]) {
      sockets.add(end);
      end.on("error", () => {}); // the other end is gone
      end.on("close", () => { near.destroy(); far.destroy(); sockets.delete(end); });
    }
    near.pipe(far).pipe(near);
  });
  const listen = (port) => new Promise((resolve) => wire.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = wire.address();
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/console/#/sign-in/${(await call("POST", "/console/codes")).code}`);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();
  await page.getByRole("link", { name: "Inbox", exact: true }).click();
  await page.getByText("No thread waits for an answer.").waitFor();
  const closed = new Promise((resolve) => wire.close(resolve));
  for (const end of sockets) end.destroy();
  await closed;
  await page.getByText("The server does not answer.").waitFor();
  await pause(deployment, "Still there?");
  await listen(port);
  await titled("(1) Inbox · Slipway");
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  seen.missed = await page.locator("tbody tr td:first-child").allInnerTexts();
  await page.close();
  await new Promise((resolve) => { wire.close(resolve); for (const end of sockets) end.destroy(); });
  return seen;
});
