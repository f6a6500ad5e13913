// The view: one timeline with its axis, device memory, search, keys, and the tables below it.
import { Bins, spanAt } from "./bins.js";
import { decode, inflate } from "./columns.js";
import { AXIS_HEIGHT, GUTTER, Painter, axis, fit, layOut, shade } from "./draw.js";
import { MEMORY_HEIGHT, MemoryPainter } from "./memory.js";
import { colours, element, legend, table } from "./parts.js";
import { search, sums } from "./sums.js";
import { duration, exact, number, readable, size, whole } from "./words.js";

const TALLEST = 430, MOST_ROWS = 12, CLOSEST = 12; // pixels of lanes; rows of the sums; time units across the view
const HINT = "Point at a bar for its exact times. Drag to select a stretch. Click, and the wheel zooms.";
const KEYS = [
  ["wheel, + −", "zoom (the wheel once the timeline has the focus, or with Ctrl)"],
  ["drag, Shift+drag", "select a stretch of time; move along. A drag on the axis zooms to it"],
  ["← → Home", "move along; the whole run"],
  ["↑ ↓ [ ]", "to another lane; to the bar before and after"],
  ["Enter, double click", "ask about the bar (a wait: who is to blame); zoom to it"],
  ["r z Esc", "select the bar's time; zoom to the selection; clear"],
  ["/", "search; Enter goes from match to match"],
];

export class TimelineView {
  constructor(host, { onSelect = () => {}, onChoose = () => {}, onExport = null } = {}) {
    Object.assign(this, { host, onSelect, onChoose, answers: [], range: null, chosen: -1, cursor: null, mask: null });
    this.#build(onExport);
    this.observers = [new ResizeObserver(() => this.redraw()), new MutationObserver(() => this.#restyle())];
    this.observers[0].observe(host);
    this.observers[1].observe(document.body, { attributes: true });
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.restyle = () => this.#restyle();
    this.scheme.addEventListener("change", this.restyle);
  }

  destroy() {
    this.observers.forEach((observer) => observer.disconnect());
    this.scheme.removeEventListener("change", this.restyle);
    clearTimeout(this.later);
    cancelAnimationFrame(this.frame);
  }

  // Shows a picture: bytes of `columns.py`, compressed or not. With `stay` the part in view stays in view.
  async show(bytes, { stay = false } = {}) {
    const begun = performance.now();
    const picture = decode(await inflate(bytes));
    const { columns, header } = picture;
    columns.end = Float64Array.from(columns.start, (start, place) => start + columns.length[place]);
    const before = stay && this.picture ? [this.left, this.right] : null;
    this.picture = picture;
    this.layout = layOut(header, columns);
    this.memory = new MemoryPainter(picture);
    [this.left, this.right] = before ?? [0, header.length];
    this.chosen = -1;
    this.mask = null;
    this.bins = null;
    this.#describe();
    this.#restyle();
    this.#draw();
    this.host.dataset.firstMs = (performance.now() - begun).toFixed(1);
    this.host.dataset.shownAt = performance.now().toFixed(1); // since the page began to load
    this.host.dataset.spans = columns.start.length;
  }

  // Tables that answer what was asked, shown above the sums.
  answer(tables) {
    this.answers = tables ?? [];
    this.#tabulate();
  }

  // Marks [from, to], or nothing, without telling anybody.
  mark(range) {
    this.range = range;
    this.redraw();
  }

  zoomTo(left, right) {
    const { length } = this.picture.header;
    const stretch = Math.min(Math.max(right - left, Math.min(CLOSEST, length)), length);
    this.left = Math.min(Math.max(0, left), length - stretch);
    this.right = this.left + stretch;
    this.redraw();
  }

  redraw() {
    if (!this.picture || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#draw();
    });
  }

  #build(onExport) {
    const button = (text, label, onclick) => element("button", { type: "button", title: label, "aria-label": label, onclick }, text);
    const canvas = (parent) => parent.appendChild(element("canvas", { "aria-hidden": "true" }));
    const { host } = this;
    host.replaceChildren();
    host.classList.add("czt");
    this.title = element("b");
    this.note = element("span");
    this.query = element("input", { type: "search", placeholder: "search names  ( / )", "aria-label": "search names",
      oninput: () => this.#search(), onkeydown: (event) => this.#searchKey(event) });
    this.found = element("span", { class: "czt-found", role: "status" });
    this.ofRange = element("div", { hidden: true },
      button("zoom to selection", "zoom to the selection (z)", () => this.zoomTo(...this.range)),
      button("clear", "clear the selection (Escape)", () => this.#select(null)));
    this.exporter = onExport && button("export", "export the selection, or what is in view, for Perfetto",
      () => onExport(this.range ?? [this.left, this.right]));
    this.legend = element("div");
    this.axisBox = element("div", { title: "drag to zoom" });
    this.lanes = element("div", { class: "czt-lanes", tabindex: "0", role: "application",
      "aria-roledescription": "timeline", "aria-describedby": (this.statusId = `czt-${Math.random().toString(36).slice(2)}`) });
    this.tall = element("div");
    this.memoryBox = element("div");
    this.status = element("div", { class: "czt-status", id: this.statusId, role: "status", "aria-live": "polite" }, HINT);
    this.tables = element("div", { class: "czt-tables" });
    this.tip = element("div", { class: "czt-tip", hidden: true, "aria-hidden": "true" });
    const keys = element("dl", {}, ...KEYS.flatMap(([key, does]) => [element("dt", {}, key), element("dd", {}, does)]));
    host.append(
      element("div", { class: "czt-title" }, this.title, this.note),
      element("div", { class: "czt-tools" },
        element("div", {}, this.query, this.found),
        element("div", {},
          button("−", "zoom out (−)", () => this.#zoom(2)), button("+", "zoom in (+)", () => this.#zoom(0.5)),
          button("whole run", "show the whole run (Home)", () => this.zoomTo(0, this.picture.header.length))),
        this.ofRange, element("div", { class: "czt-push" }, ...(onExport ? [this.exporter] : []))),
      this.legend, this.axisBox, this.lanes, this.memoryBox, this.status, this.tables,
      element("details", { class: "czt-keys" }, element("summary", {}, "keys"), keys), this.tip);
    this.axisCanvas = canvas(this.axisBox);
    this.lanesCanvas = canvas(this.lanes);
    this.lanes.append(this.tall);
    this.memoryCanvas = canvas(this.memoryBox);
    this.#listen();
  }

  #listen() {
    const { lanes, axisBox, memoryBox } = this;
    lanes.addEventListener("scroll", () => this.redraw());
    lanes.addEventListener("keydown", (event) => this.#key(event));
    for (const box of [lanes, axisBox, memoryBox]) {
      box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
      box.addEventListener("pointerdown", (event) => this.#press(event, box));
      box.addEventListener("pointermove", (event) => this.#point(event, box));
      box.addEventListener("pointerleave", () => this.#leave());
    }
    lanes.addEventListener("dblclick", (event) => {
      const place = this.#under(event);
      if (place >= 0) this.#zoomToBar(place);
    });
  }

  #describe() {
    const { header, columns } = this.picture;
    this.title.textContent = readable(header.title, 300);
    const shown = columns.start.length < header.spans ? `${whole(columns.start.length)} bars for ` : "";
    this.note.textContent = `${shown}${whole(header.spans)} spans over ${duration(header.length, header.unit)}` +
      (header.note ? `. ${readable(header.note, 400)}` : "");
    this.lanes.setAttribute("aria-label", `Timeline of ${readable(header.title, 300)}: ${header.lanes.length} lanes`);
    this.legend.replaceChildren(legend(header.kinds, new Set(columns.kind)));
  }

  #restyle() {
    if (!this.picture) return;
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = getComputedStyle(this.host).getPropertyValue("--czt-paper").trim() || "#ffffff";
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
    this.host.classList.toggle("czt-dark", 0.3 * r + 0.6 * g + 0.1 * b < 110);
    this.colours = colours(this.host);
    this.painter = new Painter(this.picture, this.layout, null);
    this.memory.patterns.clear();
    this.redraw();
  }

  #draw() {
    const begun = performance.now();
    const { header } = this.picture, { left, right, range, colours, layout, cursor } = this;
    const tall = Math.min(layout.height + 2, TALLEST);
    this.lanes.style.height = `${tall + 2}px`;
    this.tall.style.height = `${Math.max(0, layout.height - tall)}px`;
    const width = this.lanes.clientWidth;
    if (width <= GUTTER + 20) return; // not laid out yet, or folded away
    const pixels = Math.floor(width - GUTTER);
    if (this.bins?.width !== pixels) this.bins = new Bins(pixels, Math.max(header.kinds.length, 1));
    this.painter.bins = this.bins;
    const top = this.lanes.scrollTop, place = (time) => GUTTER + ((time - left) / (right - left)) * (width - GUTTER);
    const above = fit(this.axisCanvas, width, AXIS_HEIGHT);
    axis(above, { width, left, right, unit: header.unit, length: header.length, colours, range, cursor });
    const context = fit(this.lanesCanvas, width, tall);
    this.painter.lanes(context, { width, height: tall, left, right, top, colours, mask: this.mask, chosen: this.chosen });
    if (range) shade(context, place(range[0]), place(range[1]), 0, tall, colours, width);
    const devices = header.memory.length, height = devices * MEMORY_HEIGHT;
    const below = fit(this.memoryCanvas, width, Math.max(height, 1));
    for (let device = 0; device < devices; device++) {
      this.memory.panel(below, device, device * MEMORY_HEIGHT, { width, left, right, colours });
    }
    if (range && devices) shade(below, place(range[0]), place(range[1]), 0, height, colours, width);
    if (cursor !== null) {
      for (const [pen, high] of [[context, tall], [below, height]]) {
        pen.fillStyle = colours.edge;
        pen.fillRect(Math.round(place(cursor)), 0, 1, high);
      }
    }
    this.ofRange.hidden = !range;
    this.host.dataset.drawMs = (performance.now() - begun).toFixed(1);
    if (`${left} ${right} ${range}` !== this.summed) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.#tabulate(), 200);
    }
  }

  // The tables below: answers, then sums of the selection or of what is in view.
  #tabulate() {
    if (!this.picture) return;
    const { header } = this.picture, { unit } = header, [from, to] = this.range ?? [this.left, this.right];
    this.summed = `${this.left} ${this.right} ${this.range}`;
    const found = sums(this.picture, from, to, this.mask);
    const stretch = `${duration(from, unit)} to ${duration(to, unit)} (${duration(to - from, unit)})`;
    const more = found.length > MOST_ROWS ? `; the longest ${MOST_ROWS} of ${whole(found.length)} names` : "";
    const rows = found.slice(0, MOST_ROWS).map(({ kind, label, group, count, time, longest }) => [
      header.kinds[kind].name, header.strings[label], `${group} lanes`, whole(count), duration(time, unit),
      `${number((100 * time) / Math.max(to - from, 1))} %`, duration(longest, unit),
    ]);
    const columns = ["kind", "name", "where", "spans", "time in it", "of the stretch", "longest span"].map((name, place) => ({ name, number: place > 2 }));
    const merged = this.picture.columns.start.length < header.spans ? " (estimated from merged bars)" : "";
    const caption = `${this.range ? "Selected" : "In view"}${this.mask ? ", found by the search" : ""}: ${stretch}${merged}${more}`;
    this.tables.replaceChildren(...this.answers.map(table), table({ caption, columns, rows }));
  }

  #search() {
    const text = this.query.value.trim();
    this.mask = null;
    this.found.textContent = "";
    if (text) {
      const { mask, found } = search(this.picture, text, this.layout.lanes);
      this.mask = mask;
      this.found.textContent = found ? `${whole(found)} found` : "nothing found";
    }
    this.summed = "";
    this.redraw();
  }

  #searchKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.query.value = "";
      this.#search();
      this.lanes.focus();
    } else if (event.key === "Enter" && this.mask) this.#nextMatch(event.shiftKey ? -1 : 1);
  }

  #nextMatch(direction) {
    const { start } = this.picture.columns, { mask, chosen } = this;
    const here = chosen < 0 ? (direction > 0 ? -1 : Infinity) : start[chosen];
    const ahead = (one, other) => direction * (start[one] - (other === -1 ? here : start[other])) || direction * (one - (other === -1 ? chosen : other));
    let best = -1, first = -1;
    for (let place = 0; place < mask.length; place++) {
      if (!mask[place]) continue;
      if (first < 0 || ahead(place, first) < 0) first = place;
      if (ahead(place, -1) > 0 && (best < 0 || ahead(place, best) < 0)) best = place;
    }
    this.#reveal(best >= 0 ? best : first);
  }

  #time(event) {
    const box = this.lanes.getBoundingClientRect();
    const share = (event.clientX - box.left - GUTTER) / (this.lanes.clientWidth - GUTTER);
    return this.left + Math.min(Math.max(share, 0), 1) * (this.right - this.left);
  }

  #under(event) {
    const box = this.lanes.getBoundingClientRect();
    if (event.clientX - box.left < GUTTER) return -1;
    const y = event.clientY - box.top + this.lanes.scrollTop;
    const row = this.layout.rows.find((row) => y >= row.y && y < row.y + row.height + 1);
    if (!row) return -1;
    const reach = (3 * (this.right - this.left)) / (this.lanes.clientWidth - GUTTER);
    return spanAt(this.picture.columns, row.first, row.count, this.#time(event), reach);
  }

  #wheel(event) {
    const along = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!(event.ctrlKey || event.metaKey || this.host.contains(document.activeElement) || along)) return;
    event.preventDefault();
    if (along) {
      const pixels = (event.deltaX || event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
      this.#pan((pixels * (this.right - this.left)) / (this.lanes.clientWidth - GUTTER));
    } else {
      const lines = event.deltaMode === 1 ? event.deltaY * 33 : event.deltaY;
      this.#zoom(Math.exp(Math.min(Math.max(lines, -240), 240) * 0.0022), this.#time(event));
    }
  }

  #zoom(factor, around = (this.left + this.right) / 2) {
    const left = around - (around - this.left) * factor;
    this.zoomTo(left, left + (this.right - this.left) * factor);
  }

  #pan(time) {
    this.zoomTo(this.left + time, this.right + time);
  }

  #press(event, box) {
    if (event.button > 1 || (box === this.lanes && event.offsetX > this.lanes.clientWidth)) return;
    event.preventDefault();
    this.lanes.focus({ preventScroll: true });
    const from = this.#time(event), at = event.clientX, shown = [this.left, this.right];
    const panning = event.shiftKey || event.button === 1, before = this.range;
    let dragged = false;
    const move = (now) => {
      if (!dragged && Math.abs(now.clientX - at) < 4) return;
      dragged = true;
      this.tip.hidden = true;
      if (panning) {
        const time = ((at - now.clientX) * (shown[1] - shown[0])) / (this.lanes.clientWidth - GUTTER);
        this.zoomTo(shown[0] + time, shown[1] + time);
      } else this.mark([Math.round(Math.min(from, this.#time(now))), Math.round(Math.max(from, this.#time(now)))]);
    };
    const release = (now) => {
      box.removeEventListener("pointermove", move);
      box.removeEventListener("pointerup", release);
      box.removeEventListener("pointercancel", release);
      if (now.type === "pointercancel" || (dragged && panning)) return;
      if (!dragged) {
        const place = box === this.lanes ? this.#under(now) : -1;
        if (place >= 0) this.#choose(place, from);
      } else if (box === this.axisBox) {
        const [left, right] = this.range;
        this.mark(before);
        this.zoomTo(left, right);
      } else this.#select(this.range);
    };
    box.setPointerCapture(event.pointerId);
    box.addEventListener("pointermove", move);
    box.addEventListener("pointerup", release);
    box.addEventListener("pointercancel", release);
  }

  #point(event, box) {
    if (!this.picture) return;
    this.cursor = this.#time(event);
    this.redraw();
    if (event.buttons) return;
    const place = box === this.lanes ? this.#under(event) : -1;
    const device = box === this.memoryBox ? Math.floor(event.offsetY / MEMORY_HEIGHT) : -1;
    const lines = place >= 0 ? this.#told(place) : this.picture.header.memory[device] ? this.#heldAt(device, this.cursor) : null;
    this.lanesCanvas.style.cursor = place >= 0 ? "pointer" : "crosshair";
    this.tip.hidden = !lines;
    if (!lines) return;
    this.tip.replaceChildren(element("b", {}, lines[0]), lines.slice(1).join("\n"));
    const frame = this.host.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
    const { offsetWidth, offsetHeight } = this.tip;
    this.tip.style.left = `${Math.max(0, x + 14 + offsetWidth > frame.width ? x - offsetWidth - 10 : x + 14)}px`;
    this.tip.style.top = `${y + 18 + offsetHeight > frame.height ? y - offsetHeight - 10 : y + 18}px`;
  }

  #leave() {
    this.cursor = null;
    this.tip.hidden = true;
    this.redraw();
  }

  // What a bar is, in lines: the exact text that pointing at it shows.
  #told(place) {
    const { header, columns } = this.picture, { unit } = header, kind = header.kinds[columns.kind[place]];
    const name = (column) => readable(header.strings[columns[column][place]]);
    const what = kind.role === "wait" ? `${kind.name}: ${name("label")}` : kind.role === "hold" ? kind.name : name("label");
    const whose = [name("worker"), name("partition")].filter(Boolean).join(" · ");
    return [
      readable(what), ...(whose ? [whose] : []),
      `${exact(columns.length[place], unit)}`, `from ${exact(columns.start[place], unit)}`, `to ${exact(columns.end[place], unit)}`,
      ...(columns.open[place] ? ["not ended when the recording was"] : []),
      ...(columns.merged[place] > 1 ? [`stands for ${whole(columns.merged[place])} spans of its row`] : []),
    ];
  }

  #heldAt(device, time) {
    const { live, layers } = this.memory.at(device, time), { unit } = this.picture.header;
    return [`${size(live)} live at ${duration(time, unit)}`, ...layers.reverse().map(([name, bytes]) => `${name}: ${size(bytes)}`)];
  }

  #choose(place, time = null) {
    this.#reveal(place);
    const { start, end } = this.picture.columns;
    this.onChoose(place, Math.round(time ?? (start[place] + end[place]) / 2));
  }

  // Outlines a bar, tells it, and brings it into view.
  #reveal(place) {
    if (place < 0) return;
    const { start, end } = this.picture.columns;
    this.chosen = place;
    const [first, ...more] = this.#told(place);
    this.status.replaceChildren(element("b", {}, first), ` ${more.join(" · ")}`);
    if (end[place] < this.left || start[place] > this.right) {
      this.#pan((start[place] + end[place]) / 2 - (this.left + this.right) / 2);
    }
    const row = this.#rowOf(place), { scrollTop, clientHeight } = this.lanes;
    if (row.y < scrollTop || row.y + row.height > scrollTop + clientHeight) this.lanes.scrollTop = row.y - clientHeight / 2;
    this.redraw();
  }

  #rowOf(place) {
    return this.layout.rows.find(({ first, count }) => place >= first && place < first + count);
  }

  #zoomToBar(place) {
    const { start, end } = this.picture.columns, margin = (end[place] - start[place]) * 0.1 || CLOSEST / 2;
    this.zoomTo(start[place] - margin, end[place] + margin);
  }

  #select(range) {
    this.mark(range);
    this.onSelect(range);
  }

  #step(rows, bars) {
    const { rows: all } = this.layout, { columns } = this.picture, middle = (this.left + this.right) / 2;
    if (this.chosen < 0) return this.#reveal(spanAt(columns, all[0].first, all[0].count, middle, Infinity));
    const here = all.indexOf(this.#rowOf(this.chosen));
    const row = all[Math.min(Math.max(here + rows, 0), all.length - 1)];
    const time = (Math.max(columns.start[this.chosen], this.left) + Math.min(columns.end[this.chosen], this.right)) / 2;
    const place = rows ? spanAt(columns, row.first, row.count, time, Infinity) : this.chosen + bars;
    return this.#reveal(Math.min(Math.max(place, row.first), row.first + row.count - 1));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.picture) return;
    const page = (this.right - this.left) * (event.shiftKey ? 0.5 : 0.1), { columns, header } = this.picture;
    const bar = this.chosen, actions = {
      "+": () => this.#zoom(0.6), "=": () => this.#zoom(0.6), "-": () => this.#zoom(1 / 0.6),
      ArrowLeft: () => this.#pan(-page), ArrowRight: () => this.#pan(page), Home: () => this.zoomTo(0, header.length),
      0: () => this.zoomTo(0, header.length), ArrowUp: () => this.#step(-1, 0), ArrowDown: () => this.#step(1, 0),
      "[": () => this.#step(0, -1), "]": () => this.#step(0, 1),
      Enter: () => bar >= 0 && this.#choose(bar), r: () => bar >= 0 && this.#select([columns.start[bar], columns.end[bar]]),
      z: () => this.range ? this.zoomTo(...this.range) : bar >= 0 && this.#zoomToBar(bar),
      Escape: () => this.#select(null), "/": () => this.query.focus(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }
}
