// The parts that the stories of this directory share: a client of the API, an audit of a page, and
// a browser for one story.
const { chromium } = require("playwright-core");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// client returns a function that calls the API with a key, or with another key if one is given.
exports.client = (base, key) => async (method, at, body, as = key) => {
  const answer = await fetch(base + at, {
    method,
    headers: { "X-Api-Key": as, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};

// audit returns what axe finds serious or critical in the page.
exports.audit = async (page, name) => {
  await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${name}: ${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`);
};

// tell opens a browser with an empty profile, and prints what the story returns as JSON. The errors
// of a page are printed when they happen, so that they come before what follows from them. A story
// that fails says what its last page shows, unless that page hangs.
exports.tell = async (story, options = {}) => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "slipway-browser-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    viewport: { width: 1280, height: 800 },
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ...options,
  });
  browser.setDefaultTimeout(60000); // a machine that runs other tests may be slow
  browser.on("weberror", (event) => console.error("The page failed:", event.error().stack));
  try {
    console.log(JSON.stringify(await story(browser)));
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
    const [page] = browser.pages().slice(-1);
    console.error(page?.url(), await page?.locator("body").innerText({ timeout: 5000 }).catch(() => "The page hangs."));
  } finally {
    await browser.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
};
