/** What follows from the trace and from what is shown of it; computed when somebody asks, and kept while it holds. */

import { Levels } from "./levels";
import { outermost, overlap, type Stretches } from "./measures";
import { Extremes } from "./overlays";
import { looks, type Looks } from "./palette";
import type { Trace } from "./trace";
import type { View } from "./view";

export class Derived {
  private trace: Trace | null = null;
  private hidden: Set<number> | null = null;
  private extremes = new Map<number, Extremes>();
  private overlapOf = "";
  private overlapIs: Stretches | null = null;
  looks: Looks[] = [];
  /** Of each state whether it is shown. */
  shown: Uint8Array = new Uint8Array();
  levels!: Levels;
  /** Which spans put a thread into a shown state, see {@link outermost}. */
  counted: Uint8Array = new Uint8Array();
  /** The longest time that a flow is under way. */
  longestFlow = 0;

  constructor(private readonly view: View) {
    this.refresh();
  }

  /** To be called after each change of the view. */
  refresh(): void {
    const { trace, look } = this.view;
    if (trace !== this.trace) {
      this.trace = trace;
      this.hidden = null;
      this.extremes.clear();
      this.overlapOf = "";
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

  /** When all that is chosen is under way at once, in the measured range. */
  overlap(): Stretches | null {
    const { trace, look, measured } = this.view;
    const of = [measured.join(), [...look.states].join(), [...look.threads].join()].join(";");
    if (of !== this.overlapOf) {
      this.overlapOf = of;
      this.overlapIs = overlap(trace, measured, look.states, look.threads);
    }
    return this.overlapIs;
  }

  /** The same as far as it is known, for drawing while the range moves. */
  get overlapKnown(): Stretches | null {
    const { look } = this.view;
    return look.states.size >= 2 || look.threads.size >= 2 ? this.overlapIs : null;
  }
}

function equal(one: Set<number>, other: Set<number>): boolean {
  return one.size === other.size && [...one].every((index) => other.has(index));
}
