// Numbers as people read them: times, sizes, ticks of an axis.

const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const SIZES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const whole = (value) => grouped.format(value);

// To `digits` significant digits, whole numbers in full.
export function number(value, digits = 3) {
  if (Number.isInteger(value)) return whole(value);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(decimals, 9) });
}

export function duration(value, unit = "ns") {
  if (unit === "step") return `${whole(value)} ${value === 1 ? "step" : "steps"}`;
  if (value === 0) return "0 s";
  const [name, size] = TIMES.find(([, size]) => Math.abs(value) >= size) ?? TIMES.at(-1);
  return `${number(value / size)} ${name}`;
}

// With the exact nanoseconds behind, where rounding has hidden some.
export function exact(value, unit = "ns") {
  const short = duration(value, unit);
  return unit === "step" || value < 1000 ? short : `${short} (${whole(value)} ns)`;
}

export function size(bytes) {
  const [name, divisor] = SIZES.find(([, divisor]) => bytes >= divisor) ?? SIZES.at(-1);
  return `${number(bytes / divisor)} ${name}`;
}

// Distance of ticks: 1, 2 or 5 times a power of ten, at most `most` in a stretch.
export function tickStep(stretch, most) {
  const rough = Math.max(stretch / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
}

// A moment on an axis whose ticks are `step` apart: in one unit for all, with the decimals that tell them apart.
export function tick(value, step, unit, largest) {
  if (unit === "step") return whole(value);
  const [name, divisor] = TIMES.find(([, divisor]) => largest >= 2 * divisor) ?? TIMES.at(-1);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / divisor) - 1e-9));
  const text = (value / divisor).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return `${text} ${name}`;
}

// A name out of a trace on one line: characters that cannot be shown, or that turn text around, are replaced.
export function readable(text, most = 200) {
  const flat = String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return flat.length > most ? `${flat.slice(0, most >> 1)}…${flat.slice(1 - (most >> 1))}` : flat;
}
