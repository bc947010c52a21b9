/** Made-up traces, encoded in columns as `columns.rs` encodes them. */

import { gzipSync } from "node:zlib";

export interface MadeSpan {
  state: number;
  begin: number;
  end: number;
  depth?: number;
  unfinished?: boolean;
  arguments?: Record<string, number | string>;
}

export interface Made {
  states: { name: string; category?: string; color?: string | null }[];
  /** Files with their processes, threads and spans. */
  files: { name: string; notes?: string[]; processes: { name: string; threads: { name: string; spans: MadeSpan[]; dropped?: number }[] }[] }[];
  series?: { name: string; unit: string; thread: number; system?: boolean; samples: [number, number][] }[];
  flows?: { from: [number, number]; to: [number, number] }[];
  wallClock?: string | null;
}

class Writer {
  readonly bytes: number[] = [];

  number(number: number): void {
    while (number >= 0x80) {
      this.bytes.push((number % 0x80) + 0x80);
      number = Math.floor(number / 0x80);
    }
    this.bytes.push(number);
  }

  differences(numbers: number[]): void {
    numbers.forEach((number, at) => this.number(number - (numbers[at - 1] ?? 0)));
  }

  float(number: number): void {
    this.bytes.push(...new Uint8Array(Float64Array.of(number).buffer));
  }
}

/** Returns the columns of a made-up trace. */
export function columns({ states, files, series = [], flows = [], wallClock = null }: Made): Uint8Array {
  const processes = files.flatMap(({ processes }, file) => processes.map((process) => ({ ...process, file })));
  const threads = processes.flatMap(({ threads }, process) => threads.map((thread) => ({ ...thread, process })));
  const tiers = threads.flatMap(({ spans }, thread) => {
    const depths = [...new Set(spans.map((span) => span.depth ?? 0))].sort();
    return depths.map((depth) => ({ thread, depth, spans: spans.filter((span) => (span.depth ?? 0) === depth) }));
  });
  const spans = tiers.flatMap((tier) => tier.spans);
  const writer = new Writer();
  writer.differences(tiers.map((tier) => tier.thread));
  tiers.forEach((tier) => writer.number(tier.depth));
  tiers.forEach((tier) => writer.number(tier.spans.length));
  for (const tier of tiers) {
    let last = 0;
    for (const { begin, end } of tier.spans) {
      writer.number(begin - last);
      writer.number(end - begin);
      last = end;
    }
  }
  spans.forEach((span) => writer.number(span.state));
  const unfinished = spans.map((_, at) => at).filter((at) => spans[at]!.unfinished);
  writer.differences(unfinished);
  for (const { samples } of series) {
    writer.differences(samples.map(([time]) => time));
    samples.forEach(([, value]) => writer.float(value));
  }
  const given = spans.flatMap((span, at) => Object.entries(span.arguments ?? {}).map(([name, value]) => ({ at, name, value })));
  const names = [...new Set(given.map(({ name }) => name))];
  const texts = [...new Set(given.map(({ value }) => value).filter((value) => typeof value === "string"))];
  writer.differences(given.map(({ at }) => at));
  given.forEach(({ name }) => writer.number(names.indexOf(name)));
  given.forEach(({ value }) => writer.number(typeof value === "string" ? texts.indexOf(value) + 1 : 0));
  given.forEach(({ value }) => typeof value === "number" && writer.float(value));
  flows.forEach(({ from }) => writer.number(from[0]));
  writer.differences(flows.map(({ from }) => from[1]));
  flows.forEach(({ to }) => writer.number(to[0]));
  flows.forEach(({ from, to }) => writer.number(to[1] >= from[1] ? (to[1] - from[1]) * 2 : (from[1] - to[1]) * 2 - 1));
  const extent = (spans: MadeSpan[]) => ({
    begin: spans.reduce((least, { begin }) => Math.min(least, begin), Infinity),
    end: spans.reduce((most, { end }) => Math.max(most, end), 0),
  });
  const header = {
    files: files.map(({ name, notes = [], processes }) => ({
      name,
      notes,
      ...extent(processes.flatMap((process) => process.threads.flatMap((thread) => thread.spans))),
    })),
    processes: processes.map(({ name, file }) => ({ name, file, facts: [["host", "here"]] })),
    threads: threads.map(({ name, process, dropped = 0 }) => ({ name, process, dropped })),
    states: states.map(({ name, category = "", color = null }) => ({ name, category, color })),
    names,
    texts,
    wallClock,
    end: extent(spans).end,
    tiers: tiers.length,
    spans: spans.length,
    unfinished: unfinished.length,
    series: series.map(({ samples, system = false, ...one }) => ({ ...one, system, count: samples.length })),
    arguments: given.length,
    flows: flows.length,
  };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(Uint32Array.of(text.length).buffer);
  return new Uint8Array(Buffer.concat([new TextEncoder().encode("TLVCOL01"), length, text, Uint8Array.from(writer.bytes)]));
}

/** Returns the page with these columns, as `starfish view --html` writes it. `look` is the initial view. */
export function selfContained(page: string, columns: Uint8Array, look = ""): string {
  const place = '<script type="application/octet-stream" id="columns"';
  return page.replace(`${place}>`, () => `${place} data-look="${look}">${gzipSync(columns).toString("base64")}`);
}

/** Returns a generator of pseudorandom numbers below 1, the same in each run. */
export function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a trace of two files, with nodes that read, write and wait in nested calls, a counter and flows. */
export function drawn(seed: number, calls = 60): Made {
  const next = random(seed);
  const states = ["read", "write", "wait for a page", "prefetch", "compute", "flush", "communicate"].map((name) => ({ name }));
  const file = (name: string) => ({
    name,
    processes: ["compute node 0", "I/O node 1"].map((process) => ({
      name: process,
      threads: ["requests", "disk 0", "disk 1"].map((thread) => {
        const spans: MadeSpan[] = [];
        let time = Math.floor(next() * 1e5);
        for (let i = 0; i < calls; i++) {
          const state = Math.floor(next() * states.length);
          const length = Math.floor(1e4 + next() ** 4 * 4e6);
          spans.push({ state, begin: time, end: time + length, arguments: { bytes: Math.floor(next() * 65536), file: `f${i % 3}` } });
          if (next() < 0.6) {
            const begin = time + Math.floor(length * 0.2);
            spans.push({ state: (state + 1) % states.length, begin, end: begin + Math.floor(length * 0.5), depth: 1 });
          }
          time += length + Math.floor(next() ** 2 * 1e6);
        }
        spans.at(-1)!.unfinished = true;
        return { name: thread, spans };
      }),
    })),
  });
  const samples = Array.from({ length: 200 }, (_, i): [number, number] => [i * 4e5, Math.floor(10 + 8 * Math.sin(i / 9) + next() * 4)]);
  const flows = Array.from({ length: 40 }, () => {
    const sent = Math.floor(next() * 5e7);
    return { from: [0, sent] as [number, number], to: [4, sent + Math.floor(next() * 2e6)] as [number, number] };
  }).sort((one, other) => one.from[1] - other.from[1]);
  return {
    states,
    files: [file("predicted.tlv"), file("measured.tlv")],
    series: [{ name: "queue length", unit: "requests", thread: 4, samples }],
    flows,
  };
}
