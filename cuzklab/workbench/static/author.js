// A design as text, with what is wrong at its line; the bench beneath is told when typing rests.

const REST_MS = 400;

function render({ model, el: root }) {
  keepWhenSaved(model.widget_manager);
  root.classList.add("cz-wb", "cz-author");
  const marks = el("ul", { class: "cz-marks", "aria-live": "polite" });
  const editor = new Editor(`Policy ${model.get("name")}`, changed);
  const template = el("select", { "aria-label": "Template", onchange: () => {
    if (!template.value) return;
    editor.value = model.get("templates")[template.value];
    template.value = "";
    changed();
  } }, el("option", { value: "", text: "Start from …" }), Object.keys(model.get("templates")).map((name) => el("option", { value: name, text: name })));
  const save = el("button", { type: "button", class: "cz-button", text: `Save as ${model.get("name")}.py`, onclick: () => { if (tell()) model.send({ save: true }); } });
  const saved = el("span", { class: "cz-muted", role: "status" });
  const pick = el("span", { style: "width: 200px" }, template);
  root.append(el("div", { class: "cz-actions" }, el("b", { text: model.get("name") }), pick, save, saved), editor.element, marks);
  let timer = null;

  function tell() {
    clearTimeout(timer);
    timer = null;
    if (!hasKernel(root)) { saved.textContent = NO_KERNEL; return false; }
    model.send({ source: editor.value });
    root.dataset.state = "told";
    return true;
  }
  function changed() { clearTimeout(timer); root.dataset.state = "typing"; timer = setTimeout(tell, REST_MS); }
  function mark() {
    const seen = model.get("marks");
    editor.mark(seen);
    root.dataset.marks = seen.length;
    fill(marks, seen.length ? seen.map(([line, words, kind]) => el("li", {}, el("button", { type: "button", class: "cz-small", text: `line ${line}`, onclick: () => editor.go(line) }), el("span", { class: kind === "error" ? "cz-worse" : "", text: ` ${words}` })))
      : el("li", { class: "cz-better", text: "✓ Nothing wrong that is known of so far." }));
  }
  function source() { if (timer === null && editor.value !== model.get("source")) editor.value = model.get("source"); }
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
