// A kernel's source and settings, what a change of it did, and where it stands under the roof.

function render({ model, el: root }) {
  keepWhenSaved(model.widget_manager);
  root.classList.add("cz-wb", "cz-kernels");
  const setting = (name, value) => { model.set("settings", { ...model.get("settings"), [name]: value }); model.save_changes(); };
  const words = el("span", { class: "cz-muted", role: "status" });
  const labelled = (label, control) => el("label", { class: "cz-knob" }, el("span", { text: label }), control);
  const kernel = el("select", { onchange: () => { flush(); setting("kernel", kernel.value); } });
  const backend = el("select", { onchange: () => { setting("backend", backend.value); names(); setting("kernel", kernel.value); } },
    model.get("backends").map(({ name, words, absent }) => el("option", { value: name, text: words, title: absent, disabled: Boolean(absent) })));
  // Every kernel that the backend has a bench for.
  function names() {
    const { kernel: wanted, backend: where } = model.get("settings");
    backend.value = where;
    const known = model.get("backends").find(({ name }) => name === where)?.kernels ?? [];
    fill(kernel, known.map((name) => el("option", { value: name, text: name })));
    kernel.value = known.includes(wanted) ? wanted : known[0];
    macros.disabled = options.disabled = !(model.get("backends").find(({ name }) => name === where)?.on_gpu);
  }
  const counted = (name, least, most) => el("input", { class: "cz-text", type: "number", min: least, max: most, value: model.get("settings")[name],
    onchange: (event) => setting(name, Math.min(most, Math.max(least, Math.round(Number(event.target.value)) || least))) });
  const written = (name, hint) => el("input", { class: "cz-text", type: "text", placeholder: hint, value: model.get("settings")[name], spellcheck: "false", onchange: (event) => setting(name, event.target.value) });
  const macros = written("macros", '{"accumulate.cu": {"THREADS": 64}}'), options = written("options", '{"bits": 16}');
  const file = el("select", { onchange: () => { flush(); model.set("file", file.value); model.save_changes(); } }, model.get("files").map((name) => el("option", { value: name, text: name })));
  const editor = new Editor("Source of the kernel", () => { clearTimeout(timer); timer = setTimeout(flush, 400); note(); });
  const act = (text, name, kind = "") => el("button", { type: "button", class: `cz-button ${kind}`, text, onclick: () => {
    if (!hasKernel(root)) { words.textContent = NO_KERNEL; return; }
    flush();
    model.send({ act: name });
  } });
  const attempt = act("Build, test, time", "try", "cz-strong"), roof = act("Roofline", "measure"), stop = act("Stop", "stop", "cz-stop");
  const undo = el("button", { type: "button", class: "cz-button cz-quiet", text: "Undo edits of this file", onclick: () => { editor.value = model.get("text"); editor.mark([]); flush(); note(); } });
  const edited = el("p", { class: "cz-muted" });
  const result = el("div", { "aria-live": "polite" }), under = el("div", {});
  const canvas = el("canvas", { class: "cz-canvas", role: "img", "aria-label": "Roofline: multiplications a second over multiplications a byte" });
  root.append(el("div", { class: "cz-controls" }, labelled("Backend", backend), labelled("Kernel", kernel),
      labelled("log2 of the size", counted("log2_size", 4, 27)), labelled("Timed calls of each", counted("repeats", 1, 99)),
      labelled("Macros (GPU)", macros), labelled("Options (GPU)", options), labelled("Source", file)),
    editor.element, edited, el("div", { class: "cz-actions" }, attempt, roof, stop, undo, words), result, canvas, under);
  let timer = null, wish = 0; // a line to go to once its file is open

  function flush() { clearTimeout(timer); if (editor.value !== (model.get("edits")[model.get("file")] ?? model.get("text"))) model.send({ edit: editor.value }); }
  function note() {
    const changed = new Set(Object.keys(model.get("edits")).filter((name) => name !== model.get("file")));
    if (editor.value !== model.get("text")) changed.add(model.get("file"));
    edited.textContent = changed.size ? `Edited: ${[...changed].map((name) => `kernels/${name}`).join(", ")}. The shipped sources stay as they are.` : "Nothing edited yet.";
    undo.hidden = editor.value === model.get("text");
  }
  function text() {
    file.value = model.get("file");
    editor.value = model.get("edits")[model.get("file")] ?? model.get("text");
    mark();
    note();
  }
  // What the compiler refuses, at its line, where it is in the file that is open.
  function mark() { editor.mark((model.get("trial").places ?? []).filter(({ file: of }) => of === model.get("file")).map(({ line, words: said }) => [line, said, "error"])); }
  function go({ file: of, line }) {
    if (model.get("file") !== of) { flush(); model.set("file", of); model.save_changes(); wish = line; } else editor.go(line);
  }
  function state() {
    const busy = model.get("state") !== "idle";
    root.dataset.state = model.get("state");
    attempt.disabled = roof.disabled = busy;
    stop.hidden = !busy;
    words.textContent = model.get("progress");
  }
  function trial() {
    const found = model.get("trial");
    mark();
    const slip = (found.places ?? []).find(({ file: of }) => of === model.get("file"));
    if (slip) editor.show(slip.line);
    if (found.error) fill(result, (found.places ?? []).map((place) => el("p", {}, el("button", { type: "button", class: "cz-small", text: `${place.file}, line ${place.line}`, onclick: () => go(place) }), el("span", { class: "cz-worse", text: ` ${place.words}` }))), el("pre", { class: "cz-explained", text: found.error }));
    else if (found.rows) {
      const { time_ratio: ratio, ratio_least: least, ratio_most: most, median_ms: median, calls } = found.rows[1];
      // All neighbouring calls must agree on which is faster, and be too many to do so by chance (1 in 32 for six).
      const [kind, words] = calls < 6 ? ["", "timed too few times to tell which is faster"] : most < 1 ? ["cz-good", `${((1 - ratio) * 100).toFixed(1)} % faster`] : least > 1 ? ["cz-bad", `${((ratio - 1) * 100).toFixed(1)} % slower`] : ["", "neither faster nor slower beyond the noise"];
      fill(result, el("p", { class: `cz-verdict ${kind}` }, el("b", { text: `Same result; the change is ${words}` }), ` (${seconds(median / 1e3)}; neighbouring calls took ${least.toFixed(2)} to ${most.toFixed(2)} of the shipped one's time).`),
        table(["variant", "median", "minimum", "time to shipped", "between"], found.rows.map((row) => [row.variant, seconds(row.median_ms / 1e3), seconds(row.min_ms / 1e3), row.time_ratio.toFixed(3), `${row.ratio_least.toFixed(3)} to ${row.ratio_most.toFixed(3)}`]), `${found.kernel} of 2^${found.log2n}, measured on this machine, in turns`));
    } else fill(result);
  }
  function roofline() {
    const found = model.get("roofline");
    canvas.hidden = !found.rows;
    if (found.error) return fill(under, el("pre", { class: "cz-explained", text: found.error }));
    if (!found.rows) return fill(under);
    fill(under, table(["kernel", "size", "median", "floor", `${found.unit} a second`, "a byte", "of the roof"], found.rows.map((row) => [row.kernel, `2^${row.log2n}`, seconds(row.median_ms / 1e3), seconds(row.floor_ms / 1e3), row.operations_per_s.toExponential(2), row.intensity.toFixed(1), `${(row.roof_share * 100).toFixed(0)} %`]),
      `Measured: ${found.backend} backend on ${found.device}, ${found.conditions}`));
    draw(found);
  }
  function draw(found) {
    const width = root.clientWidth, height = 220;
    if (width < 80) return;
    const look = ink(root), context = sharp(canvas, width, height), left = 92, base = height - 34, top = 14;
    const ridge = found.operations_per_s / found.bytes_per_s, all = found.rows.map((row) => row.intensity);
    const x0 = Math.log10(Math.min(ridge, ...all) / 4), x1 = Math.log10(Math.max(ridge, ...all) * 4);
    const y1 = Math.log10(found.operations_per_s * 2), y0 = Math.min(y1 - 2.5, Math.log10(Math.min(...found.rows.map((row) => row.operations_per_s)) / 2));
    const x = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (width - left - 16);
    const y = (value) => base - ((Math.log10(value) - y0) / (y1 - y0)) * (base - top);
    context.font = "12px sans-serif";
    context.textBaseline = "middle";
    context.strokeStyle = look.rule;
    context.fillStyle = look.muted;
    for (let power = Math.ceil(y0); power <= y1; power += 1) {
      context.beginPath(); context.moveTo(left, y(10 ** power)); context.lineTo(width - 16, y(10 ** power)); context.stroke();
      context.textAlign = "right"; context.fillText(`10^${power} /s`, left - 8, y(10 ** power));
    }
    for (let power = Math.ceil(x0); power <= x1; power += 1) { context.textAlign = "center"; context.fillText(`${10 ** power}`, x(10 ** power), base + 10); }
    context.textAlign = "center";
    context.fillText(`${found.unit} a byte moved`, (left + width) / 2, base + 25);
    context.strokeStyle = look.ink;
    context.lineWidth = 2;
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left - 16, base);
    context.clip();
    context.beginPath();
    context.moveTo(x(10 ** x0), y(found.bytes_per_s * 10 ** x0)); context.lineTo(x(ridge), y(found.operations_per_s)); context.lineTo(x(10 ** x1), y(found.operations_per_s));
    context.stroke();
    context.restore();
    for (const row of found.rows) {
      context.fillStyle = "#0072B2";
      context.beginPath(); context.arc(x(row.intensity), y(row.operations_per_s), 5, 0, 7); context.fill();
      context.fillStyle = look.ink; context.textAlign = "left";
      context.fillText(`${row.kernel} 2^${row.log2n}`, x(row.intensity) + 9, y(row.operations_per_s));
    }
  }
  const redraw = () => { if (model.get("roofline").rows) draw(model.get("roofline")); };
  const watch = new ResizeObserver(redraw), themed = onTheme(redraw);
  watch.observe(root);
  const opened = () => { text(); if (wish) editor.go(wish); wish = 0; };
  model.on("change:text", opened);
  model.on("change:settings", names);
  model.on("change:edits", note);
  model.on("change:state change:progress", state);
  model.on("change:trial", trial);
  model.on("change:roofline", roofline);
  names(); text(); state(); trial(); roofline();
  return () => { clearTimeout(timer); themed(); watch.disconnect(); model.off("change:text", opened); model.off("change:settings", names); model.off("change:edits", note); model.off("change:state change:progress", state); model.off("change:trial", trial); model.off("change:roofline", roofline); };
}
export default { render };
