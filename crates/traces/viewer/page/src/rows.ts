/** The rows of a time line: a heading for each process, then its counters and threads. */

import type { Look } from "./view";
import { firstAbove, type Trace } from "./trace";

export const TIER_PIXELS = 18;
const HEAD_PIXELS = 24;
const COUNTER_PIXELS = 40;
const GAP_PIXELS = 4;

export type Row =
  | { kind: "process"; process: number; top: number; height: number }
  | { kind: "counter"; series: number; top: number; height: number }
  | { kind: "thread"; thread: number; top: number; height: number };

const KINDS = ["process", "counter", "thread"] as const;

/** All rows and their positions, stored in columns because there can be millions. Row objects are created on demand. */
export class Rows {
  readonly count: number;
  private readonly kinds: Uint8Array;
  private readonly index: Uint32Array;
  private readonly tops: Float64Array;

  constructor(trace: Trace, look: Look, file: number | null) {
    const wanted = look.rows.trim().toLowerCase();
    const has = (name: string) => name.toLowerCase().includes(wanted);
    const threads = byProcess(trace, trace.threads.map((thread) => thread.process));
    const series = byProcess(trace, trace.series.map((one) => trace.threads[one.thread]!.process));
    // Threads without states that set a counter have no row of their own: the row of the counter represents them.
    const counting = trace.series.filter((one) => !one.system).map((one) => one.thread);
    const counts = new Set(counting.filter((thread) => trace.threadTier[thread] === trace.threadTier[thread + 1]));
    const kinds: number[] = [];
    const index: number[] = [];
    const tops: number[] = [0];
    const push = (kind: number, which: number, height: number) => {
      kinds.push(kind);
      index.push(which);
      tops.push(tops.at(-1)! + height);
    };
    trace.processes.forEach(({ name, file: its }, process) => {
      if (file !== null && its !== file) return;
      const all = wanted === "" || has(name);
      const kept = threads(process).filter((thread) => !counts.has(thread) && (all || has(trace.threads[thread]!.name)));
      const counters = series(process).filter(
        (which) => (look.processors || !trace.series[which]!.system) && (all || has(trace.series[which]!.name)),
      );
      if (!all && kept.length + counters.length === 0) return;
      push(0, process, HEAD_PIXELS);
      if (look.folded.has(process)) return;
      for (const which of counters) push(1, which, COUNTER_PIXELS);
      for (const thread of kept) {
        const tiers = trace.threadTier[thread + 1]! - trace.threadTier[thread]!;
        push(2, thread, Math.max(1, tiers) * TIER_PIXELS + GAP_PIXELS);
      }
    });
    this.count = kinds.length;
    this.kinds = Uint8Array.from(kinds);
    this.index = Uint32Array.from(index);
    this.tops = Float64Array.from(tops);
  }

  get height(): number {
    return this.tops[this.count]!;
  }

  row(at: number): Row {
    const top = this.tops[at]!;
    const place = { top, height: this.tops[at + 1]! - top };
    const which = this.index[at]!;
    switch (KINDS[this.kinds[at]!]!) {
      case "process":
        return { kind: "process", process: which, ...place };
      case "counter":
        return { kind: "counter", series: which, ...place };
      case "thread":
        return { kind: "thread", thread: which, ...place };
    }
  }

  /** Returns the rows between two vertical positions. */
  between(top: number, bottom: number): Row[] {
    const rows = [];
    for (let at = this.at(top); at < this.count && this.tops[at]! < bottom; at++) rows.push(this.row(at));
    return rows;
  }

  /** Returns the index of the row at a vertical position; the last row for positions below all rows. */
  at(height: number): number {
    return Math.max(0, Math.min(this.count, firstAbove(this.tops, height, 0, this.count + 1)) - 1);
  }

  /** Returns the row of a thread, or null. */
  ofThread(thread: number): Row | null {
    for (let at = 0; at < this.count; at++) {
      if (this.kinds[at] === 2 && this.index[at] === thread) return this.row(at);
    }
    return null;
  }
}

/** Returns a function that returns the indices of the items of a process, in order. */
function byProcess(trace: Trace, processes: number[]): (process: number) => number[] {
  const of: number[][] = trace.processes.map(() => []);
  processes.forEach((process, thing) => of[process]!.push(thing));
  return (process) => of[process]!;
}
