/**
 * State of the display: view, range, states and calls. All parts of the page read this state and change it here. The
 * address of the page contains the state, so that a link restores it. Changes of the range can be undone.
 */

import { fromOneStart } from "./beside";
import { firstFrom, tierOf, type Trace } from "./trace";

export type Kind = "sequence" | "duration" | "distribution" | "summary";
export const KINDS: Kind[] = ["sequence", "duration", "distribution", "summary"];

export interface Look {
  kind: Kind;
  /** Shown range of times. */
  from: number;
  to: number;
  /** Measured range, if it differs from the shown range. */
  marked: [number, number] | null;
  /** Hidden states. */
  hidden: Set<number>;
  /** States and threads chosen for the commands. */
  states: Set<number>;
  threads: Set<number>;
  /** Processes with hidden rows. */
  folded: Set<number>;
  /** Filter of rows: rows are shown only if their names, or the names of their processes, contain this text. */
  rows: string;
  selected: number | null;
  /** True if each file has its own time line, from its own begin. */
  beside: boolean;
  /** True if processors and context switches of threads have rows. */
  processors: boolean;
  logarithmic: boolean;
}

/** Minimum length of a shown range in nanoseconds. */
const RANGE_MIN = 10;
const HISTORY_MAX = 200;

export class View {
  look: Look;
  private past: [number, number][] = [];
  private listeners: ((look: Look, before: Look) => void)[] = [];
  /** The trace with all files shifted to a common start; null before the first use. */
  private fromOneStart: Trace | null = null;

  constructor(private given: Trace) {
    this.look = {
      kind: "sequence",
      from: 0,
      to: Math.max(RANGE_MIN, given.end),
      marked: null,
      hidden: new Set(),
      states: new Set(),
      threads: new Set(),
      folded: new Set(),
      rows: "",
      selected: null,
      beside: false,
      processors: false,
      logarithmic: true,
    };
  }

  /** The trace on the clock of the current view. */
  get trace(): Trace {
    return this.traceIf(this.look.beside);
  }

  /** Returns the original trace, or the trace with all files shifted to a common start. */
  private traceIf(beside: boolean): Trace {
    if (!beside || this.given.files.length < 2) return this.given;
    return (this.fromOneStart ??= fromOneStart(this.given));
  }

  /**
   * The files that are counted separately: each file if they are side by side, otherwise null for all files together.
   */
  get counted(): (number | null)[] {
    const { files } = this.trace;
    return this.look.beside && files.length > 1 ? files.map((_, file) => file) : [null];
  }

  onChange(listener: (look: Look, before: Look) => void): void {
    this.listeners.push(listener);
  }

  /** Changes the state, and notifies all listeners. */
  set(change: Partial<Look>): void {
    const before = this.look;
    this.look = { ...before, ...change };
    for (const listener of this.listeners) listener(this.look, before);
  }

  /** Shows a range, clipped to the time of the trace. Steps of one gesture are undone together. */
  show(from: number, to: number, gesture: "new" | "goes on" = "new"): void {
    const whole = this.whole;
    const length = Math.min(Math.max(to - from, RANGE_MIN), whole);
    const begin = Math.min(Math.max(from + (to - from - length) / 2, 0), whole - length);
    if (gesture === "new") this.remember();
    this.set({ from: begin, to: begin + length });
  }

  /** Saves the current range for `undo`. */
  remember(): void {
    const { from, to } = this.look;
    const last = this.past.at(-1);
    if (last && last[0] === from && last[1] === to) return;
    this.past.push([from, to]);
    if (this.past.length > HISTORY_MAX) this.past.shift();
  }

  /** Returns to the previous range. */
  undo(): void {
    const { from, to } = this.look;
    let last = this.past.pop();
    while (last && last[0] === from && last[1] === to) last = this.past.pop();
    if (last) this.set({ from: last[0], to: last[1] });
  }

  /** Zooms so that time `at` stays at its position. A factor below 1 shows a shorter range. */
  zoom(factor: number, at: number, gesture: "new" | "goes on" = "new"): void {
    const { from, to } = this.look;
    const length = Math.min(Math.max((to - from) * factor, RANGE_MIN), this.whole);
    const begin = at - ((at - from) / (to - from)) * length;
    this.show(begin, begin + length, gesture);
  }

  get whole(): number {
    return wholeOf(this.trace);
  }

  /** Returns the range that contains all spans: of all files on one clock, or of each file if they are side by side. */
  private all(beside: boolean): [number, number] {
    const trace = this.traceIf(beside);
    const whole = wholeOf(trace);
    return [beside && trace.files.length > 1 ? Math.min(trace.files[0]!.begin, whole - RANGE_MIN) : 0, whole];
  }

  /** Shows everything. */
  showAll(): void {
    this.show(...this.all(this.look.beside));
  }

  /** Shows files side by side, or on one clock. If the whole time was shown, the whole time is shown again. */
  setBeside(beside: boolean): void {
    const [from, to] = this.all(this.look.beside);
    const before = this.look;
    this.set({ beside });
    if (before.from <= from && before.to >= to) this.showAll();
    else this.show(before.from, before.to);
  }

  /** The range that the commands measure. */
  get measured(): [number, number] {
    return this.look.marked ?? [this.look.from, this.look.to];
  }

  /** Selects a span, and moves the range if the span is outside. */
  select(span: number | null): void {
    if (span === null) return this.set({ selected: null });
    const [begin, end] = [this.trace.begin[span]!, this.trace.finish[span]!];
    const { from, to } = this.look;
    if (end < from || begin > to) {
      const middle = (begin + end) / 2;
      const half = Math.max(to - from, (end - begin) * 1.5) / 2;
      this.show(middle - half, middle + half);
    }
    this.set({ selected: span });
  }

  /** Replaces the trace by a longer version of it. */
  replace(trace: Trace): void {
    const address = this.address(placesIn(trace, this.given));
    const atEnd = this.look.to >= this.whole;
    const all = atEnd && this.look.from <= 0;
    this.given = trace;
    this.fromOneStart = null;
    this.restore(address);
    const { from, to } = this.look;
    if (all) this.set({ from: 0, to: this.whole });
    else if (atEnd) this.show(this.whole - (to - from), this.whole, "goes on");
  }

  /**
   * Returns the state as the fragment of an address, after `#`. With `places`, returns the fragment for another trace,
   * in which the objects have these indices.
   */
  address(places?: Places): string {
    const { look, trace } = this;
    const moved = (kind: keyof Places, set: Iterable<number>) =>
      [...set].map((index) => (places ? places[kind][index] : index)).filter((index) => index !== undefined);
    const words = new URLSearchParams();
    words.set("view", look.kind);
    words.set("range", `${Math.round(look.from)},${Math.round(look.to)}`);
    if (look.marked) words.set("marked", look.marked.map(Math.round).join());
    const sets = {
      hidden: moved("states", look.hidden),
      states: moved("states", look.states),
      threads: moved("threads", look.threads),
      folded: moved("processes", look.folded),
    };
    for (const [name, set] of Object.entries(sets)) if (set.length > 0) words.set(name, set.join());
    if (look.rows !== "") words.set("rows", look.rows);
    if (look.selected !== null) {
      const tier = tierOf(trace, look.selected);
      const [thread] = moved("threads", [trace.tierThread[tier]!]);
      words.set("call", [thread, trace.tierDepth[tier], trace.begin[look.selected]].join());
    }
    if (look.beside) words.set("beside", "yes");
    if (look.processors) words.set("processors", "yes");
    if (!look.logarithmic) words.set("scale", "linear");
    return words.toString();
  }

  /** Restores the state from the fragment of an address. Uses defaults for missing and invalid parts. */
  restore(address: string): void {
    const words = new URLSearchParams(address);
    const numbers = (name: string) => (words.get(name) ?? "").split(",").filter((word) => word !== "").map(Number);
    const set = (name: string, below: number) =>
      new Set(numbers(name).filter((index) => Number.isInteger(index) && index >= 0 && index < below));
    const range = (name: string): [number, number] | null => {
      const [from, to] = numbers(name);
      return from! < to! ? [Math.max(0, from!), Math.min(wholeOf(trace), to!)] : null;
    };
    const beside = words.get("beside") === "yes";
    const trace = this.traceIf(beside);
    const shown = range("range") ?? this.all(beside);
    this.set({
      kind: KINDS.find((kind) => kind === words.get("view")) ?? "sequence",
      from: shown[0],
      to: Math.max(shown[1], shown[0] + RANGE_MIN),
      marked: range("marked"),
      hidden: set("hidden", trace.states.length),
      states: set("states", trace.states.length),
      threads: set("threads", trace.threads.length),
      folded: set("folded", trace.processes.length),
      rows: words.get("rows") ?? "",
      selected: call(trace, numbers("call")),
      beside,
      processors: words.get("processors") === "yes",
      logarithmic: words.get("scale") !== "linear",
    });
  }
}

/** Indices of the processes, threads and states of a trace in another trace; undefined for missing objects. */
interface Places {
  processes: (number | undefined)[];
  threads: (number | undefined)[];
  states: (number | undefined)[];
}

/**
 * Returns the indices in `trace` of the objects of `before`, an earlier version of the trace. New objects can be
 * anywhere in between.
 */
function placesIn(trace: Trace, before: Trace): Places {
  const [now, then] = [namesOf(trace), namesOf(before)];
  const places = (kind: keyof Places) => {
    const at = new Map(now[kind].map((name, index) => [name, index]));
    return then[kind].map((name) => at.get(name));
  };
  return { processes: places("processes"), threads: places("threads"), states: places("states") };
}

/** Returns keys for processes, threads and states that stay the same while their files grow. */
function namesOf({ processes, threads, states }: Trace): Record<keyof Places, string[]> {
  const ofProcesses = numbered(processes.map(({ file }) => `file ${file}`));
  return {
    processes: ofProcesses,
    threads: numbered(threads.map(({ process }) => ofProcesses[process]!)),
    states: numbered(states.map(({ name, category }) => JSON.stringify([name, category]))),
  };
}

/** Returns each text with its number among equal texts. */
function numbered(all: string[]): string[] {
  const counts = new Map<string, number>();
  return all.map((one) => {
    const count = counts.get(one) ?? 0;
    counts.set(one, count + 1);
    return `${count} of ${one}`;
  });
}

/** Returns the end of the trace, at least the minimum length of a range. */
function wholeOf(trace: Trace): number {
  return Math.max(RANGE_MIN, trace.end);
}

/** Returns the call of this thread and depth that begins at this time, or null. */
function call(trace: Trace, [thread, depth, begin]: number[]): number | null {
  if (thread === undefined || depth === undefined || begin === undefined || !(thread < trace.threads.length)) return null;
  for (let tier = trace.threadTier[thread]!; tier < trace.threadTier[thread + 1]!; tier++) {
    if (trace.tierDepth[tier] !== depth) continue;
    const span = firstFrom(trace.begin, begin, trace.tierFirst[tier]!, trace.tierFirst[tier + 1]!);
    if (span < trace.tierFirst[tier + 1]! && trace.begin[span] === begin) return span;
  }
  return null;
}
