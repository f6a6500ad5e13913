// A million spans in a notebook: from running the cell to the first picture, to the whole one, and from the wheel to a zoom.
import { quantile, told } from "./drive.mjs";

const ROUNDS = 36;

export async function large({ page, report, open, command, execute, shot }) {
  await open("large.ipynb");
  await execute("import cuzklab.workbench.explorer"); // a session imports once
  const first = "document.querySelector('.czt')?.dataset.spans", begun = Date.now();
  await command("notebook:run-all-cells");
  await page.waitForFunction(first);
  const shown = Date.now() - begun;
  await page.waitForFunction(`Number(${first}) > 900000`);
  const whole = Date.now() - begun;
  await page.locator(".czt-table").first().waitFor();
  const zooms = await page.evaluate(async (rounds) => {
    const lanes = document.querySelector(".czt-lanes"), box = lanes.getBoundingClientRect();
    const times = [];
    for (let round = 0; round < rounds; round += 1) {
      const started = performance.now();
      lanes.dispatchEvent(new WheelEvent("wheel", {
        deltaY: round % 12 < 6 ? -120 : 120, ctrlKey: true, bubbles: true, cancelable: true, clientX: box.left + 700, clientY: box.top + 60,
      }));
      await new Promise((drawn) => requestAnimationFrame(() => drawn())); // the view asked for its frame first
      times.push(performance.now() - started);
      await new Promise((settled) => setTimeout(settled, 120));
    }
    return times;
  }, ROUNDS);
  report.large = { first_ms: shown, whole_ms: whole, zoom_p50_ms: quantile(zooms, 0.5), zoom_p90_ms: quantile(zooms, 0.9), zoom_most_ms: Math.max(...zooms) };
  await shot("large-1440");
  told(`a million spans: first picture ${(shown / 1000).toFixed(1)} s after the cell was run, whole after ${(whole / 1000).toFixed(1)} s; ` +
    `zoom p50 ${report.large.zoom_p50_ms.toFixed(0)} ms, p90 ${report.large.zoom_p90_ms.toFixed(0)} ms, slowest of ${ROUNDS} ${report.large.zoom_most_ms.toFixed(0)} ms`);
}
