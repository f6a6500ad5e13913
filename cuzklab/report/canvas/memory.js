// Device memory below the lanes, on their axis. Each pixel shows the moment in it at which most bytes are live.
import { bound } from "./bins.js";
import { GUTTER, fitted, tile } from "./draw.js";
import { readable, size } from "./words.js";

export const MEMORY_HEIGHT = 118;

// For each pixel the place in `time` of the moment with the most live bytes in it; -1 before the first.
export function highest(time, live, first, count, left, right, width) {
  const places = new Int32Array(width), last = first + count;
  let place = bound(time, left, first, last, true) - 1;
  for (let pixel = 0; pixel < width; pixel++) {
    const until = left + ((right - left) * (pixel + 1)) / width;
    let best = place;
    while (place + 1 < last && time[place + 1] < until) {
      place += 1;
      if (best < first || live[place] > live[best]) best = place;
    }
    places[pixel] = best < first ? -1 : best;
  }
  return places;
}

export class MemoryPainter {
  constructor({ header, columns }) {
    Object.assign(this, { header, columns, patterns: new Map() });
    this.peaks = header.memory.map((_, device) => {
      const first = columns.device_first[device], last = first + columns.device_count[device];
      let peak = 0;
      for (let place = first; place < last; place++) if (columns.live[place] > peak) peak = columns.live[place];
      return peak;
    });
  }

  // The layers' bytes after an event: a place in `live`.
  levels(device, place) {
    const { columns } = this;
    return this.header.memory[device].layers.map((layer) => {
      const first = columns.layer_first[layer.place], last = first + columns.layer_count[layer.place];
      const at = bound(columns.layer_event, place - columns.device_first[device], first, last, true) - 1;
      return at < first ? 0 : columns.layer_level[at];
    });
  }

  // What is live at a moment: [name, bytes] of each layer that holds something, and the sum.
  at(device, time) {
    const { columns } = this;
    const first = columns.device_first[device], count = columns.device_count[device];
    const place = bound(columns.live_time, time, first, first + count, true) - 1;
    if (place < first) return { live: 0, layers: [] };
    const levels = this.levels(device, place);
    const layers = this.header.memory[device].layers.map(({ name }, number) => [readable(name, 60), levels[number]]);
    return { live: columns.live[place], layers: layers.filter(([, bytes]) => bytes > 0) };
  }

  panel(context, device, y, { width, left, right, colours }) {
    const { columns } = this, memory = this.header.memory[device];
    const first = columns.device_first[device], count = columns.device_count[device];
    const pixels = Math.max(1, Math.floor(width - GUTTER)), height = MEMORY_HEIGHT - 26, bottom = y + MEMORY_HEIGHT - 6;
    const wanted = memory.failures.map((failure) => failure.live + failure.bytes);
    const peak = this.peaks[device];
    const top = Math.max(peak, memory.limit, ...wanted, 1) * 1.04;
    const at = (bytes) => bottom - (bytes / top) * height;
    const places = highest(columns.live_time, columns.live, first, count, left, right, pixels);
    // Neighbouring pixels that show the same moment are one rectangle a layer.
    for (let pixel = 0; pixel < pixels;) {
      const place = places[pixel];
      let stop = pixel + 1;
      while (stop < pixels && places[stop] === place) stop += 1;
      if (place >= 0) this.#stack(context, device, place, GUTTER + pixel, stop - pixel, at);
      pixel = stop;
    }
    this.#words(context, memory, y, at, peak, { width, colours });
    for (const failure of memory.failures) {
      const x = GUTTER + ((failure.time - left) / (right - left)) * pixels;
      if (x < GUTTER || x > width) continue;
      context.strokeStyle = colours.bad;
      context.lineWidth = 2;
      context.setLineDash([3, 2]);
      line(context, x, at(failure.live), x, at(failure.live + failure.bytes));
      context.setLineDash([]);
      const end = at(failure.live + failure.bytes);
      line(context, x - 4, end - 4, x + 4, end + 4);
      line(context, x - 4, end + 4, x + 4, end - 4);
    }
  }

  #stack(context, device, place, x, width, at) {
    const levels = this.levels(device, place);
    let sum = 0;
    this.header.memory[device].layers.forEach((layer, number) => {
      const bytes = levels[number];
      if (!bytes) return;
      const from = at(sum), to = at(sum + bytes);
      context.fillStyle = layer.colour;
      context.fillRect(x, to, width, from - to);
      if (layer.pattern && width > 3) {
        if (!this.patterns.has(layer.pattern)) this.patterns.set(layer.pattern, tile(context, layer.pattern, "#0000004d"));
        context.fillStyle = this.patterns.get(layer.pattern);
        context.fillRect(x, to, width, from - to);
      }
      sum += bytes;
    });
  }

  #words(context, memory, y, at, peak, { width, colours }) {
    context.fillStyle = colours.rule;
    context.fillRect(0, y, width, 1);
    context.fillRect(GUTTER, at(0), width - GUTTER, 1);
    context.textBaseline = "middle";
    context.font = `12px ${colours.font}`;
    context.fillStyle = colours.ink;
    context.fillText(fitted(context, readable(memory.title), GUTTER - 14), 6, y + 16);
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.muted;
    context.fillText(`peak ${size(peak)}`, 6, y + 33);
    if (!memory.limit) return;
    context.fillStyle = colours.bad;
    context.fillText(`limit ${size(memory.limit)}`, 6, y + 49);
    context.strokeStyle = colours.bad;
    context.lineWidth = 1.5;
    context.setLineDash([6, 4]);
    line(context, GUTTER, at(memory.limit), width, at(memory.limit));
    context.setLineDash([]);
  }
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
