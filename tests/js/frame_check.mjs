// Opens a page with a framed timeline in headless Chromium with the network cut; prints what the frame shows, as JSON.
//
//   node frame_check.mjs PAGE.html [--shot FILE.png]
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [file, , shot] = process.argv.slice(2);
const address = pathToFileURL(path.resolve(file)).href;
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, offline: true });
const page = await context.newPage();
const requests = [], errors = [];
page.on("request", (request) => {
  if (request.url() !== address && !/^(data|blob):/.test(request.url())) requests.push(request.url());
});
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
page.on("pageerror", (error) => errors.push(String(error)));
await page.goto(address);
const holder = page.locator("iframe.cz-timeline");
await holder.scrollIntoViewIfNeeded();
const frame = await (await holder.elementHandle()).contentFrame();
await frame.waitForSelector(".czt[data-spans]", { timeout: 30000 });
await frame.waitForSelector(".czt-table", { timeout: 30000 });
const seen = await frame.evaluate(() => ({
  spans: Number(document.querySelector(".czt").dataset.spans), text: document.body.innerText,
  elements: [...new Set([...document.querySelectorAll(".czt *")].map((one) => one.localName))].sort(),
  tall: document.documentElement.scrollHeight, view: document.documentElement.clientHeight,
}));
if (shot) await page.screenshot({ path: shot, fullPage: true });
console.log(JSON.stringify({ ...seen, requests, errors, title: await page.title() }));
await browser.close();
