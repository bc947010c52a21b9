/**
 * The summary: figures of the calls that touch the measured range, for each state, each thread, or each state of each
 * thread.
 */

import type { Derived } from "./derived";
import { button, byId, element, name } from "./elements";
import { figures, grouped, threadsOf, told, type Figures } from "./measures";
import { duration } from "./time";
import { threadLabel } from "./trace";
import type { View } from "./view";

/** Maximum number of rows shown: those with the most time. */
const ROWS_MAX = 1000;

type By = "state" | "thread" | "both";
const WORDS: [By, string][] = [["state", "each state"], ["thread", "each thread"], ["both", "each state of each thread"]];

interface Line {
  file: string;
  state: string;
  thread: string;
  its: Figures;
  /** Total time of its threads in nanoseconds: for each thread, the part of the range that its file covers. */
  time: number;
}

const NUMBERS: [string, (line: Line) => string][] = [
  ["Calls", ({ its }) => its.count.toLocaleString("en")],
  ["Total", ({ its }) => duration(its.total)],
  ["Share", ({ its, time }) => `${(time > 0 ? (its.total / time) * 100 : 0).toFixed(1)} %`],
  ["Mean", ({ its }) => duration(its.mean)],
  ["Least", ({ its }) => duration(its.least)],
  ["Median", ({ its }) => duration(its.median)],
  ["99 %", ({ its }) => duration(its.p99)],
  ["Largest", ({ its }) => duration(its.largest)],
];

export class SummaryView {
  private readonly root = byId("summary");
  private by: By = "state";

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
  ) {}

  show(): void {
    const choice = element("p", { class: "told", role: "group", "aria-label": "Figures of" }, "Figures of ");
    for (const [by, text] of WORDS) {
      choice.append(
        button(text, { "aria-pressed": String(by === this.by) }, () => {
          this.by = by;
          this.show();
        }),
      );
    }
    const lines = this.view.counted.flatMap((file) => this.lines(file)).sort((one, other) => other.its.total - one.its.total);
    // Rows with threads need no column for the file, because the names of threads then begin with the name of the file.
    const apart = this.view.counted.length > 1 && this.by === "state";
    const titles = [...(apart ? ["File"] : []), ...(this.by === "thread" ? [] : ["State"]), ...(this.by === "state" ? [] : ["Thread"]), ...NUMBERS.map(([title]) => title)];
    const head = element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title))));
    const body = element("tbody", {});
    for (const line of lines.slice(0, ROWS_MAX)) {
      const named: Record<string, string> = { File: line.file, State: line.state, Thread: line.thread };
      const names = titles.filter((title) => title in named);
      const cells = names.map((title) => element("th", { scope: "row" }, name(named[title]!)));
      body.append(element("tr", {}, ...cells, ...NUMBERS.map(([, text]) => element("td", {}, text(line)))));
    }
    const more = lines.length > ROWS_MAX ? [element("p", {}, `${lines.length - ROWS_MAX} further rows with less time are not shown.`)] : [];
    this.root.replaceChildren(choice, element("table", {}, head, body), ...more, ...this.files());
  }

  /** Returns the lines of a file that is counted separately, or of all files (null). */
  private lines(file: number | null): Line[] {
    const { trace, look, measured } = this.view;
    const threads = threadsOf(trace, look.threads, file);
    const { by } = this;
    const count = trace.threads.length;
    // Create groups only for the states and threads that occur.
    const groups = new Map<number, number>();
    const group = (state: number, thread: number) => {
      const key = by === "state" ? state : by === "thread" ? thread : state * count + thread;
      const known = groups.get(key);
      if (known !== undefined) return known;
      groups.set(key, groups.size);
      return groups.size - 1;
    };
    const most = by === "state" ? trace.states.length : by === "thread" ? count : Math.min(trace.states.length * count, trace.begin.length);
    const { lengths, totals } = grouped(trace, measured, this.derived.shown, threads, most, group);
    const time = Array.from(threads, (isMeant, thread) => (isMeant === 1 ? told(trace, measured, thread) : 0));
    const ofAll = time.reduce((sum, one) => sum + one, 0);
    return [...groups].map(([key, at]) => ({
      file: file === null ? "" : trace.files[file]!.name,
      state: by === "thread" ? "" : trace.states[by === "state" ? key : Math.floor(key / count)]!.name,
      thread: by === "state" ? "" : threadLabel(trace, by === "thread" ? key : key % count),
      its: figures(lengths[at]!, totals[at]!),
      time: by === "state" ? ofAll : time[by === "thread" ? key : key % count]!,
    }));
  }

  /** Returns the list of the files, with their notes and processes. */
  private files(): HTMLElement[] {
    const { trace } = this.view;
    const made: HTMLElement[] = [element("h2", {}, "Files")];
    if (trace.wallClock !== null) {
      const zero = new Date(Number(BigInt(trace.wallClock) / 1_000_000n));
      // A wrong clock can produce an invalid date.
      if (!Number.isNaN(zero.getTime())) made.push(element("p", {}, `Time 0 is ${zero.toISOString().replace("T", " ").replace("Z", " UTC")}.`));
    }
    trace.files.forEach(({ name: its, notes }, file) => {
      const processes = trace.processes.filter((process) => process.file === file);
      const list = element("ul", {}, ...notes.map((note) => element("li", { class: "note" }, name(note))));
      for (const process of processes.slice(0, ROWS_MAX)) {
        const facts = process.facts.map(([label, text]) => `${label}: ${text}`).join("; ");
        list.append(element("li", {}, name(process.name), facts === "" ? "" : " — ", name(facts)));
      }
      made.push(element("h3", {}, name(its)), list);
    });
    return made;
  }
}
