/** Compares the computations of the page with straightforward computations. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { decode } from "../src/columns";
import { Levels } from "../src/levels";
import { chosen, concurrency, figures, grouped, histogram, length, outermost, overlap, total } from "../src/measures";
import { sorted } from "../src/order";
import { search } from "../src/search";
import { duration, instant, parse, ticks } from "../src/time";
import { argumentsOf, threadOf, touching, type Trace } from "../src/trace";
import { View } from "../src/view";
import { columns, drawn, random, type Made } from "./made";

/** Returns a short trace, so that tests can check each nanosecond. */
function little(seed: number): { made: Made; trace: Trace } {
  const next = random(seed);
  const below = (most: number) => Math.floor(next() * most);
  const threads = Array.from({ length: 3 }, (_, thread) => {
    const spans = [];
    let time = below(5);
    for (let i = 0; i < 12; i++) {
      const end = time + below(12);
      spans.push({ state: below(4), begin: time, end });
      if (end - time > 4) spans.push({ state: below(4), begin: time + 1, end: end - 1, depth: 1 });
      if (end - time > 8) spans.push({ state: below(4), begin: time + 2, end: end - 3, depth: 2 });
      time = end + below(3);
    }
    return { name: `t${thread}`, spans };
  });
  const made: Made = { states: "abcd".split("").map((name) => ({ name })), files: [{ name: "f", processes: [{ name: "p", threads }] }] };
  return { made, trace: decode(columns(made)) };
}

const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

/** True if a thread is in one of these states during the nanosecond that begins at `time`. */
function isIn({ files }: Made, thread: number, states: (state: number) => boolean, time: number): boolean {
  const { spans } = files[0]!.processes[0]!.threads[thread]!;
  return spans.some(({ state, begin, end }) => states(state) && begin <= time && time < end);
}

describe("columns", () => {
  test("are read as they were written", () => {
    const made = drawn(3);
    const trace = decode(columns(made));
    const threads = made.files.flatMap((file) => file.processes.flatMap((process) => process.threads));
    assert.equal(trace.threads.length, threads.length);
    threads.forEach(({ spans }, thread) => {
      const told = spans.map(({ state, begin, end }) => [begin, end, state].join()).sort();
      const found = [];
      for (let span = 0; span < trace.begin.length; span++) {
        if (threadOf(trace, span) === thread) found.push([trace.begin[span], trace.finish[span], trace.state[span]].join());
      }
      assert.deepEqual(found.sort(), told);
    });
    assert.equal(trace.unfinished.size, threads.length);
    assert.deepEqual([...trace.series[0]!.value], made.series![0]!.samples.map(([, value]) => value));
    assert.deepEqual([...trace.flows.toTime], made.flows!.map(({ to }) => to[1]));
    const given = argumentsOf(trace, 0);
    assert.deepEqual(given.map(({ name }) => name), ["bytes", "file"]);
    assert.equal(given[1]!.value, "f0");
  });

  test("with large numbers are read as they were written", () => {
    const spans = [{ state: 0, begin: 2 ** 40, end: 2 ** 52 + 1 }];
    const made = { states: [{ name: "s" }], files: [{ name: "f", processes: [{ name: "p", threads: [{ name: "t", spans }] }] }] };
    const trace = decode(columns({ ...made, flows: [{ from: [0, 2 ** 50 + 1], to: [0, 2 ** 33] }] }));
    assert.equal(trace.begin[0], 2 ** 40);
    assert.equal(trace.finish[0], 2 ** 52 + 1);
    assert.equal(trace.flows.toTime[0], 2 ** 33);
  });

  test("that are truncated are rejected", () => {
    const whole = columns(drawn(3));
    assert.throws(() => decode(whole.subarray(0, whole.length - 1)), /truncated/);
    assert.throws(() => decode(whole.subarray(1)), /not columns/);
  });
});

describe("measures", () => {
  test("a total is the sum of the parts of calls within the range", () => {
    for (const seed of SEEDS) {
      const { made, trace } = little(seed);
      const [from, to] = [10, 60];
      for (const state of [0, 1, 2, 3]) {
        const spans = made.files[0]!.processes[0]!.threads.flatMap((thread) => thread.spans).filter((span) => span.state === state);
        const parts = spans.filter(({ begin, end }) => (begin >= from && begin < to) || (begin < from && end > from));
        const sum = parts.reduce((sum, { begin, end }) => sum + Math.min(end, to) - Math.max(begin, from), 0);
        const its = total(trace, [from, to], chosen(4, new Set([state])), chosen(3, new Set()));
        assert.deepEqual(its, { total: sum, count: parts.length });
      }
    }
  });

  test("an overlap is the time in which distinct threads are in all chosen states", () => {
    for (const seed of SEEDS) {
      const { made, trace } = little(seed);
      const range = [5, 70] as const;
      let [two, three, threads] = [0, 0, 0];
      for (let time = range[0]; time < range[1]; time++) {
        const of = (state: number) => [0, 1, 2].filter((thread) => isIn(made, thread, (its) => its === state, time));
        const both = of(0).some((one) => of(1).some((other) => one !== other));
        if (both) two++;
        if (of(0).some((one) => of(1).some((other) => of(2).some((third) => one !== other && other !== third && one !== third)))) three++;
        if ([0, 2].every((thread) => isIn(made, thread, () => true, time))) threads++;
      }
      assert.equal(length(overlap(trace, range, new Set([0, 1]), new Set())!), two);
      assert.equal(length(overlap(trace, range, new Set([0, 1, 2]), new Set())!), three);
      const { begin, end } = overlap(trace, range, new Set(), new Set([0, 2]))!;
      assert.equal(length({ begin, end }), threads);
      for (let i = 1; i < begin.length; i++) assert.ok(begin[i]! > end[i - 1]! && end[i]! > begin[i]!);
    }
    assert.equal(overlap(little(1).trace, [0, 9], new Set([1]), new Set([1])), null);
  });

  test("the concurrency graph counts each thread once", () => {
    for (const seed of SEEDS) {
      const { made, trace } = little(seed);
      const shown = Uint8Array.of(1, 0, 1, 1);
      const values = concurrency(trace, [4, 68], outermost(trace, shown), 64);
      values.forEach((value, at) => {
        const count = [0, 1, 2].filter((thread) => isIn(made, thread, (state) => shown[state] === 1, 4 + at)).length;
        assert.ok(Math.abs(value - count) < 1e-9, `seed ${seed}, ${at}: ${value} is not ${count}`);
      });
      // With fewer buckets, each value is the mean over its bucket.
      const coarse = concurrency(trace, [4, 68], outermost(trace, shown), 8);
      coarse.forEach((value, at) => {
        const mean = values.slice(at * 8, at * 8 + 8).reduce((sum, value) => sum + value, 0) / 8;
        assert.ok(Math.abs(value - mean) < 1e-9);
      });
    }
  });

  test("levels of detail give the busy time and the main state of any run of spans", () => {
    const made = drawn(5, 3000);
    const trace = decode(columns(made));
    const shown = Uint8Array.of(1, 1, 0, 1, 1, 1, 1);
    const levels = new Levels(trace, shown);
    const next = random(9);
    for (let i = 0; i < 300; i++) {
      const [from, to] = [next(), next()].map((share) => Math.floor(share * trace.begin.length)).sort((a, b) => a - b) as [number, number];
      const tally = { busy: 0, votes: 0, state: 0 };
      levels.tally(from, to, tally);
      const of = new Float64Array(7);
      for (let span = from; span < to; span++) of[trace.state[span]!]! += shown[trace.state[span]!]! * (trace.finish[span]! - trace.begin[span]!);
      const sum = of.reduce((sum, time) => sum + time, 0);
      assert.equal(tally.busy, sum);
      const most = of.indexOf(Math.max(...of));
      if (of[most]! > sum / 2) assert.equal(tally.state, most);
      assert.notEqual(tally.votes > 0 ? tally.state : 0, 2);
    }
  });

  test("percentiles are those by nearest rank", () => {
    const its = figures(Float64Array.from({ length: 200 }, (_, i) => 200 - i), 7);
    assert.deepEqual(its, { count: 200, total: 7, mean: 100.5, least: 1, median: 100, p99: 198, largest: 200 });
    assert.equal(figures(Float64Array.of(5), 5).p99, 5);
    assert.equal(figures(new Float64Array(), 0).median, 0);
  });

  test("each call is in one group", () => {
    const { trace } = little(4);
    const all = chosen(4, new Set());
    const { lengths, totals } = grouped(trace, [0, trace.end], all, chosen(3, new Set()), 4, (state) => state);
    assert.equal(lengths.reduce((sum, its) => sum + its.length, 0), trace.begin.length);
    lengths.forEach((its, state) => assert.equal(its.reduce((sum, length) => sum + length, 0), totals[state]));
  });

  test("every length is in one bin", () => {
    const next = random(2);
    const lengths = Float64Array.from({ length: 500 }, () => Math.floor(next() ** 6 * 1e6)).sort();
    for (const logarithmic of [true, false]) {
      const { edges, counts } = histogram(lengths, logarithmic, 40);
      counts.forEach((count, bin) => {
        const inside = lengths.filter((length) => (length >= edges[bin]! || bin === 0) && length < edges[bin + 1]!);
        assert.equal(count, inside.length);
      });
      assert.equal(counts.reduce((sum, count) => sum + count, 0), 500);
    }
    assert.equal(histogram(Float64Array.of(7), true, 40).counts.reduce((sum, count) => sum + count, 0), 1);
  });

  test("indices are sorted by keys of any size, and those with equal keys stay in order", () => {
    const next = random(8);
    const keys = Array.from({ length: 3000 }, () => Math.floor(next() * [10, 1e6, 2 ** 52][Math.floor(next() * 3)]!));
    const indices = Uint32Array.from(keys, (_, at) => at);
    const wanted = [...indices].sort((one, other) => keys[one]! - keys[other]! || one - other);
    assert.deepEqual([...sorted(indices, (index) => keys[index]!)], wanted);
  });

  test("a tier's spans in a range are found", () => {
    const { trace } = little(6);
    for (let tier = 0; tier < trace.tierThread.length; tier++) {
      const [first, after] = touching(trace, tier, 20, 40);
      for (let span = trace.tierFirst[tier]!; span < trace.tierFirst[tier + 1]!; span++) {
        assert.equal(span >= first && span < after, trace.finish[span]! >= 20 && trace.begin[span]! <= 40);
      }
    }
  });

  test("repeated searches find all calls with the words, in order of time", () => {
    const trace = decode(columns(drawn(1, 20)));
    const all = chosen(trace.states.length, new Set());
    const found: (number | null)[] = [];
    for (let at = search(trace, "flush", all, null); !found.includes(at); at = search(trace, "flush", all, at)) found.push(at);
    const flush = trace.states.findIndex(({ name }) => name === "flush");
    assert.equal(found.length, trace.state.filter((state) => state === flush).length);
    assert.equal(search(trace, "file = f1", all, null) === null, false);
    assert.equal(search(trace, "nowhere", all, null), null);
  });
});

describe("times", () => {
  test("are written in the unit that fits", () => {
    assert.deepEqual([0, 999, 1500, 2_345_678, 12e9].map(duration), ["0 ns", "999 ns", "1.5 µs", "2.346 ms", "12 s"]);
    assert.equal(instant(1_204_317_000, 1000), "1.204317 s");
  });

  test("are read with and without units", () => {
    assert.deepEqual(["12", "1.5 ms", "2us", "3 s", "1,000 µs"].map(parse), [12, 1.5e6, 2000, 3e9, 1e6]);
    assert.deepEqual(["", "x", "1 parsec", "1..2 s"].map(parse), [null, null, null, null]);
  });

  test("ticks are round and within", () => {
    const { step, times } = ticks(13, 97, 8);
    assert.equal(step, 20);
    assert.deepEqual(times, [20, 40, 60, 80]);
  });
});

describe("a view", () => {
  test("is restored by its address", () => {
    const trace = decode(columns(drawn(1)));
    const view = new View(trace);
    view.show(1e6, 5e6);
    view.set({ kind: "duration", hidden: new Set([2]), states: new Set([0, 1]), threads: new Set([3]), marked: [2e6, 3e6], selected: 77, beside: true, rows: "disk 0", logarithmic: false });
    const other = new View(trace);
    other.restore(view.address());
    assert.deepEqual(other.look, view.look);
  });

  test("uses defaults for an invalid address", () => {
    const view = new View(decode(columns(drawn(1))));
    const fresh = view.look;
    for (const nonsense of ["range=a,b&call=9e9,1,2&hidden=-1,1e99,x&view=", "range=5,1", "%%%", "call=0", "range=,&states=999999"]) {
      view.restore(nonsense);
      assert.deepEqual(view.look, fresh, nonsense);
    }
  });

  test("undoes ranges one by one", () => {
    const view = new View(decode(columns(drawn(1))));
    const ranges = [[0, view.whole], [1e6, 9e6], [2e6, 3e6]] as const;
    view.show(...ranges[1]);
    view.show(...ranges[2]);
    view.undo();
    assert.deepEqual([view.look.from, view.look.to], ranges[1]);
    view.undo();
    assert.deepEqual([view.look.from, view.look.to], ranges[0]);
    view.undo();
    assert.deepEqual([view.look.from, view.look.to], ranges[0]);
  });

  test("stays within the time of the trace", () => {
    const view = new View(decode(columns(drawn(1))));
    view.show(-5e6, 5e6);
    assert.deepEqual([view.look.from, view.look.to], [0, 10e6]);
    view.zoom(1e-12, 5e6);
    assert.ok(view.look.to - view.look.from >= 10);
    view.zoom(1e12, 5e6);
    assert.deepEqual([view.look.from, view.look.to], [0, view.whole]);
  });

  test("that shows the end of a growing file follows the end", () => {
    const made = drawn(1);
    const view = new View(decode(columns(made)));
    made.files[0]!.processes[0]!.threads[0]!.spans.push({ state: 0, begin: 2e8, end: 3e8 });
    const grown = decode(columns(made));
    view.set({ selected: 5 });
    view.replace(grown);
    assert.deepEqual([view.look.from, view.look.to], [0, 3e8]);
    view.show(1e6, 2e6);
    view.replace(grown);
    assert.deepEqual([view.look.from, view.look.to], [1e6, 2e6]);
  });

  test("of growing files keeps the chosen threads and states", () => {
    const made = drawn(1);
    const view = new View(decode(columns(made)));
    // Choose a process of the second file, a thread of this process, a call of this thread, and some states.
    const selected = view.trace.tierFirst[view.trace.threadTier[7]!]!;
    view.set({ folded: new Set([2]), threads: new Set([7]), selected, states: new Set([1, 2]), hidden: new Set([3]) });
    const { begin } = view.trace;
    const [from, its] = [begin[selected], view.trace.threads[7]!.name];
    const [first, second] = made.files;
    // Add a thread, a process and a state, so that the indices of the chosen objects change.
    first!.processes[0]!.threads.push({ name: "late", spans: [{ state: 0, begin: 1e6, end: 2e6 }] });
    first!.processes.push({ name: "compute node 9", threads: [{ name: "requests", spans: [] }] });
    made.states.splice(2, 0, { name: "repair" });
    for (const { threads } of [...first!.processes, ...second!.processes]) {
      for (const { spans } of threads) for (const span of spans) if (span.state >= 2) span.state++;
    }
    view.replace(decode(columns(made)));
    const { trace, look } = view;
    const thread = [...look.threads][0]!;
    assert.deepEqual([look.threads.size, trace.threads[thread]!.name], [1, its]);
    assert.equal(trace.processes[trace.threads[thread]!.process]!.file, 1);
    assert.deepEqual([...look.folded], [3]);
    assert.deepEqual([...look.states].map((state) => trace.states[state]!.name), ["write", "wait for a page"]);
    assert.deepEqual([...look.hidden].map((state) => trace.states[state]!.name), ["prefetch"]);
    assert.equal(threadOf(trace, look.selected!), thread);
    assert.equal(trace.begin[look.selected!], from);
  });
});
