// A running engine: who does what, who waits for whom, what memory is in use. Tells the kernel when a frame is drawn.

const MEMORY_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#E8C547"];
const STATES = {
  idle: ["", "No run yet."], running: ["cz-doubt", "Running"], stopping: ["cz-doubt", "Stopping …"],
  done: ["cz-good", "✓ Done"], failed: ["cz-bad", "✗ Failed"], stopped: ["cz-doubt", "■ Stopped"],
};

function render({ model, el: root }) {
  keepWhenSaved(model.widget_manager);
  root.classList.add("cz-wb", "cz-live");
  const state = el("b", {}), words = el("span", {}), bar = el("i", {});
  const stop = el("button", { type: "button", class: "cz-button cz-stop", text: "Stop", onclick: () => { if (hasKernel(root)) { stop.disabled = true; model.send({ stop: true }); } else silent(); } });
  const open = el("button", { type: "button", class: "cz-button cz-strong", text: "Open its run", onclick: () => (hasKernel(root) ? model.send({ open: true }) : silent()) });
  const meter = el("div", { class: "cz-progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, bar);
  const rate = el("span", { class: "cz-muted" });
  const memory = el("canvas", { class: "cz-canvas", role: "img", "aria-label": "Device memory in use, by buffer, against the limit" });
  const panes = el("div", { class: "cz-panes" }), ending = el("div", {}), buffers = el("div", {});
  const heading = el("h4", {}), body = el("div", {}, heading, memory, panes, buffers);
  root.append(el("div", { class: "cz-actions" }, state, words, meter, rate, stop, open), ending, body);
  const silent = () => { words.textContent = NO_KERNEL; };
  const times = [];
  const shades = new Map();
  const shade = (name) => { if (!shades.has(name)) shades.set(name, MEMORY_COLOURS[shades.size % MEMORY_COLOURS.length]); return shades.get(name); };
  const pane = (title, content) => el("div", { class: "cz-pane" }, el("h4", { text: title }), content);

  function drawState() {
    const now = model.get("state"), result = model.get("result"), [kind, text] = STATES[now] ?? ["", now];
    root.hidden = now === "idle";
    root.dataset.state = now;
    state.className = "";
    state.style.color = kind ? `var(--${kind})` : "";
    state.textContent = `${model.get("title")}: ${text}`;
    stop.hidden = now !== "running" && now !== "stopping";
    stop.disabled = now === "stopping";
    open.hidden = !result.run;
    meter.hidden = rate.hidden = stop.hidden;
    const verified = result.proofs !== undefined && result.proofs !== null ? `${result.verified} of ${result.proofs} proofs verified. TEST KEYS: they prove nothing to anybody. ` : "";
    heading.textContent = now === "running" || now === "stopping" ? "Device memory by buffer" : "The last state seen: device memory by buffer";
    body.hidden = now === "done" || !model.get("frame").number;
    words.textContent = now === "failed" && !result.outcome ? `The run ${result.words}.` : result.outcome && result.outcome !== "ok" ? `Outcome ${result.outcome}.` : verified;
    fill(ending,
      model.get("plan") ? el("p", { class: "cz-muted cz-ran", text: `${now === "running" ? "Running" : "Ran"}: ${model.get("plan")}.` }) : null,
      result.explanation ? el("pre", { class: "cz-explained", text: result.explanation }) : null,
      result.metrics?.length ? table(["figure", "measured", "meaning"], result.metrics, "On this machine, at the size of its circuits: these times rank designs here.", 9) : null,
      result.run ? el("p", { class: "cz-muted", text: `Stored: ${result.run}` }) : null,
      model.get("log").length && stop.hidden ? fold("What it wrote", () => el("pre", { text: model.get("log").join("\n") })) : null);
  }

  function drawFrame() {
    const frame = model.get("frame");
    if (!frame.number) return;
    body.hidden = model.get("state") === "done";
    const share = frame.total ? frame.outcomes / frame.total : 0;
    bar.style.width = `${share * 100}%`;
    meter.setAttribute("aria-valuenow", Math.round(share * 100));
    const now = performance.now();
    times.push(now);
    while (times[0] < now - 2000) times.shift();
    rate.textContent = `${frame.outcomes} of ${frame.total} partitions · ${(times.length / 2).toFixed(0)} frames/s`;
    root.dataset.frames = Number(root.dataset.frames ?? 0) + 1;
    const workers = frame.actors.filter((one) => one.name !== "collector").sort((a, b) => (a.name < b.name ? -1 : 1));
    fill(panes, pane("Workers", table(["worker", "partition", "", "at"], workers.map((one) => [one.name, one.partition,
        one.state === "waiting" ? { text: "waits", class: "cz-worse" } : { text: "runs", class: "cz-better" },
        one.state === "waiting" ? `for ${one.kind} ${one.on}${one.holders.length ? `, held by ${one.holders.join(", ")}` : ""}` : one.doing]), "", 9)), el("div", {},
      pane("Locks", table(["lock", "holder", "waiters"], frame.locks.map((one) => [one.name, one.holder || "free", one.waiters.join(", ")]), "", 9)),
      pane("Queues", table(["queue", "length"], frame.queues.map((one) => [one.name, one.length]))),
      pane("Counters", table(["counter", "now"], Object.entries(frame.counters ?? {}).map(([name, value]) => [name.replaceAll("_", " "), name.includes("bytes") ? bytes(value) : String(Math.round(value))]),
        (frame.not_captured ?? []).length ? `not captured: ${frame.not_captured.join("; ")}` : ""))));
    drawMemory(frame);
    fill(buffers, fold("Buffers", () => table(["device", "buffer", "owner", "partition", "bytes"], frame.devices.flatMap((device) =>
      device.buffers.map((one) => [`gpu${device.index}`, one.name, one.owner, one.partition, bytes(one.bytes)])), "", 4)));
  }

  function drawMemory(frame) {
    const width = root.clientWidth;
    if (width < 80) return;
    const look = ink(root), context = sharp(memory, width, frame.devices.length * 40 + 4);
    context.font = "12px sans-serif";
    context.textBaseline = "middle";
    frame.devices.forEach((device, row) => {
      const top = row * 40 + 2;
      const used = `${bytes(device.live_bytes)} of ${bytes(device.limit_bytes)}`;
      const whole = width - 70 - context.measureText("8888 MiB of 8888 MiB").width;
      let at = 50;
      context.fillStyle = look.muted;
      context.textAlign = "left";
      context.fillText(`gpu${device.index}`, 4, top + 12);
      for (const one of device.buffers) {
        const wide = (one.bytes / device.limit_bytes) * whole;
        context.fillStyle = shade(one.name);
        context.fillRect(at, top, Math.max(1, wide - 1), 24);
        context.fillStyle = readable(shade(one.name));
        if (wide > 40) context.fillText(cut(context, `${one.name} ${one.partition}`, wide - 8), at + 4, top + 12);
        at += wide;
      }
      context.strokeStyle = look.muted;
      context.strokeRect(50.5, top + 0.5, whole, 24);
      context.strokeStyle = look.limit;
      context.setLineDash([5, 3]);
      context.beginPath();
      context.moveTo(50 + whole, top - 2);
      context.lineTo(50 + whole, top + 28);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = look.muted;
      context.fillText(used, 50 + whole + 6, top + 12);
    });
  }

  // The next frame is asked for once this one is on the screen.
  function framed() {
    const { number } = model.get("frame");
    drawFrame();
    if (number) requestAnimationFrame(() => model.send({ drawn: number }));
  }
  model.on("change:frame", framed);
  model.on("change:state change:result change:log", drawState);
  drawState();
  drawFrame();
  if (model.get("state") === "running") model.send({ drawn: "anew" });
  const themed = onTheme(() => { if (model.get("frame").number) drawMemory(model.get("frame")); });
  return () => { themed(); model.off("change:frame", framed); model.off("change:state change:result change:log", drawState); };
}
export default { render };
