// Opens a page with sampled stacks in headless Chromium with the network cut; prints what the frame shows, as JSON.
//
//   node stacks_check.mjs PAGE.html [--shot FILE.png]
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [file, , shot] = process.argv.slice(2);
const address = pathToFileURL(path.resolve(file)).href;
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, offline: true });
const page = await context.newPage();
const requests = [], errors = [];
page.on("request", (request) => {
  if (request.url() !== address && !request.url().startsWith("data:")) requests.push(request.url());
});
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
page.on("pageerror", (error) => errors.push(String(error)));
await page.goto(address);
const stacks = page.frames().find((frame) => frame !== page.mainFrame());
await stacks.waitForFunction(() => /Samples/.test(document.body.innerText), null, { timeout: 30000 });
const text = await stacks.evaluate(() => document.body.innerText);
const stages = await stacks.evaluate(() => [...document.querySelectorAll("#choice option")].map((it) => it.value));
await stacks.selectOption("#choice", { index: stages.length - 1 });
const other = await stacks.evaluate(() => document.body.innerText);
const injected = await stacks.evaluate(() => document.querySelectorAll("img[src=x], img[onerror]").length);
if (shot) await page.screenshot({ path: shot });
console.log(JSON.stringify({ requests, errors, text, other, stages, injected }));
await browser.close();
