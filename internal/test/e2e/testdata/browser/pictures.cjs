// Makes the pictures of the README: a deployment's page, and an answer that a new message
// interrupts, in light and dark.
// Arguments: the server's address, an API key, the deployment's id, and the directory for the
// pictures.
const { client, tell } = require("./story.cjs");
const fs = require("node:fs");
const path = require("node:path");
const { PNG } = require("pngjs");
const { GIFEncoder, quantize, applyPalette } = require("gifenc");

const [base, key, deployment, directory] = process.argv.slice(2);
const call = client(base, key);
const frameTime = 150; // in ms
const lastFrame = 4000;

// record takes pictures of the page while the action goes on.
async function record(page, action) {
  const frames = [];
  const frame = async () => frames.push({ at: Date.now(), ...PNG.sync.read(await page.screenshot()) });
  let over = false;
  const done = action().finally(() => { over = true; });
  while (!over) {
    await frame();
    await page.waitForTimeout(frameTime);
  }
  await done;
  await frame();
  return frames;
}

// animation encodes frames as a GIF. A frame has only the pixels that differ from the frame before.
function animation(frames) {
  const gif = GIFEncoder();
  const colors = quantize(Buffer.concat([frames[0].data, frames.at(-1).data]), 255);
  const transparent = colors.length;
  let before;
  frames.forEach(({ at, data, width, height }, i) => {
    const pixels = applyPalette(data, colors), shown = Uint8Array.from(pixels);
    if (before) pixels.forEach((color, p) => { if (color === before[p]) shown[p] = transparent; });
    const delay = i + 1 < frames.length ? frames[i + 1].at - at : lastFrame;
    const palette = before ? undefined : [...colors, [0, 0, 0]];
    gif.writeFrame(shown, width, height, { palette, delay, dispose: 1, ...(before && { transparent: true, transparentIndex: transparent }) });
    before = pixels;
  });
  gif.finish();
  return gif.bytes();
}

// interrupt types a question, and another while the answer is being written.
async function interrupt(page) {
  const box = page.getByLabel("Message", { exact: true });
  await box.pressSequentially("what is the weather in sf?", { delay: 25 });
  await box.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".message.ai .text")].some((p) => p.textContent.split(" ").length > 5));
  await box.pressSequentially("sorry, in berlin?", { delay: 25 });
  await box.press("Enter");
  await page.getByText("interrupted here").waitFor();
  await page.waitForFunction(() => document.querySelector(".composer button").textContent === "Send");
}

tell(async (browser) => {
  const page = await browser.newPage();
  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("table").first().waitFor();
  const { assistant_id: slow } = await call("POST", `/d/${deployment}/assistants`, {
    graph_id: "agent", name: "slow", config: { configurable: { token_delay_ms: 120 } },
  });
  const sizes = {};
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const save = (name, content) => {
      sizes[`${name}-${colorScheme}`] = content.length;
      const [stem, ending] = name.split(".");
      fs.writeFileSync(path.join(directory, `${stem}-${colorScheme}.${ending}`), content);
    };
    await page.goto(`${base}/console/#/deployments/${deployment}`);
    await page.locator(".revisions strong.mark").waitFor();
    save("deployment.png", await page.screenshot());
    await page.goto(`${base}/console/#/deployments/${deployment}/threads`);
    await page.getByRole("button", { name: "New thread" }).click();
    await page.getByLabel("Assistant").selectOption(slow);
    save("interrupt.gif", animation(await record(page, () => interrupt(page))));
  }
  return sizes;
}, { viewport: { width: 1120, height: 600 } });
