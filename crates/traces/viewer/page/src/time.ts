/** Converts times in nanoseconds to text and back. */

const UNITS: [string, number][] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

function unitFor(ns: number): [string, number] {
  return UNITS.find(([, size]) => Math.abs(ns) >= size) ?? UNITS[3]!;
}

/** Returns a duration in a suitable unit: `12.5 ms`. */
export function duration(ns: number): string {
  const [unit, size] = unitFor(ns);
  const value = ns / size;
  const digits = size === 1 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.max(1, Math.abs(value)))));
  return `${Number(value.toFixed(digits)).toLocaleString("en")} ${unit}`;
}

/** Returns a point in time, with enough digits to show a difference of `step` nanoseconds: `1.204317 s`. */
export function instant(ns: number, step: number): string {
  const [unit, size] = unitFor(ns);
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(size / Math.max(1, step)))));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** Parses a time, such as `1.2 ms`, or `1200` for nanoseconds. Returns null if the text is not a time. */
export function parse(text: string): number | null {
  const parts = /^\s*(-?[\d.,]+)\s*(ns|us|µs|μs|ms|s|min|h)?\s*$/.exec(text);
  if (!parts) return null;
  const value = Number(parts[1]!.replaceAll(",", ""));
  const sizes: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12 };
  return Number.isFinite(value) ? value * sizes[parts[2] ?? "ns"]! : null;
}

/** Returns about `count` round times within a range, and the distance between them. */
export function ticks(from: number, to: number, count: number): { step: number; times: number[] } {
  const rough = Math.max(1, (to - from) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough)!;
  const times = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) times.push(time);
  return { step, times };
}
