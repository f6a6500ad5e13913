// What of a row of spans is drawn at a zoom: wide spans one by one, narrow ones as the pixels that they share.

// Spans at least so many pixels wide are drawn by themselves.
export const WIDE = 2;
// What a span without extent counts for in its pixel: enough to be seen, too little to outweigh any other.
const INSTANT = 1e-6;

// First place in [first, last) of a sorted array whose value is at least (or, with `above`, more than) `value`.
export function bound(array, value, first, last, above = false) {
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (array[middle] < value || (above && array[middle] === value)) first = middle + 1;
    else last = middle;
  }
  return first;
}

export class Bins {
  constructor(width, kinds) {
    this.width = width;
    this.kinds = kinds;
    this.sums = new Float64Array(width * kinds);
    this.kind = new Int16Array(width); // of the pixel: the kind that takes most of it; -1: nothing narrow
    this.share = new Float32Array(width); // of the pixel that narrow spans take
    this.wide = []; // places of wide spans
  }

  // Fills the bins with spans [first, first + count) of a row, which do not overlap and are in order of time.
  // `mask`, where given, leaves out spans whose entry is 0.
  fill({ start, end, kind }, first, count, left, right, mask = null) {
    const { width, kinds, sums } = this;
    const scale = width / (right - left);
    this.wide.length = 0;
    sums.fill(0);
    const last = bound(start, right, first, first + count, true);
    let narrow = false;
    for (let place = bound(end, left, first, last); place < last; place++) {
      if (mask && !mask[place]) continue;
      const from = (start[place] - left) * scale, to = (end[place] - left) * scale;
      if (to - from >= WIDE) {
        this.wide.push(place);
        continue;
      }
      narrow = true;
      const begin = from > 0 ? from : 0, stop = to < width ? to : width;
      const firstPixel = Math.min(width - 1, Math.floor(begin)), lastPixel = Math.min(width - 1, Math.floor(stop));
      const own = kind[place];
      if (firstPixel === lastPixel) {
        sums[firstPixel * kinds + own] += stop - begin + INSTANT;
      } else {
        sums[firstPixel * kinds + own] += firstPixel + 1 - begin;
        for (let pixel = firstPixel + 1; pixel < lastPixel; pixel++) sums[pixel * kinds + own] += 1;
        sums[lastPixel * kinds + own] += stop - lastPixel;
      }
    }
    if (narrow) this.#settle();
    else {
      this.kind.fill(-1);
      this.share.fill(0);
    }
    return this;
  }

  #settle() {
    const { width, kinds, sums, kind, share } = this;
    for (let pixel = 0, place = 0; pixel < width; pixel++) {
      let most = 0, which = -1, sum = 0;
      for (let one = 0; one < kinds; one++, place++) {
        const part = sums[place];
        sum += part;
        if (part > most) {
          most = part;
          which = one;
        }
      }
      kind[pixel] = which;
      share[pixel] = sum < 1 ? sum : 1;
    }
  }
}

// The span of a row at a moment, or the nearest one within `reach` of it; -1 where there is none.
export function spanAt({ start, end }, first, count, time, reach) {
  const place = bound(start, time, first, first + count, true) - 1;
  let best = -1, distance = reach;
  for (const candidate of [place, place + 1]) {
    if (candidate < first || candidate >= first + count) continue;
    const away = Math.max(start[candidate] - time, time - end[candidate], 0);
    if (away <= distance && (best < 0 || away < distance)) {
      best = candidate;
      distance = away;
    }
  }
  return best;
}
