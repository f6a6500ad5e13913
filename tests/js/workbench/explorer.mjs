// The trace explorer: a click on a wait, a stretch and what it went into, search, memory on the same axis, export.
import { told } from "./drive.mjs";

const GUTTER = 140;

export async function explorer({ page, report, get, shot, sight, execute }) {
  const view = page.locator(".czt:not(.jp-OutputArea-output:has(.cz-live) .czt)").first(), lanes = view.locator(".czt-lanes"), tables = view.locator(".czt-table");
  await page.waitForFunction(() => [...document.querySelectorAll(".czt")].every((one) => one.dataset.spans));
  await sight(view);

  // Where the longest wait for a lock is drawn: told by the kernel, which knows the run, not by the view.
  const wait = JSON.parse(await execute(`
import json
from cuzklab.analysis import frames
from cuzklab.trace import load_run
_bars = frames.timeline(phase9)
_waits = _bars[_bars["category"] == "wait:lock"]
_one = _waits.loc[(_waits["end_ns"] - _waits["start_ns"]).idxmax()]
_from, _to = frames.window(phase9)
print(json.dumps({"worker": _one["worker"], "lock": _one["label"], "start": int(_one["start_ns"]) - _from, "end": int(_one["end_ns"]) - _from, "length": _to - _from}))`));
  const box = await lanes.boundingBox();
  const wide = await lanes.evaluate((one) => one.clientWidth);
  const x = (time) => box.x + GUTTER + (time / wait.length) * (wide - GUTTER);
  const middle = wait.start + 0.15 * (wait.end - wait.start);
  // The row: down the lane of its worker until the pointer's tip names the wait.
  const tip = view.locator(".czt-tip");
  let y = 0;
  for (let down = 24; down < box.height && !y; down += 6) {
    await page.mouse.move(x(middle), box.y + down);
    const said = (await tip.isHidden()) ? "" : await tip.innerText();
    if (said.includes("waits for a lock") && said.includes(wait.worker)) y = box.y + down;
  }
  report.wait_is_drawn = y > 0;
  await page.mouse.click(x(middle), y);
  await page.waitForFunction(() => document.querySelector(".czt-table caption")?.innerText.includes("Who waits for whom") ||
    [...document.querySelectorAll(".czt-table caption")].some((one) => one.innerText.includes("Who would have run")));
  report.root_blocker = await tables.nth(0).locator("caption").innerText();
  report.would_have_run = await tables.nth(1).innerText();
  report.expected_wait = wait;
  await shot("explorer-wait-1440");
  told(`explorer: ${report.root_blocker}`);

  // A stretch: dragged, attributed, shaded on the lanes and on the memory below them.
  const [from, to] = [wait.length * 0.4, wait.length * 0.6];
  await page.mouse.move(x(from), y);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), y, { steps: 3 });
  await page.mouse.move(x(to), y);
  await page.mouse.up();
  await page.waitForFunction(() => [...document.querySelectorAll(".czt-table caption")].some((one) => one.innerText.startsWith("Device time,")));
  report.attribution = await tables.nth(0).innerText();
  report.stretch_tables = await tables.locator("caption").allInnerTexts();
  const memory = view.locator("canvas").last(), below = await memory.boundingBox();
  report.memory_axis = { left: below.x, width: below.width, lanes_left: box.x, lanes_width: wide };
  // The memory map is on the same axis: pointing at it tells the memory of that moment, and what is selected is shaded.
  await page.mouse.move(x(middle), below.y + below.height / 2);
  report.memory_said = await tip.innerText();
  report.memory_at = await execute(`
from cuzklab.analysis import vram
_steps = vram.steps(phase9)
_before = _steps[_steps["time_ns"] - _from <= ${Math.round(middle)}]
print(int(_before["live_bytes"].iloc[-1]) if len(_before) else 0)`);
  await shot("explorer-stretch-1440");

  // Export of the selection: the file is beside the notebook.
  await view.getByRole("button", { name: /^export/ }).click();
  await page.waitForFunction(() => [...document.querySelectorAll(".czt-table caption")].some((one) => one.innerText.includes("events written to")));
  report.export_said = await tables.nth(0).innerText();
  const files = (await get("contents")).content.map(({ name }) => name).filter((name) => name.endsWith(".perfetto.json"));
  report.exported = files;

  // Search: counted, and left again by key.
  await lanes.focus();
  await page.keyboard.press("/");
  await page.keyboard.type("h_msm");
  await page.waitForFunction(() => /found/.test(document.querySelector(".czt-found").innerText) || [...document.querySelectorAll(".czt-found")].some((one) => /found/.test(one.innerText)));
  report.found = await view.locator(".czt-found").innerText();
  report.expected_found = await execute(`
_names = _bars[["label", "worker", "partition", "lane"]].astype(str).apply(lambda column: column.str.contains("h_msm", case=False, regex=False)).any(axis=1)
print(int(_names.sum()))`);
  await page.keyboard.press("Enter");
  report.match = await view.locator(".czt-status").innerText();
  await shot("explorer-search-1440");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  told(`explorer: ${report.found} of h_msm, ${report.export_said}`);
  return view;
}

// A run whose names try to become markup, in a notebook of its own: every name is shown as it stands.
export async function nasty({ page, report, open, command, shot }) {
  await open("nasty.ipynb");
  await command("notebook:run-all-cells");
  const view = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .czt").first();
  await page.waitForFunction(() => document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden) .czt")?.dataset.spans);
  const lanes = view.locator(".czt-lanes");
  await lanes.focus();
  for (let step = 0; step < 8; step += 1) { await page.keyboard.press("ArrowDown"); await page.keyboard.press("Enter"); }
  await page.keyboard.press("r");
  await page.waitForFunction(() => document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden) .czt-table caption"));
  report.nasty = {
    title: await page.title(), text: await view.innerText(),
    elements: await view.evaluate((one) => [...new Set([...one.querySelectorAll("*")].map((each) => each.localName))].sort()),
  };
  await shot("nasty-1440");
  told("names that try to become markup are text");
}
