// Drives the workbench in a real JupyterLab, in headless Chromium, as a person would, and reports what it saw as JSON.
//
//   node workbench_check.mjs URL SHOTS_FOLDER
//
// URL is what `cuzklab lab` prints. playwright-core is taken from $CUZKLAB_NODE_MODULES or from the nearest node_modules.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
function nodeModules() {
  if (process.env.CUZKLAB_NODE_MODULES) return process.env.CUZKLAB_NODE_MODULES;
  for (let folder = here; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, "node_modules", "playwright-core"))) return path.join(folder, "node_modules");
    if (folder === path.dirname(folder)) throw new Error("playwright-core not found; set CUZKLAB_NODE_MODULES");
  }
}
const { chromium } = createRequire(path.join(nodeModules(), "x.js"))("playwright-core");
const [url, shots] = process.argv.slice(2);
const began = Date.now();
const told = (words) => process.stderr.write(`${((Date.now() - began) / 1000).toFixed(1)} s  ${words}\n`);

// What JupyterLab itself is known to print as an error, by exact text, and why. Nothing else is forgiven.
const KNOWN = [];

const OPENED = ".jp-OutputArea-output:has(.cz-live) .czt-lanes";
const report = { errors: [], latency_ms: [], foreign: [] };
const browser = await chromium.launch({
  executablePath: process.env.CUZKLAB_CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(45000);
page.on("pageerror", (error) => report.errors.push(`page: ${error.message}`));
page.on("console", (message) => {
  if (message.type() === "error" && !KNOWN.includes(message.text())) report.errors.push(`console: ${message.text()} (${message.location().url})`);
});
page.on("request", (request) => {
  if (!["127.0.0.1", ""].includes(new URL(request.url()).hostname)) report.foreign.push(request.url());
});
const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
const sized = async (width, height) => { await page.setViewportSize({ width, height }); await page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))); };
const sight = (locator) => locator.evaluate((one) => one.scrollIntoView({ block: "start" }));
const command = (name) => page.evaluate(async (one) => { await window.jupyterapp.commands.execute(one); }, name);

async function open(address) {
  await page.goto(address);
  await page.waitForSelector(".jp-Notebook .jp-Cell");
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext);
}

try {
  await open(`${url}&reset`);
  await page.waitForFunction(() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === "idle");
  told("JupyterLab is open");
  await command("notebook:run-all-cells");
  const bench = page.locator(".jp-OutputArea .cz-design").first();
  await bench.locator(".cz-card").first().waitFor();
  told("the bench has drawn");
  await bench.locator(".cz-check").first().waitFor();
  await sight(bench);
  await shot("bench-1440");

  // Sliders: one move at a time, each measured from the input event to the drawn picture.
  const drawn = async (act) => {
    const before = Number(await bench.getAttribute("data-drawn"));
    await act();
    await page.waitForFunction(([number]) => { const one = document.querySelector(".cz-design"); return Number(one.dataset.drawn) > number && one.dataset.state === "drawn"; }, [before]);
    report.latency_ms.push(Number(await bench.getAttribute("data-latency")));
  };
  const slide = (name, value) => bench.locator(`input[data-knob="${name}"]`).evaluate((slider, now) => {
    slider.value = now;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, value);
  await bench.getByRole("button", { name: "Pin as baseline" }).click();
  for (const [name, value] of [["gw", 3], ["gw", 4], ["pw", 14], ["gt", 64], ["j", 3], ["vram_gib", 24], ["link_gb_per_s", 26], ["vram_gib", 16], ["gw", 2], ["pw", 10]])
    await drawn(() => slide(name, value));
  const gw = bench.locator('input[data-knob="gw"]');
  await gw.focus();
  await drawn(() => page.keyboard.press("ArrowRight")); // by keyboard alone
  // A burst must end at the last value and be answered by few pictures.
  const first = Number(await bench.getAttribute("data-drawn"));
  await bench.locator('input[data-knob="pw"]').evaluate((slider) => {
    for (let value = 1; value <= 24; value += 1) { slider.value = value; slider.dispatchEvent(new Event("input", { bubbles: true })); }
  });
  await page.waitForFunction(() => { const one = document.querySelector(".cz-design"); return one.dataset.state === "drawn" && one.textContent.includes("pw 10 → 24"); });
  report.pictures_for_burst = Number(await bench.getAttribute("data-drawn")) - first;
  told(`sliders: ${report.latency_ms.map((one) => one.toFixed(0)).join(" ")} ms`);

  // A design that the checker refuses, with its schedule.
  await bench.locator("select").first().selectOption("phase10_nested");
  await page.waitForFunction(() => document.querySelector('.cz-design[data-policy="phase10_nested"] .cz-check.cz-bad'));
  report.refusal = await bench.locator(".cz-check").first().textContent();
  report.schedule_rows = await bench.locator("details[open] tbody tr").count();
  await shot("refused-1440");
  await bench.locator("select").first().selectOption("phase9");
  await page.waitForFunction(() => document.querySelector('.cz-design[data-policy="phase9"] .cz-check.cz-good'));

  // A wait: by key, then by click.
  await bench.locator("canvas").first().focus();
  await page.keyboard.press("n");
  report.wait_by_key = await bench.locator(".cz-chosen").textContent();
  await page.keyboard.press("0");
  const place = await bench.locator("canvas").first().evaluate(({ chart }) => {
    const { lane, start, length } = chart.data.waits, longest = length.indexOf(Math.max(...length));
    return { x: chart.x(start[longest] + length[longest] / 2), y: chart.rows.slice(0, lane[longest]).reduce((sum, one) => sum + one, 2) + 11, words: chart.sentence(longest) };
  });
  await bench.locator("canvas").first().click({ position: place });
  report.wait_by_click = await bench.locator(".cz-chosen").textContent();
  report.longest_wait = place.words;
  told(`wait: ${report.wait_by_key}`);

  // A live run: stopped while it goes on, with the kernel answering meanwhile.
  const live = page.locator(".cz-live").first();
  const run = bench.getByRole("button", { name: "Run for real" });
  await run.click();
  await page.waitForFunction(() => Number(document.querySelector(".cz-live").dataset.frames) >= 8);
  const from = Date.now(), frames = Number(await live.getAttribute("data-frames"));
  await page.waitForFunction((now) => Number(document.querySelector(".cz-live").dataset.frames) >= now + 8, frames);
  report.frames_per_s = 8000 / (Date.now() - from);
  report.kernel_round_trip_ms = await page.evaluate(async () => {
    const started = performance.now();
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    await kernel.requestExecute({ code: "1 + 1", silent: true }).done;
    return performance.now() - started;
  });
  await sight(live);
  await shot("live-1440");
  await live.getByRole("button", { name: "Stop" }).click();
  await page.waitForFunction(() => document.querySelector(".cz-live").dataset.state === "stopped");
  report.stopped = await live.locator("b").first().textContent();
  told(`live: ${report.frames_per_s.toFixed(1)} frames/s, kernel answers in ${report.kernel_round_trip_ms.toFixed(0)} ms, ${report.stopped}`);
  await run.click();
  await page.waitForFunction(() => ["done", "failed"].includes(document.querySelector(".cz-live").dataset.state), null, { timeout: 60000 });
  report.finished = await live.innerText();
  await sight(live);
  await shot("run-done-1440");
  told("a live run came to its end");
  await live.getByRole("button", { name: "Open its run" }).click();
  await page.locator(OPENED).first().waitFor();
  await sight(page.locator(OPENED).first());
  await shot("run-opened-1440");
  told("its run is open");

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
  report.markup = await live.locator("img").count();

  // The author's bench: an error at its line, then none, then what the checker finds, at its line.
  const author = page.locator(".cz-author").first(), editor = author.locator("textarea");
  const good = await editor.inputValue();
  await editor.fill(good.replace("yield Free(d_bc)", "yield Fre(d_bc)"));
  await page.waitForFunction(() => document.querySelector(".cz-author .cz-line-error"));
  report.author_error = await author.locator(".cz-marks li").first().textContent();
  await sight(author);
  await shot("author-error-1440");
  await editor.fill(good.replace("    yield Release(gpu.lock)\n", ""));
  await page.waitForFunction(() => document.querySelector(".cz-author .cz-line-finding"));
  report.author_finding = await author.locator(".cz-marks li").first().textContent();
  await shot("author-finding-1440");
  await editor.fill(good);
  await page.waitForFunction(() => document.querySelector(".cz-author").dataset.marks === "0");
  told(`author: ${report.author_error} / ${report.author_finding}`);

  // The kernel bench: a slip is shown with the compiler's message, a change is timed, the roof is drawn.
  const kernels = page.locator(".cz-kernels").first(), source = kernels.locator("textarea");
  await kernels.locator("input[type=number]").first().fill("8");
  await kernels.locator("input[type=number]").nth(1).fill("3");
  const shipped = await source.inputValue();
  await source.fill(shipped.replaceAll("capacity = 1024", "capacity = 256"));
  await kernels.getByRole("button", { name: "Build, test, time" }).click();
  await kernels.locator("table tbody tr").first().waitFor({ timeout: 90000 });
  report.kernel_rows = await kernels.locator("table tbody tr").count();
  report.kernel_verdict = await kernels.locator(".cz-verdict").first().textContent();
  await page.waitForFunction(() => document.querySelector(".cz-kernels").dataset.state === "idle");
  await kernels.getByRole("button", { name: "Roofline" }).click();
  await page.waitForFunction(() => document.querySelector(".cz-kernels").innerText.includes("of the roof"));
  await sight(kernels);
  await shot("kernels-1440");
  told(`kernels: ${report.kernel_verdict}`);

  await sized(1024, 768);
  for (const [name, one] of [["bench", bench], ["live", live], ["author", author], ["kernels", kernels]]) {
    await sight(one);
    await shot(`${name}-1024`);
  }
  told("pictures at 1024×768 are taken");
  await command("launcher:create");
  await page.locator(".jp-LauncherCard", { hasText: "cuzklab: workbench" }).first().waitFor();
  report.launcher = await page.locator(".jp-LauncherCard-label").allInnerTexts();
  await shot("launcher-1024");
  await page.locator(".lm-TabBar-tab", { hasText: "workbench.ipynb" }).first().click();
  await sized(1440, 900);

  // Save, leave, end the kernel, and open the notebook anew: the last state is there, with no cell run.
  await command("docmanager:save");
  await page.waitForFunction(() => !window.jupyterapp.shell.currentWidget.model.dirty);
  const { origin, searchParams } = new URL(url), headers = { Authorization: `token ${searchParams.get("token")}` };
  const saved = await (await fetch(`${origin}/api/contents/workbench.ipynb`, { headers })).json();
  const states = Object.values(saved.content.metadata.widgets?.["application/vnd.jupyter.widget-state+json"]?.state ?? {});
  report.saved = states.map((one) => one.state._anywidget_id?.split(".").pop()).filter(Boolean);
  await page.goto("about:blank");
  for (const { id } of await (await fetch(`${origin}/api/sessions`, { headers })).json())
    await fetch(`${origin}/api/sessions/${id}`, { method: "DELETE", headers });
  told("saved, kernel ended");
  await open(`${url}&reset`);
  const again = page.locator(".jp-OutputArea .cz-design").first();
  await again.locator(".cz-card").first().waitFor();
  report.reopened = { policy: await again.locator("select").first().inputValue(), pw: await again.locator('input[data-knob="pw"]').inputValue(), cards: await again.locator(".cz-card").count() };
  await sight(again);
  await shot("reopened-1440");
  told("reopened");
} catch (error) {
  report.failure = error.message;
  await shot("failure");
} finally {
  console.log(JSON.stringify(report));
  await browser.close();
}
