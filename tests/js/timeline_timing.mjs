// How long the canvas takes with a large picture, in headless Chromium: prints milliseconds as JSON.
//
//   node timeline_timing.mjs PAGE.html [ROUNDS]
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [file, rounds = "24"] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(pathToFileURL(path.resolve(file)).href);
await page.waitForSelector("#timeline[data-shown-at]", { timeout: 60000 });
const first = await page.evaluate(() => ({ ...document.getElementById("timeline").dataset }));
const zooms = await page.evaluate(async (rounds) => {
  const lanes = document.querySelector(".czt-lanes"), box = lanes.getBoundingClientRect(), host = lanes.closest(".czt");
  const frame = () => new Promise((drawn) => requestAnimationFrame(() => drawn()));
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const deltaY = round % 12 < 6 ? -120 : 120; // in, and out again
    const begun = performance.now();
    lanes.dispatchEvent(new WheelEvent("wheel", {
      deltaY, ctrlKey: true, bubbles: true, cancelable: true, clientX: box.left + 700, clientY: box.top + 60,
    }));
    await frame(); // the view asked for its frame first, so that it has drawn by now
    times.push({ toPicture: performance.now() - begun, drawing: Number(host.dataset.drawMs) });
    await new Promise((settled) => setTimeout(settled, 250));
  }
  return times;
}, Number(rounds));
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
console.log(JSON.stringify({
  spans: Number(first.spans), pageToPicture: Number(first.shownAt), bytesToPicture: Number(first.firstMs),
  zoom: median(zooms.map((zoom) => zoom.toPicture)), slowestZoom: Math.max(...zooms.map((zoom) => zoom.toPicture)),
  drawing: median(zooms.map((zoom) => zoom.drawing)), rounds: zooms.length,
}));
await browser.close();
