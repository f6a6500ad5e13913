// The design bench: sliders to pictures, a design that the checker refuses, waits.
import { quantile, told } from "./drive.mjs";

const MOVES = [
  ["gw", 3], ["gw", 4], ["pw", 14], ["gt", 64], ["j", 3], ["vram_gib", 24], ["link_gb_per_s", 26], ["vram_gib", 16], ["gw", 2],
  ["pw", 10], ["pw", 7], ["gt", 32], ["link_gb_per_s", 64], ["j", 4], ["pw", 21], ["gw", 5], ["gt", 128], ["pw", 2], ["gw", 1], ["vram_gib", 32], ["vram_gib", 16],
];

export async function sliders({ page, report, shot, sight, execute }) {
  const bench = page.locator(".jp-OutputArea .cz-design").first();
  await bench.locator(".cz-card").first().waitFor();
  told("the bench has drawn");
  await bench.locator(".cz-check").first().waitFor();
  await sight(bench);
  await shot("bench-1440");

  // One move at a time, each measured from the input event to the drawn picture; the first one, and the whole.
  const seen = [];
  const drawn = async (act) => {
    const before = Number(await bench.getAttribute("data-drawn"));
    await act();
    await page.waitForFunction(([number]) => { const one = document.querySelector(".cz-design"); return Number(one.dataset.drawn) > number && one.dataset.state === "drawn"; }, [before]);
    seen.push(await bench.evaluate(({ dataset }) => ({ first: Number(dataset.latency), whole: Number(dataset.whole), draw: JSON.parse(dataset.took).draw })));
  };
  const slide = (name, value) => bench.locator(`input[data-knob="${name}"]`).evaluate((slider, now) => {
    slider.value = now;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, value);
  await bench.getByRole("button", { name: "Pin as baseline" }).click();
  for (const [name, value] of MOVES) await drawn(() => slide(name, value));
  const gw = bench.locator('input[data-knob="gw"]');
  await gw.focus();
  await drawn(() => page.keyboard.press("ArrowRight")); // by keyboard alone
  report.latency_ms = seen.map((one) => one.first);
  report.whole_ms = seen.map((one) => one.whole);
  const turns = JSON.parse(await execute("import json; print(json.dumps(list(bench.timings)))")).filter((one) => one.simulate !== undefined);
  const row = (name, values) => `  ${name.padEnd(34)} p50 ${quantile(values, 0.5).toFixed(1).padStart(6)} ms   p90 ${quantile(values, 0.9).toFixed(1).padStart(6)} ms`;
  const whole = turns.filter((one) => !one.partial).slice(-seen.length);
  report.breakdown = [
    row("first picture, from the event", report.latency_ms), row("whole picture, from the event", report.whole_ms),
    row("simulate", whole.map((one) => one.simulate)), row("analyse", whole.map((one) => one.analyse)),
    row("encode and send", whole.map((one) => one.encode)), row("draw", seen.map((one) => one.draw)),
  ].join("\n");
  told(`${seen.length} moves of sliders\n${report.breakdown}`);

  // The largest batch: its first part comes as soon, and is taken a picture of.
  await bench.locator("select").nth(3).selectOption("20");
  await page.waitForFunction(() => document.querySelector(".cz-design").dataset.state === "drawn" && document.querySelector(".cz-design").innerText.includes("c 4 → 20"));
  await sight(bench.locator(".cz-chart"));
  const large = [];
  for (const value of [20, 12, 16]) {
    const before = Number(await bench.getAttribute("data-drawn"));
    await slide("j", value);
    if (value === 12) {
      await page.waitForFunction(() => document.querySelector(".cz-design.cz-partial"), null, { timeout: 3000 }).catch(() => null);
      await shot("bench-first-part-1440");
    }
    await page.waitForFunction(([number]) => { const one = document.querySelector(".cz-design"); return Number(one.dataset.drawn) > number && one.dataset.state === "drawn"; }, [before]);
    large.push(await bench.evaluate(({ dataset }) => ({ first: Number(dataset.latency), whole: Number(dataset.whole) })));
  }
  report.large_first_ms = large.map((one) => one.first);
  told(`20 proofs: first pictures after ${large.map((one) => one.first.toFixed(0)).join(", ")} ms, whole after ${large.map((one) => one.whole.toFixed(0)).join(", ")} ms`);
  await bench.locator("select").nth(3).selectOption("4");
  await page.waitForFunction(() => document.querySelector(".cz-design").dataset.state === "drawn" && !document.querySelector(".cz-design").innerText.includes("c 4 →"));

  // A burst must end at the last value and be answered by few pictures.
  const first = Number(await bench.getAttribute("data-drawn"));
  await bench.locator('input[data-knob="pw"]').evaluate((slider) => {
    for (let value = 1; value <= 24; value += 1) { slider.value = value; slider.dispatchEvent(new Event("input", { bubbles: true })); }
  });
  await page.waitForFunction(() => { const one = document.querySelector(".cz-design"); return one.dataset.state === "drawn" && one.textContent.includes("pw 10 → 24"); });
  report.pictures_for_burst = Number(await bench.getAttribute("data-drawn")) - first;

  // A design that the checker refuses, with its schedule.
  await bench.locator("select").first().selectOption("phase10_nested");
  await page.waitForFunction(() => document.querySelector('.cz-design[data-policy="phase10_nested"] .cz-check.cz-bad'));
  report.refusal = await bench.locator(".cz-check").first().textContent();
  report.schedule_rows = await bench.locator("details[open] tbody tr").count();
  await sight(bench);
  await shot("refused-1440");
  await bench.locator("select").first().selectOption("phase9");
  await page.waitForFunction(() => document.querySelector('.cz-design[data-policy="phase9"] .cz-check.cz-good'));

  // A wait: by key, then by click.
  const canvas = bench.locator("canvas").first();
  await canvas.focus();
  await page.keyboard.press("n");
  report.wait_by_key = await bench.locator(".cz-chosen").textContent();
  await page.keyboard.press("0");
  const place = await canvas.evaluate(({ chart }) => {
    const { lane, start, length } = chart.data.waits, longest = length.indexOf(Math.max(...length));
    return { x: chart.x(start[longest] + length[longest] / 2), y: chart.rows.slice(0, lane[longest]).reduce((sum, one) => sum + one, 2) + 11, words: chart.sentence(longest) };
  });
  await canvas.click({ position: place });
  report.wait_by_click = await bench.locator(".cz-chosen").textContent();
  report.longest_wait = place.words;
  told(`wait: ${report.wait_by_key}`);
  return bench;
}
