/**
 * Reads the columns that `crates/traces/viewer/src/columns.rs` writes. That file describes the format.
 */

import type { FileInfo, Process, Series, State, Thread, Trace } from "./trace";

const MAGIC = "TLVCOL01";

interface Header {
  files: FileInfo[];
  processes: Process[];
  threads: Thread[];
  states: State[];
  names: string[];
  texts: string[];
  wallClock: string | null;
  end: number;
  tiers: number;
  spans: number;
  unfinished: number;
  series: { name: string; unit: string; thread: number; system: boolean; count: number }[];
  arguments: number;
  flows: number;
}

/** Reads varints from bytes: seven bits per byte, the lowest bits first. */
class Reader {
  at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  number(): number {
    const { bytes } = this;
    let byte = bytes[this.at++]!;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = bytes[this.at++]!;
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80);
    return value;
  }

  numbers(count: number): Uint32Array {
    const numbers = new Uint32Array(count);
    for (let i = 0; i < count; i++) numbers[i] = this.number();
    return numbers;
  }

  /** Reads ascending numbers, each encoded as the difference from the previous number. */
  ascending<Column extends Uint32Array | Float64Array>(column: Column): Column {
    let last = 0;
    for (let i = 0; i < column.length; i++) column[i] = last += this.number();
    return column;
  }

  floats(count: number): Float64Array {
    const from = this.at;
    this.at += count * 8;
    const bytes = this.bytes.slice(from, this.at);
    return new Float64Array(bytes.buffer);
  }
}

/** Returns the trace that these columns contain. */
export function decode(bytes: Uint8Array): Trace {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) {
    throw new Error("these are not columns of a trace, or columns of another version");
  }
  const after = 12 + view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, after))) as Header;
  const reader = new Reader(bytes.subarray(after));
  const trace = { ...spans(header, reader), unfinished: new Set(reader.ascending(new Uint32Array(header.unfinished))) };
  const series = header.series.map((one) => seriesOf(one, reader));
  const given = argumentsOf(header, reader);
  const flows = flowsOf(header, reader);
  if (reader.at !== bytes.length - after) throw new Error("the columns of the trace are truncated or too long");
  const { files, processes, threads, states, names, wallClock, end } = header;
  return { files, processes, threads, states, names, wallClock, end, ...trace, series, arguments: given, flows };
}

function spans({ tiers, spans, threads }: Header, reader: Reader) {
  const tierThread = reader.ascending(new Uint32Array(tiers));
  const tierDepth = reader.numbers(tiers);
  const tierFirst = new Uint32Array(tiers + 1);
  for (let tier = 0; tier < tiers; tier++) tierFirst[tier + 1] = tierFirst[tier]! + reader.number();
  const begin = new Float64Array(spans);
  const finish = new Float64Array(spans);
  for (let tier = 0; tier < tiers; tier++) {
    let time = 0;
    for (let span = tierFirst[tier]!; span < tierFirst[tier + 1]!; span++) {
      begin[span] = time += reader.number();
      finish[span] = time += reader.number();
    }
  }
  const threadTier = new Uint32Array(threads.length + 1);
  for (let tier = 0; tier < tiers; tier++) threadTier[tierThread[tier]! + 1]!++;
  for (let thread = 0; thread < threads.length; thread++) threadTier[thread + 1]! += threadTier[thread]!;
  return { tierThread, tierDepth, tierFirst, threadTier, begin, finish, state: reader.numbers(spans) };
}

function seriesOf({ count, ...one }: Header["series"][number], reader: Reader): Series {
  return { ...one, time: reader.ascending(new Float64Array(count)), value: reader.floats(count) };
}

function argumentsOf(header: Header, reader: Reader) {
  const span = reader.ascending(new Uint32Array(header.arguments));
  const name = reader.numbers(header.arguments);
  // The number of each text, from 1; 0 for an argument that is a number.
  const text = reader.numbers(header.arguments);
  const numbers = reader.floats(text.reduce((count, text) => count + (text === 0 ? 1 : 0), 0));
  const value: (number | string)[] = [];
  let next = 0;
  for (const which of text) value.push(which === 0 ? numbers[next++]! : header.texts[which - 1]!);
  return { span, name, value };
}

function flowsOf({ flows }: Header, reader: Reader) {
  const fromThread = reader.numbers(flows);
  const fromTime = reader.ascending(new Float64Array(flows));
  const toThread = reader.numbers(flows);
  const toTime = new Float64Array(flows);
  // The delay is a zigzag varint, with the sign in the lowest bit: if clocks differ, a flow can arrive before its
  // departure.
  for (let i = 0; i < flows; i++) {
    const folded = reader.number();
    toTime[i] = fromTime[i]! + (folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2);
  }
  return { fromThread, fromTime, toThread, toTime };
}
