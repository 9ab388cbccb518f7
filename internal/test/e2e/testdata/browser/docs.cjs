// Is a person who reads the documentation of the interface, in the light and in the dark.
// Argument: the server's address.
const { audit, tell } = require("./story.cjs");

const [base] = process.argv.slice(2);

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = { findings: [], complaints: [], turned: [] };
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.complaints.push(m.text()));
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.goto(base + "/docs");
    const operation = page.locator(".opblock").first();
    await operation.locator(".opblock-summary-control").click();
    await operation.locator(".opblock-body").waitFor();
    seen.turned.push(await page.evaluate(() => getComputedStyle(document.documentElement).filter !== "none"));
    // The library puts the link to an operation into the button that opens the operation.
    seen.findings.push(...(await audit(page, colorScheme)).filter((finding) => !finding.includes("nested-interactive")));
  }
  return seen;
});
