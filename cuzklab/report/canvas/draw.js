// Draws lanes, axis and marks of a timeline on a canvas. Names are drawn with fillText, never as markup.
import { duration, readable, tick, tickStep } from "./words.js";

export const GUTTER = 140; // left of the lanes: their names
export const AXIS_HEIGHT = 26;
const SECTION_HEIGHT = 21, LANE_GAP = 4;
const TEXT_FROM = 26; // narrowest bar that may carry its name

// Heights and places of lanes and of their rows, sections included.
export function layOut(header, columns) {
  const lanes = header.lanes.map((lane) => ({ ...lane, rows: [] }));
  columns.row_lane.forEach((lane, row) => lanes[lane].rows.push({
    first: columns.row_first[row], count: columns.row_count[row],
  }));
  const sections = [], rows = [];
  let y = 0, section = null;
  lanes.forEach((lane, place) => {
    if (lane.section !== section) {
      section = lane.section;
      sections.push({ y, label: readable(section) });
      y += SECTION_HEIGHT;
    }
    const height = lane.rows.length <= 2 ? 17 : Math.max(5, Math.floor(52 / lane.rows.length));
    lane.y = y;
    lane.text = readable(lane.label);
    for (const row of lane.rows) {
      rows.push(Object.assign(row, { y, height, lane: place }));
      y += height + 1;
    }
    lane.height = y - lane.y;
    y += LANE_GAP;
  });
  return { lanes, sections, rows, height: y };
}

// A canvas of `width` by `height` CSS pixels, sharp on every screen.
export function fit(canvas, width, height) {
  const ratio = Math.min(globalThis.devicePixelRatio || 1, 3);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// What is around work, or in its place: drawn so that work stands out.
export const isQuiet = (kind) => kind.role === "wait" || kind.role === "call";

const DARK = "#14181c", LIGHT = "#ffffff";

export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((place) => (parseInt(colour.slice(place, place + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.27 ? DARK : LIGHT;
}

// A tile of a pattern ("/", ".", "x", "-", …) in a colour, transparent elsewhere.
export function tile(context, pattern, colour) {
  const size = 6, canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const pen = canvas.getContext("2d");
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = 1;
  const line = (...points) => {
    pen.beginPath();
    for (let at = 0; at < points.length; at += 4) {
      pen.moveTo(points[at], points[at + 1]);
      pen.lineTo(points[at + 2], points[at + 3]);
    }
    pen.stroke();
  };
  if (pattern === "/" || pattern === "x") line(-1, size + 1, size + 1, -1, -1, 1, 1, -1, size - 1, size + 1, size + 1, size - 1);
  if (pattern === "\\" || pattern === "x") line(-1, -1, size + 1, size + 1, -1, size - 1, 1, size + 1, size - 1, -1, size + 1, 1);
  if (pattern === "-" || pattern === "+") line(0, 2.5, size, 2.5);
  if (pattern === "|" || pattern === "+") line(2.5, 0, 2.5, size);
  if (pattern === ".") pen.fillRect(2, 2, 1.5, 1.5);
  return context.createPattern(canvas, "repeat");
}

export class Painter {
  constructor(picture, layout, bins) {
    Object.assign(this, picture, { layout, bins, patterns: new Map() });
    this.texts = picture.header.strings.map((text) => readable(text));
  }

  // Fills that do not depend on the zoom.
  #fills(context, colours) {
    if (this.coloured === colours) return;
    this.coloured = colours;
    this.patterns.clear();
    this.kindInk = this.header.kinds.map((kind) => inkOn(kind.colour));
    this.header.kinds.forEach((kind, place) => {
      if (!kind.pattern) return;
      const ink = kind.role === "wait" ? kind.colour : this.kindInk[place] === LIGHT ? "#ffffff8c" : "#00000059";
      this.patterns.set(place, tile(context, kind.pattern, ink));
    });
  }

  // Lanes of [left, right) into `context`; `top` is how far they are scrolled.
  lanes(context, { width, height, left, right, top, colours, mask, chosen }) {
    this.#fills(context, colours);
    const { layout } = this;
    const scale = (width - GUTTER) / (right - left);
    context.textBaseline = "middle";
    for (const section of layout.sections) {
      const y = section.y - top;
      if (y < -SECTION_HEIGHT || y > height) continue;
      context.fillStyle = colours.rule;
      context.fillRect(0, Math.round(y) + 0.5, width, 1);
      context.font = `600 10.5px ${colours.font}`;
      context.fillStyle = colours.muted;
      context.fillText(fitted(context, section.label, width - 12), 6, y + 12);
    }
    this.#grid(context, { width, height, left, right, colours });
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, height);
    context.clip();
    context.font = `11px ${colours.font}`;
    for (const row of layout.rows) {
      const y = row.y - top;
      if (y + row.height < 0 || y > height) continue;
      if (mask) {
        context.globalAlpha = 0.16;
        this.#row(context, row, y, left, right, scale, colours, null);
        context.globalAlpha = 1;
      }
      this.#row(context, row, y, left, right, scale, colours, mask);
    }
    if (chosen >= 0) this.#outline(context, chosen, top, left, scale, colours);
    context.restore();
    context.font = `12px ${colours.font}`;
    this.#more(context, { width, height, top, colours });
    context.fillStyle = colours.ink;
    for (const lane of layout.lanes) {
      const y = lane.y - top;
      if (y + lane.height < 0 || y > height) continue;
      context.fillText(fitted(context, lane.text, GUTTER - 14), 6, y + Math.min(lane.height, 17) / 2 + 0.5);
    }
  }

  // Says how many lanes are below, where a scroll bar is easily overlooked.
  #more(context, { width, height, top, colours }) {
    const below = this.layout.lanes.filter((lane) => lane.y + lane.height > top + height + 4).length;
    if (!below) return;
    const text = `${below} more ${below === 1 ? "lane" : "lanes"} below`, wide = context.measureText(text).width + 16;
    context.fillStyle = colours.paper;
    context.fillRect(width - wide - 6, height - 24, wide, 20);
    context.strokeStyle = colours.edge;
    context.lineWidth = 1;
    context.strokeRect(width - wide - 6.5, height - 24.5, wide, 20);
    context.fillStyle = colours.ink;
    context.fillText(text, width - wide + 2, height - 13.5);
  }

  #grid(context, { width, height, left, right, colours }) {
    const step = tickStep(right - left, (width - GUTTER) / 110);
    context.fillStyle = colours.grid;
    for (let at = Math.ceil(left / step) * step; at <= right; at += step) {
      context.fillRect(Math.round(GUTTER + ((at - left) / (right - left)) * (width - GUTTER)), 0, 1, height);
    }
  }

  #row(context, row, y, left, right, scale, colours, mask) {
    const { bins, columns, header } = this;
    const whole = context.globalAlpha;
    bins.fill(columns, row.first, row.count, left, right, mask);
    const { kind, share } = bins;
    // Runs of pixels that look alike are one rectangle.
    for (let pixel = 0; pixel < bins.width;) {
      const own = kind[pixel];
      if (own < 0) {
        pixel += 1;
        continue;
      }
      const level = Math.ceil(share[pixel] * 4);
      let stop = pixel + 1;
      while (stop < bins.width && kind[stop] === own && Math.ceil(share[stop] * 4) === level) stop += 1;
      context.globalAlpha = whole * (0.3 + 0.175 * level) * (isQuiet(header.kinds[own]) ? 0.3 : 1);
      context.fillStyle = header.kinds[own].colour;
      context.fillRect(GUTTER + pixel, y, stop - pixel, row.height);
      pixel = stop;
    }
    context.globalAlpha = whole;
    for (const place of bins.wide) this.#bar(context, place, y, row.height, left, scale, colours);
  }

  #bar(context, place, y, height, left, scale, colours) {
    const { columns, header } = this;
    const own = columns.kind[place], kind = header.kinds[own];
    const edge = GUTTER + this.bins.width;
    const x = Math.max(GUTTER - 2, GUTTER + (columns.start[place] - left) * scale);
    const width = Math.min(edge + 2, GUTTER + (columns.end[place] - left) * scale) - x;
    const quiet = isQuiet(kind);
    const whole = context.globalAlpha;
    context.fillStyle = kind.colour;
    if (quiet || columns.merged[place] > 1) context.globalAlpha = whole * (quiet ? 0.16 : 0.6);
    const inset = width > 4 ? 0.5 : 0;
    context.fillRect(x, y, width - inset, height);
    context.globalAlpha = whole;
    if (this.patterns.has(own) && width > 5 && height > 6) {
      context.fillStyle = this.patterns.get(own);
      context.fillRect(x, y, width - inset, height);
    }
    if (quiet && width > 4) {
      context.strokeStyle = colours.edge;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
    if (width < TEXT_FROM || height < 12) return;
    const shown = Math.max(x, GUTTER), room = Math.min(x + width, edge) - shown - 8;
    if (room < TEXT_FROM - 8) return;
    const text = fitted(context, this.texts[columns.label[place]], room, true);
    if (!text) return;
    if (quiet && kind.pattern) {
      // A name on hatching has its own ground.
      context.fillStyle = colours.paper;
      context.fillRect(shown + 2, y + 2, context.measureText(text).width + 5, height - 4);
    }
    context.fillStyle = quiet ? colours.ink : this.kindInk[own];
    context.fillText(text, shown + 4, y + height / 2 + 0.5);
  }

  #outline(context, place, top, left, scale, colours) {
    const row = this.layout.rows.find(({ first, count }) => place >= first && place < first + count);
    if (!row) return;
    const x = GUTTER + (this.columns.start[place] - left) * scale;
    const width = Math.max(3, (this.columns.end[place] - this.columns.start[place]) * scale);
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.strokeRect(x - 1, row.y - top - 1, width + 2, row.height + 2);
  }
}

// As much of a text as has room; nothing, with `orNothing`, where that says too little.
export function fitted(context, text, room, orNothing = false) {
  if (context.measureText(text).width <= room) return text;
  let keep = Math.floor((text.length * room) / Math.max(context.measureText(text).width, 1)) - 1;
  while (keep > 1 && context.measureText(`${text.slice(0, keep)}…`).width > room) keep -= 1;
  if (keep < 3) return orNothing ? "" : `${text.slice(0, 1)}…`;
  return `${text.slice(0, keep)}…`;
}

export function axis(context, { width, left, right, unit, length, colours, range, cursor }) {
  const step = tickStep(right - left, (width - GUTTER) / 110);
  const place = (time) => GUTTER + ((time - left) / (right - left)) * (width - GUTTER);
  context.font = `11px ${colours.font}`;
  context.textBaseline = "middle";
  context.fillStyle = colours.muted;
  context.fillText(unit === "step" ? "step" : "since the start", 6, 13);
  for (let at = Math.ceil(left / step) * step; at <= right; at += step) {
    const x = place(at), text = tick(at, step, unit, right);
    context.fillStyle = colours.rule;
    context.fillRect(Math.round(x), 20, 1, 6);
    context.fillStyle = colours.muted;
    const half = context.measureText(text).width / 2;
    if (x - half >= GUTTER - 24 && x + half <= width) context.fillText(text, x - half, 11);
  }
  // Where in the whole run this is.
  context.fillStyle = colours.rule;
  context.fillRect(GUTTER, 0, width - GUTTER, 2);
  context.fillStyle = colours.accent;
  const from = Math.max(0, left / length), to = Math.min(1, right / length);
  context.fillRect(GUTTER + from * (width - GUTTER), 0, Math.max(2, (to - from) * (width - GUTTER)), 2);
  if (range) shade(context, place(range[0]), place(range[1]), 4, 22, colours, width);
  if (range) label(context, duration(range[1] - range[0], unit), (place(range[0]) + place(range[1])) / 2, width, colours);
  if (cursor !== null) {
    context.fillStyle = colours.ink;
    context.fillRect(Math.round(place(cursor)), 16, 1, 10);
  }
}

function label(context, text, x, width, colours) {
  const wide = context.measureText(text).width + 10;
  const at = Math.min(Math.max(x - wide / 2, GUTTER), width - wide);
  context.fillStyle = colours.accent;
  context.fillRect(at, 4, wide, 16);
  context.fillStyle = colours.paper;
  context.fillText(text, at + 5, 12.5);
}

export function shade(context, from, to, y, height, colours, width) {
  const x0 = Math.max(GUTTER, from), x1 = Math.min(width, to);
  if (x1 <= x0) return;
  context.fillStyle = colours.selection;
  context.fillRect(x0, y, x1 - x0, height);
  context.fillStyle = colours.accent;
  if (from >= GUTTER) context.fillRect(Math.round(x0), y, 1, height);
  if (to <= width) context.fillRect(Math.round(x1) - 1, y, 1, height);
}
