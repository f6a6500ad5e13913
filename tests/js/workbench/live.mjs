// A live run: said before, stopped while it goes on with the kernel answering, then to its end and opened.
import { told } from "./drive.mjs";

const OPENED = ".jp-OutputArea-output:has(.cz-live) .czt-lanes";

export async function live({ page, report, shot, sight }, bench) {
  const view = page.locator(".cz-live").first(), run = bench.getByRole("button", { name: "Run for real" });
  report.planned = await bench.locator(".cz-plan").innerText();
  await run.click();
  await page.waitForFunction(() => Number(document.querySelector(".cz-live").dataset.frames) >= 8);
  const from = Date.now(), frames = Number(await view.getAttribute("data-frames"));
  await page.waitForFunction((now) => Number(document.querySelector(".cz-live").dataset.frames) >= now + 8, frames);
  report.frames_per_s = 8000 / (Date.now() - from);
  report.kernel_round_trip_ms = await page.evaluate(async () => {
    const started = performance.now();
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    await kernel.requestExecute({ code: "1 + 1", silent: true }).done;
    return performance.now() - started;
  });
  await sight(view);
  await shot("live-1440");
  await view.getByRole("button", { name: "Stop" }).click();
  await page.waitForFunction(() => document.querySelector(".cz-live").dataset.state === "stopped");
  report.stopped = await view.locator("b").first().textContent();
  told(`live: ${report.frames_per_s.toFixed(1)} frames/s, kernel answers in ${report.kernel_round_trip_ms.toFixed(0)} ms, ${report.stopped}`);
  await run.click();
  await page.waitForFunction(() => ["done", "failed"].includes(document.querySelector(".cz-live").dataset.state), null, { timeout: 60000 });
  report.finished = await view.innerText();
  await sight(view);
  await shot("run-done-1440");
  told("a live run came to its end");
  await view.getByRole("button", { name: "Open its run" }).click();
  await page.locator(OPENED).first().waitFor();
  await sight(page.locator(OPENED).first());
  await shot("run-opened-1440");

  // Names are text: a state of a run with a hostile one is shown as it stands.
  await page.evaluate(async () => {
    const name = "<img src=x onerror=\"throw new Error('markup')\">";
    const state = { number: 9999, total: 1, outcomes: 0, counters: { [name]: 1 }, not_captured: [name], queues: [{ name, length: 1 }],
      actors: [{ name, partition: name, state: "waiting", kind: name, on: name, holders: [name], doing: "" }], locks: [{ name, holder: name, waiters: [name] }],
      devices: [{ index: 0, limit_bytes: 10, live_bytes: 5, buffers: [{ name, owner: name, partition: name, bytes: 5 }] }] };
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    await kernel.requestExecute({ code: `import json; bench.live.frame = json.loads(${JSON.stringify(JSON.stringify(state))})`, silent: true }).done;
  });
  await page.waitForFunction(() => document.querySelector(".cz-live").textContent.includes("<img"));
  report.markup = await view.locator("img").count();
  return view;
}
