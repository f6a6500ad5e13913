// The design bench: knobs, what they come to, and the same for a baseline.

const KNOBS = [
  ["gw", "GPU workers (gw)", "", 1], ["pw", "Syntheses at a time (pw)", "", 1], ["gt", "Threads of the G2 MSM (gt)", "", 1],
  ["j", "Proofs in flight (j)", "", 1], ["vram_gib", "Device memory", "GiB", 0.5], ["link_gb_per_s", "Link, pinned", "GB/s", 1],
];

function render({ model, el: root }) {
  keepWhenSaved(model.widget_manager);
  root.classList.add("cz-wb", "cz-design");
  const choices = model.get("choices");
  let asked = null, wanted = null, began = 0, silence = null;

  const knobs = () => ({ ...model.get("knobs") });
  const identity = (of) => JSON.stringify(of);

  // One question at a time: while one is under way, only the newest wish is remembered.
  function want(change) {
    wanted = { ...(wanted ?? (asked?.knobs) ?? knobs()), ...change };
    if (!began) began = performance.now();
    if (!asked) send();
  }
  function send() {
    if (!wanted) return;
    if (!hasKernel(root)) { timing.textContent = NO_KERNEL; wanted = null; began = 0; draw(); return; }
    asked = { knobs: wanted, number: model.get("picture").of + 1, at: began };
    wanted = null;
    began = 0;
    model.set("knobs", asked.knobs);
    model.save_changes();
    root.dataset.state = "asking";
    clearTimeout(silence);
    silence = setTimeout(() => { timing.textContent = "no answer from the kernel: run the cell to go on"; asked = null; }, 5000);
    if (!model.get("picture").partial && identity(asked.knobs) === identity(model.get("picture").knobs)) { clearTimeout(silence); asked = null; root.dataset.state = "drawn"; }
  }

  const controls = el("div", { class: "cz-controls" });
  const pick = (name, label, options) => {
    const chosen = el("select", { onchange: (event) => want(choose(name, event.target.value)) });
    for (const [value, title] of Object.entries(options)) chosen.append(el("option", { value, text: value, title: typeof title === "string" ? title : title.title }));
    controls.append(el("label", { class: "cz-knob" }, el("span", { text: label }), chosen));
    inputs[name] = { show: (value) => { chosen.value = value; }, element: chosen };
  };
  const inputs = {};
  pick("policy", "Policy", choices.policies);
  pick("hardware", "Hardware", choices.hardware);
  pick("workload", "Workload", choices.workloads);
  const proofs = el("select", { onchange: (event) => want({ c: Number(event.target.value) }) },
    [1, 2, 3, 4, 5, 8, 10, 15, 20].map((count) => el("option", { value: count, text: count })));
  controls.append(el("label", { class: "cz-knob" }, el("span", { text: "Proofs of the batch (c)" }), proofs));
  inputs.c = { show: (value) => { proofs.value = value; }, element: proofs };
  for (const [name, label, unit, step] of KNOBS) {
    const [least, most] = choices.ranges[name];
    const value = el("output", {});
    const slider = el("input", { type: "range", min: least, max: most, step, "data-knob": name,
      oninput: (event) => { const now = Number(event.target.value); tell(now); want({ [name]: now }); } });
    const tell = (now) => { value.textContent = `${now}${unit ? ` ${unit}` : ""}`; slider.setAttribute("aria-valuetext", value.textContent); };
    controls.append(el("label", { class: "cz-knob" }, el("span", {}, `${label} `, value), slider));
    inputs[name] = { show: (now) => { if (document.activeElement !== slider || !asked && !wanted) slider.value = now; tell(Number(slider.value)); }, element: slider };
  }
  function choose(name, value) {
    if (name === "policy") return { policy: value, source: model.get("sources")[value] ?? "" };
    if (name !== "hardware") return { [name]: value };
    const { gt, vram_gib, link_gb_per_s } = choices.hardware[value];
    return { hardware: value, gt, vram_gib, link_gb_per_s };
  }

  const pin = el("button", { type: "button", class: "cz-button", text: "Pin as baseline", onclick: () => {
    model.set("baseline", { knobs: model.get("picture").knobs, metrics: model.get("picture").metrics, outcome: model.get("picture").outcome });
    model.save_changes();
  } });
  const unpin = el("button", { type: "button", class: "cz-button cz-quiet", text: "Unpin", onclick: () => { model.set("baseline", {}); model.save_changes(); } });
  const back = el("button", { type: "button", class: "cz-button cz-quiet", text: "Back to baseline", onclick: () => want(model.get("baseline").knobs) });
  const run = el("button", { type: "button", class: "cz-button cz-strong", text: "Run for real", title: "Real locks, kernels and verified proofs in a child process, on circuits that fit this machine; test keys",
    onclick: () => { if (hasKernel(root)) model.send({ run: true }); else timing.textContent = NO_KERNEL; } });
  const timing = el("span", { class: "cz-muted", role: "status" });
  const actions = el("div", { class: "cz-actions" }, pin, back, unpin, run, timing);
  const plan = el("div", { class: "cz-plan" });
  function planned() {
    const { words, rows } = model.get("plan");
    fill(plan, words ? el("span", { class: "cz-muted", text: `Run for real: ${words}.` }) : null, words ? fold("What is run for real", () => table(["", "this design", "the live run"], rows, "A live run has the design's locks and policy on this machine's kernels; its times rank designs here, at the size of its circuits.", 9)) : null);
  }
  const verdicts = el("div", { class: "cz-verdicts", "aria-live": "polite" });
  const cards = el("div", { class: "cz-cards" });
  const chosen = el("div", { class: "cz-chosen" });
  const chart = new LaneChart((number) => {
    const { lanes, waits } = chart.data;
    chosen.textContent = number < 0 ? "" : `${lanes[waits.lane[number]].label} ${chart.sentence(number)}, from ${seconds(waits.start[number])} on.`;
  });
  const legend = el("div", { class: "cz-legend" });
  const tables = el("div", { class: "cz-tables" });
  root.append(controls, actions, plan, verdicts, cards, chart.element, legend, chosen, tables);

  function metricRow(metric) {
    const before = (model.get("baseline").metrics ?? []).find((one) => one.name === metric.name);
    const second = fresh();
    const interval = second?.intervals?.rows?.[metric.name];
    let change = null;
    if (before && before.value !== null && metric.value !== null && before.value) {
      const part = metric.value / before.value - 1;
      const better = metric.more_is_better ? part > 0 : part < 0;
      const word = Math.abs(part) < 5e-4 ? "same" : better ? "better" : "worse";
      change = { text: word === "same" ? "= baseline" : `${part > 0 ? "▲ +" : "▼ −"}${(Math.abs(part) * 100).toFixed(1)} % ${word}`, class: `cz-${word}`, before: before.text };
    }
    return { interval: interval?.[2], change };
  }
  function fresh() {
    const second = model.get("second");
    return second.of === model.get("picture").of ? second : null;
  }

  function draw() {
    const picture = model.get("picture");
    const shown = asked?.knobs && wanted ? { ...asked.knobs, ...wanted } : wanted ?? asked?.knobs ?? picture.knobs ?? knobs();
    inputs.gt.element.max = choices.hardware[shown.hardware]?.most_gt ?? inputs.gt.element.max;
    inputs.j.element.max = shown.c;
    for (const [name, input] of Object.entries(inputs)) input.show(shown[name]);
    if (picture.error) {
      fill(verdicts, el("p", { class: "cz-verdict cz-bad", text: picture.error }));
      root.dataset.state = "drawn";
      return;
    }
    if (!picture.lanes) return;
    chart.show(unpacked(picture), picture.partial);
    chosen.textContent = "";
    root.classList.toggle("cz-partial", picture.partial === true);
    if (picture.partial) return; // figures and tables of the last whole one stand until the next
    root.dataset.policy = picture.knobs.policy;
    const seen = new Map();
    for (const number of new Set(chart.data.bars.name)) {
      const whole = picture.names[number], name = whole.startsWith("held by ") ? whole : whole.split(".")[0]; // parts have their stage's colour
      if (!/^(alloc|free|trim|device sync)/.test(name)) seen.set(name, picture.colours[number]);
    }
    fill(legend, [...seen].map(([name, colour]) => el("span", {}, swatch(colour), name)),
      el("span", {}, el("i", { class: "cz-swatch cz-hatched" }), "waits"));
    drawSecond();
  }

  function swatch(colour) { const made = el("i", { class: "cz-swatch" }); made.style.background = colour; return made; }

  function drawSecond() {
    const picture = model.get("picture"), second = fresh(), baseline = model.get("baseline");
    if (!picture.metrics) return;
    const ok = picture.outcome === "ok", { waits } = chart.data;
    const words = { ok: "Runs to its end", device_oom: "Runs out of device memory", host_oom: "Runs out of host memory", deadlock: "Deadlocks", fault: "Fails" };
    const check = second?.check;
    const lines = [el("p", { class: `cz-verdict ${ok ? "cz-good" : "cz-bad"}` }, el("b", { text: `${ok ? "✓" : "✗"} Simulated: ${words[picture.outcome] ?? picture.outcome}.` }), ` ${picture.explanation}`)];
    const waiting = "looking …";
    if (!check) lines.push(el("p", { class: "cz-verdict cz-muted", text: `Checker: ${waiting}` }));
    else if (check.error) lines.push(el("p", { class: "cz-verdict cz-doubt", text: `Checker: ${check.error}` }));
    else {
      const [mark, kind, word] = { safe: ["✓", "cz-good", "accepts"], unsafe: ["✗", "cz-bad", "refuses"] }[check.verdict] ?? ["?", "cz-doubt", "cannot tell about"];
      lines.push(el("p", { class: `cz-verdict cz-check ${kind}` }, el("b", { text: `${mark} The checker ${word} the design.` }), ` ${check.line}`));
    }
    const limits = second?.limits;
    lines.push(el("p", { class: "cz-verdict" }, el("b", { text: "Limited by: " }), limits ? limits.error ?? limits.sentence : waiting));
    fill(verdicts, lines);
    fill(cards, picture.metrics.filter((metric) => metric.name !== "wall_s").map((metric) => {
      const { interval, change } = metricRow(metric);
      return el("div", { class: "cz-card", title: metric.meaning }, el("span", { class: "cz-muted", text: metric.caption }), el("b", { text: metric.text }),
        el("span", { class: "cz-muted cz-interval", text: metric.value === null ? metric.reason : interval ? `90 %: ${interval}` : "simulated" }),
        change ? el("span", { class: change.class, text: change.text, title: `baseline ${change.before}` }) : null);
    }));
    pin.disabled = !picture.metrics;
    back.hidden = unpin.hidden = !baseline.metrics;
    const findings = (check?.findings ?? []).map((finding, number) => {
      const one = fold(`Schedule ${number + 1}: ${finding.kind} (${finding.steps.length} steps${finding.shortest ? ", the shortest there is" : ""})`,
        () => [el("p", { text: finding.message }), table(["step", "actor", "effect", "where"], finding.steps, "", 9)]);
      one.open = number === 0;
      return one;
    });
    const changed = baseline.knobs ? Object.keys(baseline.knobs).filter((name) => name !== "source" && baseline.knobs[name] !== picture.knobs[name]) : [];
    fill(tables,
      baseline.metrics ? el("p", { class: "cz-muted", text: changed.length ? `Against the baseline: ${changed.map((name) => `${name} ${baseline.knobs[name]} → ${picture.knobs[name]}`).join(", ")}.` : "This is the baseline." }) : null,
      findings,
      fold("Figures", () => table(["figure", "kind", "value", "90 % interval", "baseline", "change"], picture.metrics.map((metric) => {
        const { interval, change } = metricRow(metric);
        return [{ text: metric.caption, title: metric.meaning }, metric.kind, metric.value === null ? `none: ${metric.reason}` : metric.text, interval ?? "", change?.before ?? "", change ? { text: change.text, class: change.class } : ""];
      }), second?.intervals?.how ?? second?.intervals?.error ?? "Simulated.", 2)),
      fold("Lock waits", () => table(["lock", "uses", "waited for", "wait in all", "longest wait", "held"], picture.locks.map((lock) => [lock.lock, lock.uses, lock.waited, lock.wait, lock.longest, lock.held]))),
      fold("Device memory", () => table(["", "bytes"], picture.vram.rows)),
      limits?.rows?.length ? fold("Where the device's time went", () => table(["what", "when", "time", "of the batch"], limits.rows, "", 2)) : null,
      fold("Waits of the workers", () => table(["worker", "kind", "for", "held by", "from", "length"],
        Array.from(waits.lane.subarray(0, 400), (lane, at) => [picture.lanes[lane].label, waits.kind[at], waits.on[at], waits.holder[at], seconds(waits.start[at]), seconds(waits.length[at])]), waits.lane.length > 400 ? `the first 400 of ${waits.lane.length}` : "", 4)),
      fold("Conditions", () => [table(["condition", "value"], Object.entries(picture.conditions).map(([name, value]) => [name, String(value)])), ...picture.notes.map((note) => el("p", { class: "cz-muted", text: note }))]));
  }

  function answered() {
    const { of: number, partial, took_ms } = model.get("picture");
    clearTimeout(silence);
    const arrived = performance.now();
    draw();
    const drawnAt = performance.now();
    if (asked) {
      const took = drawnAt - asked.at;
      asked.first ??= took;
      if (partial) { timing.textContent = `first part after ${took.toFixed(0)} ms …`; return; }
      root.dataset.latency = asked.first.toFixed(1);
      root.dataset.whole = took.toFixed(1);
      root.dataset.took = JSON.stringify({ ...took_ms, draw: drawnAt - arrived });
      timing.textContent = asked.first === took ? `picture after ${took.toFixed(0)} ms` : `first part after ${asked.first.toFixed(0)} ms, all after ${took.toFixed(0)} ms`;
      root.dataset.drawn = number;
      asked = null;
    } else if (partial) return;
    root.dataset.state = "drawn";
    send();
  }
  model.on("change:picture", answered);
  model.on("change:second change:baseline", drawSecond);
  model.on("change:plan", planned);
  planned();
  draw();
  root.dataset.drawn = model.get("picture").of ?? 0;
  const themed = onTheme(() => chart.draw());
  return () => { themed(); clearTimeout(silence); chart.watch.disconnect(); model.off("change:picture", answered); model.off("change:second change:baseline", drawSecond); model.off("change:plan", planned); };
}
export default { render };
