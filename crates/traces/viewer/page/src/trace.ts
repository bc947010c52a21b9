/**
 * A trace as the page holds it: columns of numbers, and short tables of names.
 *
 * Spans lie tier by tier. A *tier* is one depth of one thread: its spans do not overlap and are in order of time, so that
 * a binary search finds those of any range. All times are nanoseconds after the origin, the earliest time of any file.
 */

export interface FileInfo {
  name: string;
  /** When its first record was made. */
  begin: number;
  end: number;
  /** What was wrong with it, or is worth knowing, in the reader's words. */
  notes: string[];
}

export interface Process {
  name: string;
  file: number;
  /** What else is known of it, each a label and a text. */
  facts: [string, string][];
}

export interface Thread {
  name: string;
  process: number;
  /** How many records had no room. */
  dropped: number;
}

export interface State {
  name: string;
  category: string;
  /** As declared, `#rrggbb`; null: the page chooses. */
  color: string | null;
}

/** A number over time, of one thread. It keeps each value until the next. */
export interface Series {
  name: string;
  unit: string;
  thread: number;
  /** Told by the system: on which processor the thread is, and how often it was taken from it. */
  system: boolean;
  time: Float64Array;
  value: Float64Array;
}

/** A number or a text that belongs to a span. */
export interface Arguments {
  /** In ascending order. */
  span: Uint32Array;
  name: Uint32Array;
  value: (number | string)[];
}

/** From a point of one thread to a point of another, by the time of leaving. */
export interface Flows {
  fromThread: Uint32Array;
  fromTime: Float64Array;
  toThread: Uint32Array;
  toTime: Float64Array;
}

export interface Trace {
  files: FileInfo[];
  processes: Process[];
  threads: Thread[];
  states: State[];
  /** The names of arguments. */
  names: string[];
  /** The wall clock at the origin, nanoseconds since 1970 in decimal; null if no file tells. */
  wallClock: string | null;
  /** The last time of any file. */
  end: number;
  /** Of each tier its thread and its depth; tiers are by thread, then depth. */
  tierThread: Uint32Array;
  tierDepth: Uint32Array;
  /** Of each tier the first span, and at the end their number. */
  tierFirst: Uint32Array;
  /** Of each thread the first tier, and at the end their number. */
  threadTier: Uint32Array;
  begin: Float64Array;
  finish: Float64Array;
  state: Uint32Array;
  /** Spans that did not end before their file did. */
  unfinished: Set<number>;
  series: Series[];
  arguments: Arguments;
  flows: Flows;
}

/** The first of `low..high` that `holds`, or `high`. What holds must hold from there on. */
export function firstThat(low: number, high: number, holds: (index: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first number in `low..high` of an ascending column that is greater than `than`, or `high`. */
export function firstAbove(column: ArrayLike<number>, than: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle]! > than) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first number in `low..high` of an ascending column that is `from` or more, or `high`. */
export function firstFrom(column: ArrayLike<number>, from: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle]! >= from) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The spans of a tier that touch a range of time: `[first, after)`. A span without length touches where it is. */
export function touching(trace: Trace, tier: number, from: number, to: number): [number, number] {
  const first = trace.tierFirst[tier]!;
  const after = trace.tierFirst[tier + 1]!;
  return [firstFrom(trace.finish, from, first, after), firstAbove(trace.begin, to, first, after)];
}

/** The tier that a span lies in. */
export function tierOf(trace: Trace, span: number): number {
  return firstAbove(trace.tierFirst, span, 0, trace.tierFirst.length) - 1;
}

/** The thread that a span belongs to. */
export function threadOf(trace: Trace, span: number): number {
  return trace.tierThread[tierOf(trace, span)]!;
}

/** What a span was given, in order. */
export function argumentsOf(trace: Trace, span: number): { name: string; value: number | string }[] {
  const { span: spans, name, value } = trace.arguments;
  const found = [];
  for (let i = firstFrom(spans, span, 0, spans.length); spans[i] === span; i++) {
    found.push({ name: trace.names[name[i]!]!, value: value[i]! });
  }
  return found;
}

/** The name of a thread with its process and file, as far as there are several. */
export function threadLabel(trace: Trace, thread: number): string {
  const { name, process } = trace.threads[thread]!;
  const { name: its, file } = trace.processes[process]!;
  if (trace.processes.length === 1) return name;
  return trace.files.length === 1 ? `${its}: ${name}` : `${trace.files[file]!.name}: ${its}: ${name}`;
}
