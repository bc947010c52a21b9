/**
 * Computations of the commands and the summary, directly from the columns: totals, overlap, concurrency and
 * percentiles.
 *
 * Totals include only the parts of spans within the range. Counts, means and percentiles are of all calls that touch
 * the range, with their whole durations.
 */

import { sorted } from "./order";
import { touching, type Trace } from "./trace";

/** Range of times: begin and end in nanoseconds. */
export type Range = readonly [number, number];

/** Intervals of time, ascending and disjoint: the begins of all, and the ends of all. */
export interface Stretches {
  begin: Float64Array;
  end: Float64Array;
}

/** Returns a flag for each of `count` items: 1 for the items in the set, or for all items if the set is empty. */
export function chosen(count: number, set: Set<number>): Uint8Array {
  const flags = new Uint8Array(count).fill(set.size === 0 ? 1 : 0);
  for (const index of set) flags[index] = 1;
  return flags;
}

/**
 * Returns a flag for each thread: 1 for the threads in the set (or all threads if the set is empty) that belong to
 * `file` (null for all files).
 */
export function threadsOf(trace: Trace, set: Set<number>, file: number | null): Uint8Array {
  const flags = chosen(trace.threads.length, set);
  trace.threads.forEach(({ process }, thread) => {
    if (file !== null && trace.processes[process]!.file !== file) flags[thread] = 0;
  });
  return flags;
}

/** Calls `see` with each span of the chosen states and threads that has a part in a range. */
export function each(
  trace: Trace,
  range: Range,
  states: Uint8Array,
  threads: Uint8Array,
  see: (span: number, thread: number) => void,
): void {
  for (let tier = 0; tier < trace.tierThread.length; tier++) {
    const thread = trace.tierThread[tier]!;
    if (threads[thread] === 0) continue;
    const [first, after] = touching(trace, tier, range[0], range[1]);
    for (let span = first; span < after; span++) {
      if (states[trace.state[span]!] === 1 && isWithin(trace, span, range)) see(span, thread);
    }
  }
}

/**
 * True if a span that touches a range has a part in it. A span that ends where the range begins, or begins where it
 * ends, has none.
 */
function isWithin(trace: Trace, span: number, [from, to]: Range): boolean {
  const begin = trace.begin[span]!;
  return (begin < to || to >= trace.end) && (begin >= from || trace.finish[span]! > from);
}

/** Returns the nanoseconds of a span within a range. */
export function within(trace: Trace, span: number, [from, to]: Range): number {
  return Math.max(0, Math.min(trace.finish[span]!, to) - Math.max(trace.begin[span]!, from));
}

/** Returns the nanoseconds of a range that the file of a thread covers, from its first to its last record. */
export function told(trace: Trace, [from, to]: Range, thread: number): number {
  const { begin, end } = trace.files[trace.processes[trace.threads[thread]!.process]!.file]!;
  return Math.max(0, Math.min(end, to) - Math.max(begin, from));
}

/** The command *total duration*: the time that the chosen threads spent in the chosen states, summed over calls. */
export function total(trace: Trace, range: Range, states: Uint8Array, threads: Uint8Array) {
  let [sum, count] = [0, 0];
  each(trace, range, states, threads, (span) => {
    sum += within(trace, span, range);
    count++;
  });
  return { total: sum, count };
}

/** Maximum number of choices for an overlap. Memory grows with the number of subsets of the choices. */
export const OVERLAP_MAX = 8;

/** Returns the total length of intervals in nanoseconds. */
export function length({ begin, end }: Stretches): number {
  let sum = 0;
  for (let i = 0; i < begin.length; i++) sum += end[i]! - begin[i]!;
  return sum;
}

/**
 * The command *overlap*. With two or more chosen states: the times at which distinct threads (of the chosen threads, if
 * any) are in these states. With one chosen state: the times at which all chosen threads are in this state. Without a
 * chosen state: the times at which each of them is in any state. A state does not overlap a state that contains it in
 * the same thread. Null if fewer than two states and two threads are chosen, or too many.
 */
export function overlap(trace: Trace, range: Range, states: Set<number>, threads: Set<number>): Stretches | null {
  const [stateCount, threadCount] = [trace.states.length, trace.threads.length];
  const choices =
    states.size >= 2
      ? [...states].map((state) => [chosen(stateCount, new Set([state])), chosen(threadCount, threads)] as const)
      : [...threads].map((thread) => [chosen(stateCount, states), chosen(threadCount, new Set([thread]))] as const);
  if (choices.length < 2 || choices.length > OVERLAP_MAX) return null;
  const counts = choices.map(([states, threads]) => total(trace, range, states, threads).count);
  const steps = counts.reduce((sum, count) => sum + 2 * count, 0);
  const time = new Float64Array(steps);
  // Thread and choice of each step, as `thread * OVERLAP_MAX + choice`.
  const whose = new Float64Array(steps);
  let at = 0;
  choices.forEach(([states, threads], choice) => {
    each(trace, range, states, threads, (span, thread) => {
      whose[at] = whose[at + 1] = thread * OVERLAP_MAX + choice;
      // Begins have even indices, ends have odd indices.
      time[at++] = Math.max(trace.begin[span]!, range[0]);
      time[at++] = Math.min(trace.finish[span]!, range[1]);
    });
  });
  const order = sorted(Uint32Array.from({ length: steps }, (_, step) => step), (step) => time[step]! - range[0]);
  const under = new Int32Array(threadCount * OVERLAP_MAX);
  const together = new Together(choices.length);
  const begin: number[] = [];
  const end: number[] = [];
  let isOn = false;
  for (const step of order) {
    const thread = Math.floor(whose[step]! / OVERLAP_MAX);
    const before = bits(under, thread);
    under[whose[step]!]! += step % 2 === 0 ? 1 : -1;
    together.changes(before, bits(under, thread));
    if (together.hasAll === isOn) continue;
    isOn = !isOn;
    const now = time[step]!;
    // Merge intervals that touch, and drop intervals of length 0.
    if (isOn && end.at(-1) === now) end.pop();
    else if (isOn) begin.push(now);
    else if (begin.at(-1) === now) begin.pop();
    else end.push(now);
  }
  return { begin: Float64Array.from(begin), end: Float64Array.from(end) };
}

/** Returns the choices that a thread matches, as a set of bits. */
function bits(under: Int32Array, thread: number): number {
  let bits = 0;
  for (let choice = 0; choice < OVERLAP_MAX; choice++) if (under[thread * OVERLAP_MAX + choice]! > 0) bits |= 1 << choice;
  return bits;
}

/**
 * Decides if distinct threads can match all choices: by Hall's theorem, if for each subset of the choices at least as
 * many threads match one of them.
 */
class Together {
  /** For each subset of the choices, the number of threads that match one of them, minus the size of the subset. */
  private readonly spare: Int32Array;
  private lacking: number;

  constructor(choices: number) {
    const size = (set: number): number => (set === 0 ? 0 : (set & 1) + size(set >> 1));
    this.spare = Int32Array.from({ length: 1 << choices }, (_, set) => -size(set));
    this.lacking = this.spare.length - 1;
  }

  get hasAll(): boolean {
    return this.lacking === 0;
  }

  changes(before: number, after: number): void {
    for (let set = 1; set < this.spare.length; set++) {
      const by = Number((after & set) !== 0) - Number((before & set) !== 0);
      if (by === 0) continue;
      const had = this.spare[set]!;
      this.spare[set] = had + by;
      if (had === -1 && by === 1) this.lacking--;
      if (had === 0 && by === -1) this.lacking++;
    }
  }
}

/**
 * Returns 1 for each span of a shown state that is not within another such span of its thread, otherwise 0. So a count
 * of the spans with a 1 counts each thread once.
 */
export function outermost(trace: Trace, shown: Uint8Array): Uint8Array {
  const { begin, finish, state, tierFirst, threadTier } = trace;
  const counted = new Uint8Array(begin.length);
  for (let thread = 0; thread < trace.threads.length; thread++) {
    for (let tier = threadTier[thread]!; tier < threadTier[thread + 1]!; tier++) {
      // For each tier above, the index of the current span in it.
      const above = Array.from({ length: tier - threadTier[thread]! }, (_, depth) => tierFirst[threadTier[thread]! + depth]!);
      for (let span = tierFirst[tier]!; span < tierFirst[tier + 1]!; span++) {
        if (shown[state[span]!] === 0) continue;
        const covered = above.some((at, depth) => {
          const after = tierFirst[threadTier[thread]! + depth + 1]!;
          while (at < after && finish[at]! < finish[span]!) at++;
          above[depth] = at;
          return at < after && begin[at]! <= begin[span]! && counted[at] === 1;
        });
        counted[span] = covered ? 0 : 1;
      }
    }
  }
  return counted;
}

/**
 * Returns the mean number of threads in a shown state, for each of `buckets` equal parts of a range.
 */
export function concurrency(
  trace: Trace,
  [from, to]: Range,
  counted: Uint8Array,
  buckets: number,
  threads: Uint8Array | null = null,
): Float64Array {
  const scale = buckets / (to - from);
  // Changes of the count at the begins of buckets, and the contributions of spans that cover only a part of a bucket.
  const steps = new Float64Array(buckets + 1);
  const parts = new Float64Array(buckets);
  const { begin, finish } = trace;
  for (let tier = 0; tier < trace.tierThread.length; tier++) {
    if (threads && threads[trace.tierThread[tier]!] === 0) continue;
    const [first, after] = touching(trace, tier, from, to);
    for (let span = first; span < after; span++) {
      if (counted[span] === 0) continue;
      const left = Math.max(0, (begin[span]! - from) * scale);
      const right = Math.min(buckets, (finish[span]! - from) * scale);
      const one = Math.min(left | 0, buckets - 1);
      const other = Math.min(right | 0, buckets - 1);
      if (one === other) parts[one]! += right - left;
      else {
        parts[one]! += one + 1 - left;
        parts[other]! += right - other;
        steps[one + 1]!++;
        steps[other]!--;
      }
    }
  }
  let under = 0;
  for (let bucket = 0; bucket < buckets; bucket++) {
    under += steps[bucket]!;
    parts[bucket]! += under;
  }
  return parts;
}

/** Figures of a group of calls. Times are in nanoseconds. */
export interface Figures {
  count: number;
  /** Within the range. */
  total: number;
  mean: number;
  least: number;
  median: number;
  p99: number;
  largest: number;
}

/**
 * Returns the percentile by nearest rank: the least of the ascending values that at least this share of them does not
 * exceed.
 */
export function percentile(ascending: Float64Array, share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? 0;
}

/** Returns the middle one of ascending values, or the mean of the two middle values, rounded down. */
function median(ascending: Float64Array): number {
  const half = ascending.length >> 1;
  if (ascending.length % 2 === 1) return ascending[half]!;
  return Math.floor(((ascending[half - 1] ?? 0) + (ascending[half] ?? 0)) / 2);
}

/** Returns the figures of calls with these lengths; `total` is their time within the range. Sorts the lengths. */
export function figures(lengths: Float64Array, total: number): Figures {
  lengths.sort();
  const sum = lengths.reduce((sum, length) => sum + length, 0);
  return {
    count: lengths.length,
    total,
    mean: lengths.length === 0 ? 0 : sum / lengths.length,
    least: lengths[0] ?? 0,
    median: median(lengths),
    p99: percentile(lengths, 0.99),
    largest: lengths.at(-1) ?? 0,
  };
}

/** Lengths of the calls of each group, and the total time of each group within the range. */
export interface Groups {
  lengths: Float64Array[];
  totals: Float64Array;
}

/**
 * Returns the lengths of all calls of the chosen states and threads that touch a range, grouped by the index that
 * `group` returns.
 */
export function grouped(
  trace: Trace,
  range: Range,
  states: Uint8Array,
  threads: Uint8Array,
  groups: number,
  group: (state: number, thread: number) => number,
): Groups {
  const counts = new Uint32Array(groups);
  each(trace, range, states, threads, (span, thread) => counts[group(trace.state[span]!, thread)]!++);
  const lengths = Array.from(counts, (count) => new Float64Array(count));
  const totals = new Float64Array(groups);
  each(trace, range, states, threads, (span, thread) => {
    const which = group(trace.state[span]!, thread);
    lengths[which]![--counts[which]!] = trace.finish[span]! - trace.begin[span]!;
    totals[which]! += within(trace, span, range);
  });
  return { lengths, totals };
}

/** Bins of a histogram: bin `i` counts the lengths from `edges[i]` (included) to `edges[i + 1]` (excluded). */
export interface Histogram {
  edges: number[];
  counts: number[];
}

/**
 * Returns a histogram of ascending lengths with at most `bins` bins, of equal width or with equal ratios of their
 * edges.
 */
export function histogram(lengths: Float64Array, logarithmic: boolean, bins: number): Histogram {
  const least = Math.floor(lengths[0] ?? 0);
  const largest = Math.max(Math.ceil(lengths.at(-1) ?? 0), least + 1);
  const start = logarithmic ? Math.max(1, least) : least;
  const count = logarithmic ? bins : Math.min(bins, largest - start + 1);
  const edges = Array.from({ length: count + 1 }, (_, i) => {
    const share = i / count;
    return logarithmic ? start * ((largest + 1) / start) ** share : start + (largest + 1 - start) * share;
  });
  const counts = new Array<number>(count).fill(0);
  let bin = 0;
  for (const length of lengths) {
    while (bin < count - 1 && length >= edges[bin + 1]!) bin++;
    counts[bin]!++;
  }
  return { edges, counts };
}
