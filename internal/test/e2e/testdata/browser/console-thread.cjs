// Is a person who reads how runs went, answers the questions of a graph, and edits the state of a
// thread.
// Arguments: the server's address, an API key, the id of a deployment whose agent follows the
// script of each run, and a directory for pictures or "".
const { audit, client, tell } = require("./story.cjs");
const path = require("node:path");

const [base, key, deployment, pictures] = process.argv.slice(2);
const call = client(base, key);
const agent = `/d/${deployment}`;

// begin starts a run that follows a script, on a new thread; without a script the agent says "ok".
async function begin(...script) {
  const { thread_id: thread } = await call("POST", `${agent}/threads`, {});
  const { run_id: run } = await call("POST", `${agent}/threads/${thread}/runs`, {
    assistant_id: "agent", input: { messages: [{ role: "user", content: "planted question" }] }, config: script.length ? { configurable: { script } } : {},
    stream_mode: ["messages-tuple", "updates", "values"],
  });
  return { thread, run, at: `${agent}/threads/${thread}` };
}

// paused is a thread whose graph asks a question.
async function paused(value) {
  const { thread, run, at } = await begin({ event: "interrupt", data: [{ id: "asked", value }] });
  await call("GET", `${at}/runs/${run}/join`);
  return { thread, at };
}

// answered returns the answer that the newest run of a thread brought.
const answered = async (at) => (await call("GET", `${at}/runs?limit=1`))[0].kwargs.command.resume;

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = { findings: [], complaints: [] };
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.complaints.push(m.text()));
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  const go = (at) => page.goto(`${base}/console/#/deployments/${deployment}/threads/${at}`);
  const picture = (name) => pictures && page.screenshot({ path: path.join(pictures, name + ".png"), fullPage: true });
  const followed = new Set(); // the paths of the streams that were followed
  page.on("request", (r) => r.headers().accept === "text/event-stream" && followed.add(new URL(r.url()).pathname));
  const parts = () => page.locator("tbody tr td:first-child").allInnerTexts();
  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();

  // A run that failed says why, and how far it came.
  const failed = await begin({ event: "updates", data: { model: { messages: [{ type: "ai", id: "m", content: "Hello" }] } } }, { error: "planted cause\nplanted line" });
  await go(failed.thread);
  await page.getByText("Runs", { exact: true }).click();
  await page.getByRole("link", { name: failed.run }).click();
  await page.getByText("GraphError: planted cause").waitFor();
  seen.failed = await parts();
  seen.evidence = await page.locator("pre.tail").innerText();
  seen.findings.push(...await audit(page, "run"));
  await picture("run");

  // It lasted until it had ended, also if its last part had ended before.
  await page.route("**/explanation", async (route) => {
    const response = await route.fetch(), found = await response.json();
    await route.fulfill({ response, json: { ...found, ended_at: new Date(Date.parse(found.created_at) + 83000).toISOString() } });
  }, { times: 1 });
  await page.reload();
  seen.took = await page.locator("dt", { hasText: "Took" }).locator("+ dd").innerText();

  // A run that goes on is shown as it goes on, and can be stopped. Its page follows that run alone.
  const going = await begin({ event: "messages", data: [{ type: "AIMessageChunk", id: "m", content: "Hel" }, { graph_node: "agent" }] }, { hold: true });
  followed.clear();
  await go(`${going.thread}/runs/${going.run}`);
  await page.getByText("until the first output").waitFor();
  seen.going = await parts();
  // Its graph is drawn; the node of its last event is marked until the run ends.
  await page.getByText("At work: agent").waitFor();
  seen.atWork = await page.locator(".node.active text").allTextContents();
  seen.findings.push(...await audit(page, "run that goes on"));
  await picture("graph");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("The run was cancelled.").waitFor();
  seen.stopped = await parts();
  seen.followed = [...followed].filter((at) => at.startsWith(going.at)).map((at) => at.replace(going.at, "").replace(going.run, "RUN"));
  seen.nodes = [await page.locator(".node").count(), await page.locator(".node.active").count()];

  // The question of an inbox is answered with changed arguments, after arguments that cannot be.
  const inbox = await paused([{ action_request: { action: "send", args: { to: "ann" } }, config: { allow_ignore: false }, description: "May I send it?" }]);
  await go(inbox.thread);
  await page.getByText("May I send it?").waitFor();
  seen.buttons = await page.locator(".question button").allTextContents();
  await page.getByText("Edit", { exact: true }).click();
  const args = page.getByLabel("Arguments, as JSON");
  seen.args = JSON.parse(await args.inputValue());
  await args.fill("to bob");
  await page.getByRole("button", { name: "Accept as edited" }).click();
  await page.getByText("The arguments must be a JSON object.").waitFor();
  seen.findings.push(...await audit(page, "question"));
  await picture("question");
  await args.fill('{"to": "bob"}');
  await page.getByRole("button", { name: "Accept as edited" }).click();
  await page.getByText("May I send it?").waitFor({ state: "detached" });
  seen.inbox = await answered(inbox.at);

  // So are the questions of the framework's middleware, all of them with one answer.
  const review = await paused({
    action_requests: [{ name: "send", args: { to: "ann" }, description: "May I send it?" }, { name: "erase", args: {} }],
    review_configs: [{ action_name: "send", allowed_decisions: ["approve", "edit", "reject"] }, { action_name: "erase", allowed_decisions: ["approve", "reject"] }],
  });
  await go(review.thread);
  const send = page.getByRole("group", { name: "send" }), erase = page.getByRole("group", { name: "erase" });
  await send.getByRole("combobox").selectOption("edit");
  await send.getByLabel("Arguments").fill('{"to": "bob"}');
  seen.decisions = await erase.getByRole("option").allInnerTexts();
  await erase.getByRole("combobox").selectOption("reject");
  await erase.getByLabel("Message").fill("keep it");
  seen.findings.push(...await audit(page, "review"));
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByText("May I send it?").waitFor({ state: "detached" });
  seen.review = await answered(review.at);

  // A question may have no rules about its answers.
  const asked = { action: "send", name: "send", args: {} };
  const bare = [
    { action_request: asked, config: null, description: "May I send it to all?" },
    { action_requests: [{ ...asked, description: "May I send it again?" }], review_configs: null },
  ];
  for (const question of bare) {
    await go((await paused(question)).thread);
    await page.getByText(question.description ?? question.action_requests[0].description).waitFor();
  }

  // The state is edited: one message is another, and one is gone. What was edited stays as it was.
  const edited = await begin();
  await call("GET", `${edited.at}/runs/${edited.run}/join`);
  const before = await call("GET", `${edited.at}/history`);
  seen.before = before[0].values.messages.map((m) => m.content);
  await go(edited.thread);
  await page.getByText("History", { exact: true }).click();
  const edit = async (change, button) => {
    await page.getByRole("button", { name: "edit" }).first().click();
    const box = page.getByLabel("State at step");
    await box.fill(change(await box.inputValue()));
    await page.getByRole("button", { name: button, exact: true }).click();
  };
  const reordered = (values) => ({ ...values, messages: values.messages.toReversed() });
  const refused = [[(values) => values, "Nothing is changed."], [() => ({}), "These are missing: messages."], [reordered, "Nothing is changed."]];
  for (const [change, why] of refused) {
    await edit((text) => JSON.stringify(change(JSON.parse(text))), "Save");
    await page.getByText(why).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
  }
  await edit((text) => {
    const values = JSON.parse(text);
    return JSON.stringify({ ...values, messages: [{ ...values.messages[0], content: "edited question" }] });
  }, "Save");
  await page.locator(".message").getByText("edited question").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".message").length === 1);
  await page.getByRole("cell", { name: "update", exact: true }).waitFor();
  const after = await call("GET", `${edited.at}/history`);
  seen.after = after[0].values.messages.map((m) => m.content);
  seen.kept = JSON.stringify(after.slice(1)) === JSON.stringify(before);
  seen.findings.push(...await audit(page, "history"));
  await edit((text) => text.replace("edited question", "edited again"), "Save and run on");
  await page.locator(".message.ai").waitFor();
  await page.waitForFunction(() => document.querySelector(".composer button").textContent === "Send");
  seen.ranOn = (await call("GET", `${edited.at}/state`)).values.messages.map((m) => m.content);

  // In dark, and in a narrow window.
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 800 });
  seen.overflow = [];
  for (const at of [edited.thread, `${failed.thread}/runs/${failed.run}`]) {
    await go(at);
    await page.locator(".head .badge").waitFor();
    seen.findings.push(...await audit(page, "narrow " + at));
    seen.overflow.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
  }
  return seen;
});
