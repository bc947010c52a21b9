/**
 * A trace in the memory of the page: columns of numbers, and short tables of names.
 *
 * Spans are stored tier by tier. A *tier* is one depth of one thread. The spans of a tier do not overlap and are in
 * order of time, so that a binary search finds the spans of any range. All times are nanoseconds after the origin, the
 * earliest time of any file.
 */

export interface FileInfo {
  name: string;
  /** Time of its first record. */
  begin: number;
  end: number;
  /** Notes of the reader: defects of the file, and other remarks. */
  notes: string[];
}

export interface Process {
  name: string;
  file: number;
  /** Other properties, each a label and a text. */
  facts: [string, string][];
}

export interface Thread {
  name: string;
  process: number;
  /** Number of records dropped because the buffer was full. */
  dropped: number;
}

export interface State {
  name: string;
  category: string;
  /** Declared colour, `#rrggbb`; null if the page chooses. */
  color: string | null;
}

/** A number of one thread over time. Each value holds until the next sample. */
export interface Series {
  name: string;
  unit: string;
  thread: number;
  /** True for data of the operating system: the processor of the thread, and its number of context switches. */
  system: boolean;
  time: Float64Array;
  value: Float64Array;
}

/** Arguments of spans, in columns: numbers or texts. */
export interface Arguments {
  /** Indices of the spans, ascending. */
  span: Uint32Array;
  name: Uint32Array;
  value: (number | string)[];
}

/** Flows from one thread to another, in columns, sorted by the time of departure. */
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
  /** Wall-clock time at the origin, in nanoseconds since 1970, as a decimal text; null if unknown. */
  wallClock: string | null;
  /** The last time of any file. */
  end: number;
  /** Thread and depth of each tier; tiers are sorted by thread, then depth. */
  tierThread: Uint32Array;
  tierDepth: Uint32Array;
  /** First span of each tier, followed by the number of spans. */
  tierFirst: Uint32Array;
  /** First tier of each thread, followed by the number of tiers. */
  threadTier: Uint32Array;
  begin: Float64Array;
  finish: Float64Array;
  state: Uint32Array;
  /** Spans without an end in their file. */
  unfinished: Set<number>;
  series: Series[];
  arguments: Arguments;
  flows: Flows;
}

/**
 * Returns the first index in `low..high` for which `holds` is true, or `high`. `holds` must be true for all later
 * indices, too.
 */
export function firstThat(low: number, high: number, holds: (index: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the index in `low..high` of the first number greater than `than` in an ascending column, or `high`. */
export function firstAbove(column: ArrayLike<number>, than: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle]! > than) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the index in `low..high` of the first number of at least `from` in an ascending column, or `high`. */
export function firstFrom(column: ArrayLike<number>, from: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle]! >= from) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Returns the range `[first, after)` of the spans of a tier that touch a range of time. A span without length touches a
 * range that contains its time.
 */
export function touching(trace: Trace, tier: number, from: number, to: number): [number, number] {
  const first = trace.tierFirst[tier]!;
  const after = trace.tierFirst[tier + 1]!;
  return [firstFrom(trace.finish, from, first, after), firstAbove(trace.begin, to, first, after)];
}

/** Returns the tier of a span. */
export function tierOf(trace: Trace, span: number): number {
  return firstAbove(trace.tierFirst, span, 0, trace.tierFirst.length) - 1;
}

/** Returns the thread of a span. */
export function threadOf(trace: Trace, span: number): number {
  return trace.tierThread[tierOf(trace, span)]!;
}

/** Returns the arguments of a span, in order. */
export function argumentsOf(trace: Trace, span: number): { name: string; value: number | string }[] {
  const { span: spans, name, value } = trace.arguments;
  const found = [];
  for (let i = firstFrom(spans, span, 0, spans.length); spans[i] === span; i++) {
    found.push({ name: trace.names[name[i]!]!, value: value[i]! });
  }
  return found;
}

/** Returns the name of a thread, with its process and file if the trace has several. */
export function threadLabel(trace: Trace, thread: number): string {
  const { name, process } = trace.threads[thread]!;
  const { name: its, file } = trace.processes[process]!;
  if (trace.processes.length === 1) return name;
  return trace.files.length === 1 ? `${its}: ${name}` : `${trace.files[file]!.name}: ${its}: ${name}`;
}
