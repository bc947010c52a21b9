/**
 * Compares the figures of the page with figures computed from the table that `starfish trace export --to csv` writes of
 * the same trace. The variable STARFISH is the path of the program.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { decode } from "../src/columns";
import { chosen, figures, grouped, length, overlap, total, type Range } from "../src/measures";
import { duration } from "../src/time";
import type { Trace } from "../src/trace";
import { end, executable, open, settled } from "./browser";
import { random } from "./made";

const { STARFISH } = process.env;
const skip = !STARFISH ? "STARFISH is not set to the path of the program: run make test-viewer" : false;
const noChromium = executable() === null ? "Chromium is missing: apt-get install chromium, or set CHROMIUM to its path" : false;

/** A row of the table. Times are relative to the earliest begin. */
interface Row {
  thread: number;
  state: string;
  begin: number;
  end: number;
}

interface Written {
  /** Path of the self-contained page. */
  page: string;
  trace: Trace;
  rows: Row[];
}

/**
 * A trace in Chrome's JSON: threads of two processes with nested states, points in time, and in some threads unfinished
 * states at the end.
 */
function drawn(seed: number): string {
  const next = random(seed);
  const below = (most: number) => Math.floor(next() * most);
  const events: object[] = [];
  const tell = (ph: string, pid: number, tid: number, time: number, more: object) => events.push({ ph, pid, tid, ts: time / 1000, ...more });
  const calls = (pid: number, tid: number, begin: number, depth: number): number => {
    tell("B", pid, tid, begin, { name: "abcd"[below(4)] });
    let time = begin + below(12);
    for (let inner = depth < 3 ? below(3) : 0; inner > 0; inner--) time = calls(pid, tid, time, depth + 1) + below(4);
    if (next() < 0.2) tell("i", pid, tid, time, { name: "d", s: "t" });
    tell("E", pid, tid, (time += below(8)), {});
    return time;
  };
  for (const pid of [1, 2]) {
    for (let tid = 0; tid < 2 + below(2); tid++) {
      let time = below(30);
      for (let call = 0; call < 8; call++) time = calls(pid, tid, time, 0) + below(6);
      if (next() < 0.5) for (const name of ["c", "a"]) tell("B", pid, tid, time++, { name });
    }
  }
  return JSON.stringify(events);
}

function read(table: string): Row[] {
  const [head, ...lines] = table.trim().split("\n").map((line) => line.split(","));
  const column = (name: string) => head!.indexOf(name);
  const [thread, state, begin, end] = ["thread_number", "state", "begin_ns", "end_ns"].map(column) as [number, number, number, number];
  const all = lines.map((cells) => ({ mark: cells[column("mark")]!, thread: Number(cells[thread]), state: cells[state]!, begin: Number(cells[begin]), end: Number(cells[end]) }));
  const origin = Math.min(...all.map((row) => row.begin));
  const counting = all.filter(({ mark }) => mark !== "no begin");
  return counting.map(({ thread, state, begin, end }) => ({ thread, state, begin: begin - origin, end: end - origin }));
}

/** Returns the rows with a part in a range. A range up to the end of the trace includes the end itself. */
const touching = ({ rows, trace }: Written, [from, to]: Range) =>
  rows.filter(({ begin, end }) => (begin < to || to >= trace.end) && (begin >= from || end > from));

const part = ({ begin, end }: Row, [from, to]: Range) => Math.min(end, to) - Math.max(begin, from);

const sum = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0);

/** Returns the number of nanoseconds of a range in which `holds` is true of the current rows. */
function nanoseconds(written: Written, [from, to]: Range, holds: (on: Row[]) => boolean): number {
  let count = 0;
  for (let time = from; time < to; time++) if (holds(written.rows.filter(({ begin, end }) => begin <= time && time < end))) count++;
  return count;
}

const twoStates = (one: string, other: string) => (on: Row[]) =>
  on.some((row) => row.state === one && on.some((its) => its.state === other && its.thread !== row.thread));

describe("the page's figures", { skip, timeout: 120_000 }, () => {
  let directory: string;
  before(() => void (directory = mkdtempSync(join(tmpdir(), "viewer-"))));
  after(async () => {
    await end();
    rmSync(directory, { recursive: true });
  });

  function written(seed: number): Written {
    const [file, page] = [join(directory, `${seed}.json`), join(directory, `${seed}.html`)];
    writeFileSync(file, drawn(seed));
    execFileSync(STARFISH!, ["view", file, "--html", page]);
    const columns = /id="columns"[^>]*>([^<]*)/.exec(readFileSync(page, "utf8"))![1]!;
    const rows = read(execFileSync(STARFISH!, ["trace", "export", file, "--to", "csv", "-o", "-"], { encoding: "utf8" }));
    return { page, trace: decode(gunzipSync(Buffer.from(columns, "base64"))), rows };
  }

  const ranges = (seed: number, whole: number): Range[] => {
    const next = random(seed);
    const some = [0, 1].map(() => [next(), next()].map((share) => Math.floor(share * whole)).sort((a, b) => a - b) as [number, number]);
    return [[0, whole], ...some.filter(([from, to]) => from < to)];
  };

  const SEEDS = Array.from({ length: 12 }, (_, seed) => seed);

  test("equal those of the table", () => {
    for (const seed of SEEDS) {
      const its = written(seed);
      const { trace, rows } = its;
      assert.equal(trace.begin.length, rows.length);
      const every = (count: number) => chosen(count, new Set());
      const [states, threads] = [every(trace.states.length), every(trace.threads.length)];
      for (const range of ranges(seed, trace.end)) {
        const { lengths, totals } = grouped(trace, range, states, threads, trace.states.length, (state) => state);
        trace.states.forEach(({ name }, state) => {
          const its_rows = touching(its, range).filter((row) => row.state === name);
          const ascending = its_rows.map(({ begin, end }) => end - begin).sort((one, other) => one - other);
          const count = ascending.length;
          const time = sum(its_rows.map((row) => part(row, range)));
          const expected = {
            count,
            total: time,
            mean: count === 0 ? 0 : sum(ascending) / count,
            least: ascending[0] ?? 0,
            median: count === 0 ? 0 : Math.floor((ascending[(count - 1) >> 1]! + ascending[count >> 1]!) / 2),
            p99: ascending[Math.ceil((count * 99) / 100) - 1] ?? 0,
            largest: ascending[count - 1] ?? 0,
          };
          assert.deepEqual(figures(lengths[state]!, totals[state]!), expected, `seed ${seed}, ${name}`);
          assert.deepEqual(total(trace, range, chosen(trace.states.length, new Set([state])), threads), { total: time, count });
        });
        const state = (name: string) => trace.states.findIndex((state) => state.name === name);
        const both = overlap(trace, range, new Set([state("a"), state("b")]), new Set())!;
        assert.equal(length(both), nanoseconds(its, range, twoStates("a", "b")), `seed ${seed}`);
        const together = overlap(trace, range, new Set(), new Set([0, trace.threads.length - 1]))!;
        const are = (on: Row[]) => [0, trace.threads.length - 1].every((thread) => on.some((row) => row.thread === thread));
        assert.equal(length(together), nanoseconds(its, range, are), `seed ${seed}`);
      }
    }
  });

  test("are shown in Chromium", { skip: noChromium }, async () => {
    for (const seed of SEEDS.slice(0, 3)) {
      const its = written(seed);
      const { page, complaints, close } = await open(String(pathToFileURL(its.page)));
      const texts = (selector: string) => page.locator(selector).allInnerTexts();
      for (const range of ranges(seed + 100, its.trace.end)) {
        const named = (names: string) => names.split("").map((name) => its.trace.states.findIndex((state) => state.name === name));
        await page.evaluate(
          ([range, states]) => window.viewer!.view.set({ kind: "summary", marked: range as [number, number], states: new Set(states) }),
          [[...range], named("ab")] as const,
        );
        await settled(page);
        const touched = touching(its, range);
        const rows = await texts("#summary tbody tr");
        assert.equal(rows.length, new Set(touched.map((row) => row.state)).size);
        for (const row of rows) {
          const [state, calls, time] = row.split("\t");
          const of = touched.filter((row) => row.state === state);
          assert.deepEqual([calls, time], [String(of.length), duration(sum(of.map((row) => part(row, range))))], `seed ${seed}`);
        }
        const of_both = touched.filter(({ state }) => state === "a" || state === "b");
        const time = duration(sum(of_both.map((row) => part(row, range))));
        assert.ok((await texts("#total"))[0]!.startsWith(`${time} in ${of_both.length} calls, `));
        const both = duration(nanoseconds(its, range, twoStates("a", "b")));
        assert.ok((await texts("#overlap"))[0]!.includes(`: ${both}, `), `seed ${seed}`);
      }
      assert.deepEqual(complaints, []);
      await close();
    }
  });
});
