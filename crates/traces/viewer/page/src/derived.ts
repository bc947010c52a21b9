/** Values computed from the trace and the view: computed on first use, and cached as long as they are valid. */

import { Levels } from "./levels";
import { outermost, overlap, threadsOf, type Stretches } from "./measures";
import { Extremes } from "./overlays";
import { looks, type Looks } from "./palette";
import type { Trace } from "./trace";
import type { View } from "./view";

export class Derived {
  private trace: Trace | null = null;
  private hidden: Set<number> | null = null;
  private extremes = new Map<number, Extremes>();
  private overlapsOf = "";
  private overlapsAre: { file: number | null; stretches: Stretches | null }[] = [];
  looks: Looks[] = [];
  /** For each state, 1 if it is shown, otherwise 0. */
  shown: Uint8Array = new Uint8Array();
  levels!: Levels;
  /** For each span, 1 if the concurrency graph counts it: see {@link outermost}. */
  counted: Uint8Array = new Uint8Array();
  /** Longest time in nanoseconds between departure and arrival of a flow. */
  longestFlow = 0;

  constructor(private readonly view: View) {
    this.refresh();
  }

  /** Updates the cached values; called after each change of the view. */
  refresh(): void {
    const { trace, look } = this.view;
    if (trace !== this.trace) {
      this.trace = trace;
      this.hidden = null;
      this.extremes.clear();
      this.overlapsOf = "";
      this.looks = looks(trace);
      const { fromTime, toTime } = trace.flows;
      this.longestFlow = fromTime.reduce((longest, sent, flow) => Math.max(longest, Math.abs(toTime[flow]! - sent)), 0);
    }
    if (!this.hidden || !equal(look.hidden, this.hidden)) {
      this.hidden = look.hidden;
      this.shown = Uint8Array.from(trace.states, (_, state) => (look.hidden.has(state) ? 0 : 1));
      this.levels = new Levels(trace, this.shown);
      this.counted = outermost(trace, this.shown);
    }
  }

  extremesOf(series: number): Extremes {
    let extremes = this.extremes.get(series);
    if (!extremes) this.extremes.set(series, (extremes = new Extremes(this.view.trace.series[series]!.value)));
    return extremes;
  }

  /**
   * Returns the times in the measured range at which all chosen states or threads overlap, for each file that is
   * counted separately.
   */
  overlaps(): { file: number | null; stretches: Stretches | null }[] {
    const { trace, look, measured, counted } = this.view;
    const of = [measured.join(), [...look.states].join(), [...look.threads].join()].join(";");
    if (of !== this.overlapsOf) {
      this.overlapsOf = of;
      this.overlapsAre = counted.map((file) => {
        if (file === null) return { file, stretches: overlap(trace, measured, look.states, look.threads) };
        const flags = threadsOf(trace, look.threads, file);
        const threads = new Set([...flags.keys()].filter((thread) => flags[thread] === 1));
        // An empty set of states means all states; an empty set of threads means that no threads were chosen.
        const few = threads.size === 0 || (look.states.size < 2 && look.threads.size === 0);
        return { file, stretches: few ? null : overlap(trace, measured, look.states, threads) };
      });
    }
    return this.overlapsAre;
  }

  /** Returns the overlaps computed last, for drawing while the range moves. */
  get overlapsKnown(): { file: number | null; stretches: Stretches | null }[] {
    const { look } = this.view;
    return look.states.size >= 2 || look.threads.size >= 2 ? this.overlapsAre : [];
  }
}

function equal(one: Set<number>, other: Set<number>): boolean {
  return one.size === other.size && [...one].every((index) => other.has(index));
}
