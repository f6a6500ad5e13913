// A design as text: lines numbered, what is wrong marked at its line, the bench beneath told when typing rests.

const REST_MS = 400;

function render({ model, el: root }) {
  keepWhenSaved(model.widget_manager);
  root.classList.add("cz-wb", "cz-author");
  const editor = el("textarea", { class: "cz-editor", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
    "aria-label": `Policy ${model.get("name")}; Escape, then Tab leaves the editor` });
  const gutter = el("div", { class: "cz-gutter", "aria-hidden": "true" });
  const marks = el("ul", { class: "cz-marks", "aria-live": "polite" });
  const template = el("select", { "aria-label": "Template", onchange: () => {
    if (!template.value) return;
    editor.value = model.get("templates")[template.value];
    template.value = "";
    changed();
  } }, el("option", { value: "", text: "Start from …" }), Object.keys(model.get("templates")).map((name) => el("option", { value: name, text: name })));
  const save = el("button", { type: "button", class: "cz-button", text: `Save as ${model.get("name")}.py`, onclick: () => { tell(); model.send({ save: true }); } });
  const saved = el("span", { class: "cz-muted", role: "status" });
  const pick = el("span", { style: "width: 200px" }, template);
  root.append(el("div", { class: "cz-actions" }, el("b", { text: model.get("name") }), pick, save, saved),
    el("div", { class: "cz-edit" }, gutter, editor), marks);
  let timer = null, free = false;

  function tell() { clearTimeout(timer); timer = null; model.send({ source: editor.value }); root.dataset.state = "told"; }
  function changed() { number(); clearTimeout(timer); root.dataset.state = "typing"; timer = setTimeout(tell, REST_MS); }
  editor.addEventListener("input", changed);
  editor.addEventListener("scroll", () => { gutter.scrollTop = editor.scrollTop; });
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { free = true; return; } // then Tab moves on, as everywhere else
    if (event.key === "Tab" && !free && !event.shiftKey) {
      event.preventDefault();
      editor.setRangeText("    ", editor.selectionStart, editor.selectionEnd, "end");
      changed();
    } else if (event.key === "Enter" && !event.isComposing) {
      const line = editor.value.slice(0, editor.selectionStart).split("\n").pop();
      event.preventDefault();
      editor.setRangeText(`\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`, editor.selectionStart, editor.selectionEnd, "end");
      changed();
    }
    if (event.key !== "Tab") free = false;
    event.stopPropagation();
  });

  function number() {
    const count = editor.value.split("\n").length, wrong = new Map(model.get("marks").map(([line, , kind]) => [line, kind]));
    fill(gutter, Array.from({ length: count }, (_, at) => el("div", { text: `${wrong.has(at + 1) ? (wrong.get(at + 1) === "error" ? "✗ " : "! ") : ""}${at + 1}`, class: wrong.has(at + 1) ? `cz-line-${wrong.get(at + 1)}` : undefined })));
    gutter.scrollTop = editor.scrollTop;
  }
  function go(line) {
    const lines = editor.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    editor.focus();
    editor.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
    editor.scrollTop = Math.max(0, (line - 6) * 18);
  }
  function mark() {
    number();
    const seen = model.get("marks");
    root.dataset.marks = seen.length;
    fill(marks, seen.length ? seen.map(([line, words, kind]) => el("li", {}, el("button", { type: "button", class: "cz-small", text: `line ${line}`, onclick: () => go(line) }), el("span", { class: kind === "error" ? "cz-worse" : "", text: ` ${words}` })))
      : el("li", { class: "cz-better", text: "✓ Nothing wrong that is known of so far." }));
  }
  function source() { if (timer === null && editor.value !== model.get("source")) { editor.value = model.get("source"); number(); } }
  const told = () => { saved.textContent = model.get("saved") ? `saved: ${model.get("saved")}` : ""; };
  editor.value = model.get("source");
  model.on("change:marks", mark);
  model.on("change:source", source);
  model.on("change:saved", told);
  mark();
  told();
  return () => { clearTimeout(timer); model.off("change:marks", mark); model.off("change:source", source); model.off("change:saved", told); };
}
export default { render };
