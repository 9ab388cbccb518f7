// Is an application and its user: asks for a token, goes to the provider in a browser, decides there, and waits for what comes of it.
// Arguments: the server's address, a key, the user, what the user decides ("Allow" or "Deny"), a file for a picture of the last page.
const { chromium } = require("playwright-core");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const [base, key, user, decision, picture] = process.argv.slice(2);

async function call(method, at, body) {
  const answer = await fetch(base + at, {
    method,
    headers: { "X-Api-Key": key, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`${method} ${at}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function main() {
  const asked = await call("POST", "/v2/auth/authenticate", { provider: "calendar", scopes: ["read"], user_id: user });
  const waited = call("GET", `/v2/auth/wait/${asked.auth_id}?timeout=60`);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "slipway-browser-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await browser.newPage();
    const complaints = [];
    // The provider's page has no icon; ours asks for none.
    const counts = (message) => ["error", "warning"].includes(message.type()) && !message.location().url.endsWith("/favicon.ico");
    page.on("console", (message) => counts(message) && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(asked.url);
    const asks = await page.locator("h1").innerText();
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(base + "/v2/auth/callback/")),
      page.getByRole("button", { name: decision }).click(),
    ]);
    await page.waitForLoadState();
    const shown = {
      asks,
      status: answer.status(),
      address: page.url(),
      title: await page.title(),
      text: await page.locator("main").innerText(),
      html: await page.content(),
      // The style applies only if the policy names it rightly, and a script that is written into the page must not run.
      border: await page.locator("main").evaluate((main) => getComputedStyle(main).borderTopStyle),
      ran: await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        return window.ran === true;
      }),
      complaints,
    };
    if (picture) await page.screenshot({ path: picture });
    console.log(JSON.stringify({ ...shown, waited: await waited }));
  } finally {
    await browser.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
