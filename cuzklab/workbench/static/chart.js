// Lanes of bars and a step line of memory over one time axis, on two canvases; zoom, pan and selection by mouse and keys.

class LaneChart {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.data = null;
    this.from = 0;
    this.to = 1;
    this.chosen = -1;
    this.canvas = el("canvas", { class: "cz-canvas", tabindex: "0", role: "img",
      "aria-label": "Timeline: arrow keys move, plus and minus zoom, n and p go to the next and previous wait, 0 shows all" });
    this.canvas.chart = this; // so that a driver of the page can find a bar's place
    this.memory = el("canvas", { class: "cz-canvas", role: "img", "aria-label": "Device memory over time, against the limit" });
    this.note = el("div", { class: "cz-hover", text: " " });
    const button = (text, title, act) => el("button", { type: "button", class: "cz-small", text, title, "aria-label": title, onclick: act });
    this.bar = el("div", { class: "cz-toolbar" },
      button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)),
      button("◀", "Earlier", () => this.pan(-0.25)), button("▶", "Later", () => this.pan(0.25)),
      button("All", "Show all", () => this.all()),
      button("Next wait", "Select the next wait (n)", () => this.step(1)));
    this.element = el("div", { class: "cz-chart" }, this.bar, this.canvas, this.memory, this.note);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const canvas of [this.canvas, this.memory]) {
      canvas.addEventListener("mousemove", (event) => this.hover(event));
      canvas.addEventListener("mousedown", (event) => this.down(event));
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event));
      }, { passive: false });
      canvas.addEventListener("dblclick", () => this.all());
    }
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.element);
  }

  // `data` is what `unpacked` makes of a picture. Of a run that is still being simulated (`partial`) the axis reaches as
  // far as that of the one before, so that nothing jumps when the rest comes.
  show(data, partial = false) {
    const whole = !this.data || (this.from === 0 && this.to === this.data.end_s);
    this.simulated = data.end_s;
    this.partial = partial;
    if (partial) data.end_s = Math.max(data.end_s, this.data?.end_s ?? 0);
    this.data = data;
    if (whole || this.to > data.end_s) { this.from = 0; this.to = data.end_s || 1; }
    this.chosen = -1;
    const syntheses = data.lanes.filter((lane) => lane.kind === "synthesis").length;
    const thin = Math.max(3, Math.min(9, Math.floor(90 / Math.max(1, syntheses))));
    this.rows = data.lanes.map((lane) => (lane.kind === "synthesis" ? thin : 22));
    this.draw();
  }

  all() { this.from = 0; this.to = this.data?.end_s || 1; this.draw(); }
  zoom(factor, around = (this.from + this.to) / 2) {
    const end = this.data?.end_s || 1;
    const width = Math.min(end, Math.max(end * 1e-5, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.place(around - share * width, width);
  }
  pan(share) { this.place(this.from + share * (this.to - this.from), this.to - this.from); }
  place(from, width) {
    const end = this.data?.end_s || 1;
    this.from = Math.min(Math.max(0, from), Math.max(0, end - width));
    this.to = Math.min(end, this.from + width);
    this.draw();
  }
  key(event) {
    const act = { ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), 0: () => this.all(), n: () => this.step(1), p: () => this.step(-1) }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
  step(by) {
    const count = this.data?.waits.lane.length ?? 0;
    if (!count) return;
    this.choose((this.chosen + by + count) % count);
  }
  choose(number) {
    this.chosen = number;
    const { start, length } = this.data.waits;
    if (number >= 0 && (start[number] < this.from || start[number] + length[number] > this.to)) {
      const width = Math.max(this.to - this.from, length[number] * 1.5);
      this.place(start[number] + length[number] / 2 - width / 2, width);
    }
    this.draw();
    this.onSelect(number);
  }

  get left() { return this.narrow ? 84 : 116; }
  x(time) { return this.left + ((time - this.from) / (this.to - this.from)) * (this.width - this.left - 10); }
  time(event) {
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    return this.from + ((at - this.left) / (this.width - this.left - 10)) * (this.to - this.from);
  }
  lane(event) {
    let top = event.clientY - this.canvas.getBoundingClientRect().top - 2;
    return this.rows.findIndex((height) => (top -= height) < 0);
  }

  down(event) {
    if (!this.data) return;
    const began = this.time(event), x = event.clientX, from = this.from, perPixel = (this.to - this.from) / (this.width - this.left - 10);
    let moved = false;
    const move = (now) => {
      if (Math.abs(now.clientX - x) > 3) moved = true;
      if (moved) this.place(from - (now.clientX - x) * perPixel, this.to - this.from);
    };
    const up = () => {
      window.removeEventListener("mousemove", move);
      window.removeEventListener("mouseup", up);
      if (!moved && event.target === this.canvas) this.choose(this.waitAt(this.lane(event), began));
    };
    window.addEventListener("mousemove", move);
    window.addEventListener("mouseup", up);
  }
  waitAt(lane, time) {
    const { lane: lanes, start, length } = this.data.waits;
    const slack = ((this.to - this.from) / this.width) * 2;
    let best = -1;
    for (let at = 0; at < lanes.length; at += 1)
      if (lanes[at] === lane && time >= start[at] - slack && time <= start[at] + length[at] + slack)
        if (best < 0 || length[at] < length[best]) best = at;
    return best;
  }
  hover(event) {
    if (!this.data) return;
    const time = this.time(event), lane = event.currentTarget === this.canvas ? this.lane(event) : -1;
    const words = [seconds(Math.max(0, time))];
    const { bars, waits, names, vram } = this.data;
    if (lane >= 0) {
      words.push(this.data.lanes[lane].label);
      for (let at = 0; at < bars.lane.length; at += 1)
        if (bars.lane[at] === lane && time >= bars.start[at] && time <= bars.start[at] + bars.length[at])
          words.push(`${names[bars.name[at]]} ${this.data.texts[bars.partition[at]]} ${seconds(bars.length[at])}`);
      const wait = this.waitAt(lane, time);
      if (wait >= 0) words.push(this.sentence(wait));
    } else {
      let at = -1;
      for (let next = 0; next < vram.time.length && vram.time[next] <= time; next += 1) at = next;
      words.push(`${(at < 0 ? 0 : vram.gib[at]).toFixed(2)} of ${vram.limit_gib.toFixed(2)} GiB`);
    }
    this.note.textContent = words.join(" · ");
  }
  sentence(number) {
    const { kind, on, holder, length } = this.data.waits;
    return `waits ${seconds(length[number])} for ${kind[number]} ${on[number]}` + (holder[number] ? `, held by ${holder[number]}` : "");
  }

  draw() {
    this.width = this.element.clientWidth;
    if (!this.data || this.width < 80) return;
    this.narrow = this.width < 640;
    const { lanes, bars, waits, names, colours } = this.data;
    const look = ink(this.element);
    const height = this.rows.reduce((sum, one) => sum + one, 0) + 26;
    const context = sharp(this.canvas, this.width, height);
    context.font = "12px sans-serif";
    const tops = [];
    let top = 2, firstSynthesis = true;
    lanes.forEach((lane, number) => {
      tops.push(top);
      const label = lane.kind === "synthesis" ? (firstSynthesis ? "syntheses" : "") : lane.label;
      if (lane.kind === "synthesis") firstSynthesis = false;
      context.fillStyle = look.muted;
      context.textAlign = "right";
      context.textBaseline = "middle";
      if (label) context.fillText(cut(context, label, this.left - 10), this.left - 8, top + (lane.kind === "synthesis" ? 6 : 11));
      top += this.rows[number];
    });
    const bottom = top;
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.width - this.left - 8, height);
    context.clip();
    this.axis(context, look, 0, bottom);
    this.yetToCome(context, look, bottom);
    context.textAlign = "left";
    const put = (lane, start, length, paint, label, inset = 2) => {
      const a = this.x(start), b = Math.max(a + 0.7, this.x(start + length));
      if (b < this.left || a > this.width) return;
      const tall = this.rows[lane] - (this.rows[lane] > 10 ? 4 : this.rows[lane] > 5 ? 2 : 1);
      context.fillStyle = paint;
      context.fillRect(a, tops[lane] + inset, b - a, tall - 2 * (inset - 2));
      if (label && b - a > 34 && tall > 10) {
        context.fillStyle = readable(paint);
        context.fillText(cut(context, label, b - Math.max(a, this.left) - 6), Math.max(a, this.left) + 3, tops[lane] + 11);
      }
    };
    const lines = hatch(context, look.wait);
    for (let at = 0; at < waits.lane.length; at += 1) put(waits.lane[at], waits.start[at], waits.length[at], lines, "");
    for (let at = 0; at < bars.lane.length; at += 1) put(bars.lane[at], bars.start[at], bars.length[at], colours[bars.name[at]], names[bars.name[at]].replace("held by ", ""));
    if (this.chosen >= 0) {
      const a = this.x(waits.start[this.chosen]), b = this.x(waits.start[this.chosen] + waits.length[this.chosen]);
      context.strokeStyle = look.limit;
      context.lineWidth = 2;
      context.strokeRect(a, tops[waits.lane[this.chosen]] + 1, Math.max(3, b - a), this.rows[waits.lane[this.chosen]] - 2);
    }
    context.restore();
    context.fillStyle = look.muted;
    context.textAlign = "center";
    for (const at of ticks(this.from, this.to, this.width / 110)) context.fillText(seconds(at), Math.min(this.x(at), this.width - 22), bottom + 13);
    this.drawMemory(look);
  }

  drawMemory(look) {
    const { time, gib, limit_gib: limit, failed } = this.data.vram;
    const height = 96, base = height - 4, most = Math.max(limit * 1.08, ...gib) || 1;
    const context = sharp(this.memory, this.width, height);
    context.font = "12px sans-serif";
    const y = (value) => base - (value / most) * (base - 12);
    context.fillStyle = look.muted;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(`${limit.toFixed(limit % 1 ? 1 : 0)} GiB`, this.left - 8, y(limit));
    context.fillText("VRAM", this.left - 8, y(limit / 2));
    context.fillText("0", this.left - 8, base - 4);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.width - this.left - 8, height);
    context.clip();
    this.axis(context, look, 0, base);
    context.beginPath();
    context.moveTo(this.x(0), base);
    let level = 0;
    for (let at = 0; at < time.length; at += 1) {
      context.lineTo(this.x(time[at]), y(level));
      level = gib[at];
      context.lineTo(this.x(time[at]), y(level));
    }
    context.lineTo(this.x(this.simulated), y(level));
    context.lineTo(this.x(this.simulated), base);
    context.fillStyle = "rgba(0,114,178,0.35)";
    context.fill();
    context.strokeStyle = "#0072B2";
    context.lineWidth = 1;
    context.stroke();
    context.strokeStyle = look.limit;
    context.setLineDash([6, 4]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(this.left, y(limit));
    context.lineTo(this.width, y(limit));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = look.limit;
    for (const at of failed) { context.fillRect(this.x(at) - 1, y(limit) - 5, 3, 10); }
    context.restore();
  }

  // What is not simulated yet.
  yetToCome(context, look, bottom) {
    if (!this.partial) return;
    const from = Math.max(this.left, this.x(this.simulated));
    context.fillStyle = look.raised;
    context.fillRect(from, 0, this.width - from, bottom);
    context.fillStyle = look.muted;
    context.textAlign = "left";
    if (this.width - from > 90) context.fillText("simulating …", from + 8, 13);
  }

  axis(context, look, top, bottom) {
    context.strokeStyle = look.rule;
    context.lineWidth = 1;
    context.beginPath();
    for (const at of ticks(this.from, this.to, this.width / 110)) {
      const x = Math.round(this.x(at)) + 0.5;
      context.moveTo(x, top);
      context.lineTo(x, bottom);
    }
    context.stroke();
  }
}
