// A text with numbered lines, and what is wrong marked at its line; Escape, then Tab leaves it.

const LINE_PX = 18;

class Editor {
  // `onChange` is told of every change that a person makes.
  constructor(label, onChange) {
    this.seen = [];
    this.text = el("textarea", { class: "cz-editor", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": `${label}; Escape, then Tab leaves the editor` });
    this.gutter = el("div", { class: "cz-gutter", "aria-hidden": "true" });
    this.element = el("div", { class: "cz-edit" }, this.gutter, this.text);
    this.changed = () => { this.number(); onChange(); };
    this.text.addEventListener("input", this.changed);
    this.text.addEventListener("scroll", () => { this.gutter.scrollTop = this.text.scrollTop; });
    this.text.addEventListener("keydown", (event) => this.key(event));
  }

  get value() { return this.text.value; }
  set value(text) { this.text.value = text; this.number(); }

  key(event) {
    const { text } = this;
    if (event.key === "Escape") { this.free = true; return; } // then Tab moves on, as everywhere else
    if (event.key === "Tab" && !this.free && !event.shiftKey) {
      event.preventDefault();
      text.setRangeText("    ", text.selectionStart, text.selectionEnd, "end");
      this.changed();
    } else if (event.key === "Enter" && !event.isComposing) {
      const line = text.value.slice(0, text.selectionStart).split("\n").pop();
      event.preventDefault();
      text.setRangeText(`\n${line.match(/^ */)[0]}${/[:{]$/.test(line.trimEnd()) ? "    " : ""}`, text.selectionStart, text.selectionEnd, "end");
      this.changed();
    }
    if (event.key !== "Tab") this.free = false;
    event.stopPropagation();
  }

  // [[line, words, kind]]; kind is error or finding.
  mark(seen) { this.seen = seen; this.number(); }

  number() {
    const count = this.text.value.split("\n").length, wrong = new Map(this.seen.map(([line, , kind]) => [line, kind]));
    fill(this.gutter, Array.from({ length: count }, (_, at) => el("div", { text: `${wrong.has(at + 1) ? (wrong.get(at + 1) === "error" ? "✗ " : "! ") : ""}${at + 1}`, class: wrong.has(at + 1) ? `cz-line-${wrong.get(at + 1)}` : undefined })));
    this.gutter.scrollTop = this.text.scrollTop;
  }

  go(line) {
    const lines = this.text.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.text.focus();
    this.text.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
    this.show(line);
  }

  // Brings a line into view.
  show(line) { this.text.scrollTop = Math.max(0, (line - 6) * LINE_PX); }
}
