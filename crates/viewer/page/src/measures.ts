/**
 * What the commands and the summary compute, each from the columns themselves: totals, overlap, concurrency and
 * percentiles.
 *
 * Of spans that reach beyond the range only what lies in it counts towards a total. Counts, means and percentiles are of
 * whole calls that touch the range.
 */

import { touching, type Trace } from "./trace";

/** Nanoseconds from and to. */
export type Range = readonly [number, number];

/** Stretches of time in order, without overlaps: all beginnings, and all ends. */
export interface Stretches {
  begin: Float64Array;
  end: Float64Array;
}

/** Which of `count` things are meant: those of the set, or all if it is empty. */
export function chosen(count: number, set: Set<number>): Uint8Array {
  const flags = new Uint8Array(count).fill(set.size === 0 ? 1 : 0);
  for (const index of set) flags[index] = 1;
  return flags;
}

/** Calls `see` with every span of chosen states and threads that touches a range. */
export function each(
  trace: Trace,
  range: Range,
  states: Uint8Array,
  threads: Uint8Array,
  see: (span: number, thread: number) => void,
): void {
  for (let lane = 0; lane < trace.laneThread.length; lane++) {
    const thread = trace.laneThread[lane]!;
    if (threads[thread] === 0) continue;
    const [first, after] = touching(trace, lane, range[0], range[1]);
    for (let span = first; span < after; span++) if (states[trace.state[span]!] === 1) see(span, thread);
  }
}

/** How much of a span lies in a range. */
export function within(trace: Trace, span: number, [from, to]: Range): number {
  return Math.max(0, Math.min(trace.finish[span]!, to) - Math.max(trace.begin[span]!, from));
}

/** The command *total duration*: how long chosen threads were in chosen states, summed over calls. */
export function total(trace: Trace, range: Range, states: Uint8Array, threads: Uint8Array) {
  let [sum, count] = [0, 0];
  each(trace, range, states, threads, (span) => {
    sum += within(trace, span, range);
    count++;
  });
  return { total: sum, count };
}

/** When at least one of the chosen threads is in one of the chosen states. */
export function union(trace: Trace, range: Range, states: Uint8Array, threads: Uint8Array): Stretches {
  let count = 0;
  each(trace, range, states, threads, () => count++);
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  let at = 0;
  each(trace, range, states, threads, (span) => {
    begin[at] = Math.max(trace.begin[span]!, range[0]);
    end[at++] = Math.min(trace.finish[span]!, range[1]);
  });
  return joined(begin, end);
}

/**
 * The stretches that some intervals cover. Which beginning belongs to which end does not matter: something is under way
 * as long as more have begun than ended.
 */
function joined(begin: Float64Array, end: Float64Array): Stretches {
  begin.sort();
  end.sort();
  const stretches: Stretches = { begin: new Float64Array(begin.length), end: new Float64Array(begin.length) };
  let [count, began, ended] = [0, 0, 0];
  while (began < begin.length) {
    const from = begin[began++]!;
    for (;;) {
      while (began < begin.length && begin[began]! <= end[ended]!) began++;
      ended++;
      if (ended === began) break;
    }
    const to = end[ended - 1]!;
    if (to > from) {
      stretches.begin[count] = from;
      stretches.end[count++] = to;
    }
  }
  return { begin: stretches.begin.slice(0, count), end: stretches.end.slice(0, count) };
}

/** When both are. */
export function intersection(one: Stretches, other: Stretches): Stretches {
  const begin: number[] = [];
  const end: number[] = [];
  for (let i = 0, j = 0; i < one.begin.length && j < other.begin.length; ) {
    const from = Math.max(one.begin[i]!, other.begin[j]!);
    const to = Math.min(one.end[i]!, other.end[j]!);
    if (from < to) {
      begin.push(from);
      end.push(to);
    }
    if (one.end[i]! < other.end[j]!) i++;
    else j++;
  }
  return { begin: Float64Array.from(begin), end: Float64Array.from(end) };
}

/** How long stretches are together. */
export function length({ begin, end }: Stretches): number {
  let sum = 0;
  for (let i = 0; i < begin.length; i++) sum += end[i]! - begin[i]!;
  return sum;
}

/**
 * The command *overlap*: when all chosen states are under way at once, each on any of the chosen threads; with fewer than
 * two states, when all chosen threads are in the state, or any, at once. Null if neither two states nor two threads
 * are chosen.
 */
export function overlap(trace: Trace, range: Range, states: Set<number>, threads: Set<number>): Stretches | null {
  const each =
    states.size >= 2
      ? [...states].map((state) => [new Set([state]), threads] as const)
      : [...threads].map((thread) => [states, new Set([thread])] as const);
  if (each.length < 2) return null;
  const unions = each.map(([states, threads]) =>
    union(trace, range, chosen(trace.states.length, states), chosen(trace.threads.length, threads)),
  );
  return unions.reduce(intersection);
}

/**
 * Of each span whether its thread is in a shown state because of it and of no span around it, so that who counts those
 * with a 1 counts no thread twice.
 */
export function outermost(trace: Trace, shown: Uint8Array): Uint8Array {
  const { begin, finish, state, laneFirst, threadLane } = trace;
  const counted = new Uint8Array(begin.length);
  for (let thread = 0; thread < trace.threads.length; thread++) {
    for (let lane = threadLane[thread]!; lane < threadLane[thread + 1]!; lane++) {
      // Spans of the lanes above that count: where each such lane has got to.
      const above = Array.from({ length: lane - threadLane[thread]! }, (_, depth) => laneFirst[threadLane[thread]! + depth]!);
      for (let span = laneFirst[lane]!; span < laneFirst[lane + 1]!; span++) {
        if (shown[state[span]!] === 0) continue;
        const covered = above.some((at, depth) => {
          const after = laneFirst[threadLane[thread]! + depth + 1]!;
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
 * How many threads are in a state, in the mean of each of `buckets` equal parts of a range. Where a part is shorter than
 * what it shows, that is how many there are.
 */
export function concurrency(
  trace: Trace,
  [from, to]: Range,
  counted: Uint8Array,
  buckets: number,
  threads: Uint8Array | null = null,
): Float64Array {
  const scale = buckets / (to - from);
  // Differences of whole buckets, and parts of single ones.
  const steps = new Float64Array(buckets + 1);
  const parts = new Float64Array(buckets);
  const { begin, finish } = trace;
  for (let lane = 0; lane < trace.laneThread.length; lane++) {
    if (threads && threads[trace.laneThread[lane]!] === 0) continue;
    const [first, after] = touching(trace, lane, from, to);
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

/** What is told of the calls of one kind. Times in nanoseconds. */
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

/** The value that a share of ascending values does not exceed: the nearest rank. */
export function percentile(ascending: Float64Array, share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? 0;
}

/** Figures of the lengths of some calls, of which `total` lies in the range. Sorts the lengths. */
export function figures(lengths: Float64Array, total: number): Figures {
  lengths.sort();
  const sum = lengths.reduce((sum, length) => sum + length, 0);
  return {
    count: lengths.length,
    total,
    mean: lengths.length === 0 ? 0 : sum / lengths.length,
    least: lengths[0] ?? 0,
    median: percentile(lengths, 0.5),
    p99: percentile(lengths, 0.99),
    largest: lengths.at(-1) ?? 0,
  };
}

/** Lengths of calls, group by group, and how much of each group lies in the range. */
export interface Groups {
  lengths: Float64Array[];
  totals: Float64Array;
}

/** The lengths of all calls of chosen states and threads that touch a range, by the group that `group` names. */
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

/** Bins of a histogram: bin `i` has the lengths from `edges[i]` up to `edges[i + 1]`. */
export interface Histogram {
  edges: number[];
  counts: number[];
}

/** How lengths are distributed over about `bins` bins, equally wide or in equal ratios. Lengths ascend. */
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
