// The view: a picture on canvases with one axis, what is selected and chosen in it, and the tables below it.
import { Bins } from "./bins.js";
import { decode, inflate } from "./columns.js";
import { AXIS_HEIGHT, GUTTER, Painter, axis, fit, layOut, shade } from "./draw.js";
import { furnish } from "./furniture.js";
import { MEMORY_HEIGHT, MemoryPainter } from "./memory.js";
import { colours, element, legend, table } from "./parts.js";
import { listen } from "./pointer.js";
import { search, sums } from "./sums.js";
import { told } from "./tell.js";
import { duration, number, readable, whole } from "./words.js";

const TALLEST = 430, MOST_ROWS = 12, CLOSEST = 12; // pixels of lanes; rows of the sums; time units across the view

export class TimelineView {
  constructor(host, { onSelect = () => {}, onChoose = () => {}, onExport = null } = {}) {
    Object.assign(this, { host, onSelect, onChoose, answers: [], range: null, chosen: -1, cursor: null, mask: null });
    furnish(this, onExport);
    listen(this);
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
    columns.end = new Float64Array(columns.start.length);
    for (let place = 0; place < columns.end.length; place++) columns.end[place] = columns.start[place] + columns.length[place];
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

  // Words in the line that tells.
  say(words) {
    this.status.replaceChildren(element("b", {}, words));
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

  search() {
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

  zoom(factor, around = (this.left + this.right) / 2) {
    const left = around - (around - this.left) * factor;
    this.zoomTo(left, left + (this.right - this.left) * factor);
  }

  pan(time) {
    this.zoomTo(this.left + time, this.right + time);
  }

  choose(place, time = null) {
    this.reveal(place);
    const { start, end } = this.picture.columns;
    this.onChoose(place, Math.round(time ?? (start[place] + end[place]) / 2));
  }

  // Outlines a bar, tells it, and brings it into view.
  reveal(place) {
    if (place < 0) return;
    const { start, end } = this.picture.columns;
    this.chosen = place;
    const [first, ...more] = told(this.picture, place);
    this.status.replaceChildren(element("b", {}, first), ` ${more.join(" · ")}`);
    if (end[place] < this.left || start[place] > this.right) {
      this.pan((start[place] + end[place]) / 2 - (this.left + this.right) / 2);
    }
    const row = this.rowOf(place), { scrollTop, clientHeight } = this.lanes;
    if (row.y < scrollTop || row.y + row.height > scrollTop + clientHeight) this.lanes.scrollTop = row.y - clientHeight / 2;
    this.redraw();
  }

  rowOf(place) {
    return this.layout.rows.find(({ first, count }) => place >= first && place < first + count);
  }

  zoomToBar(place) {
    const { start, end } = this.picture.columns, margin = (end[place] - start[place]) * 0.1 || CLOSEST / 2;
    this.zoomTo(start[place] - margin, end[place] + margin);
  }

  select(range) {
    this.mark(range);
    this.onSelect(range);
  }
}
