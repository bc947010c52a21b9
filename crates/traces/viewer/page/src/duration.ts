/**
 * The view of durations: a table of all calls that touch the range, sorted by any column, at first by duration with the
 * longest call first.
 */

import type { Derived } from "./derived";
import { button, byId, element, name, nextFrame } from "./elements";
import { chosen, each } from "./measures";
import { sorted } from "./order";
import { duration, instant } from "./time";
import { argumentsOf, threadLabel, threadOf } from "./trace";
import type { View } from "./view";

const ROW_PIXELS = 24;
const HEAD_PIXELS = 25;
/**
 * Approximate maximum height of an element in browsers, in pixels. For higher tables, the scroll position is scaled.
 */
const SCROLL_PIXELS_MAX = 16_000_000;

type Column = "duration" | "begin" | "state" | "thread";

const COLUMNS: { column: Column; title: string; first: "up" | "down" }[] = [
  { column: "duration", title: "Duration", first: "down" },
  { column: "state", title: "State", first: "up" },
  { column: "thread", title: "Thread", first: "up" },
  { column: "begin", title: "Begin", first: "up" },
];

export class DurationView {
  private readonly root = byId("duration");
  private readonly head = element("div", { role: "row" });
  private readonly headGroup = element("div", { class: "head", role: "rowgroup" }, this.head);
  private readonly body = element("div", { class: "body", role: "rowgroup" });
  private readonly spacer = element("div", { class: "spacer", role: "none" }, this.body);
  private readonly scroller = element("div", { class: "scroller", role: "none" }, this.headGroup, this.spacer);
  private readonly grid: HTMLElement;
  private readonly told = element("p", { class: "told", role: "status" });
  private by: Column = "duration";
  private direction: "up" | "down" = "down";
  private calls: Uint32Array = new Uint32Array();
  private callsOf = "";
  private readonly draw = nextFrame(() => this.drawNow());

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
  ) {
    this.grid = element(
      "div",
      { class: "calls", role: "grid", tabindex: "0", "aria-label": "Calls by duration" },
      this.scroller,
    );
    this.root.append(this.told, this.grid);
    this.scroller.addEventListener("scroll", this.draw);
    this.grid.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
    new ResizeObserver(this.draw).observe(this.scroller);
  }

  /** Shows the calls of the current view; called when the view is at rest. */
  show(): void {
    const { trace, look } = this.view;
    const of = [look.beside, look.from, look.to, [...look.hidden], [...look.threads], this.by, this.direction, trace.begin.length].join(";");
    if (of !== this.callsOf) {
      this.callsOf = of;
      this.collect();
    }
    this.draw();
  }

  private collect(): void {
    const { trace, look } = this.view;
    const threads = chosen(trace.threads.length, look.threads);
    let count = 0;
    each(trace, [look.from, look.to], this.derived.shown, threads, () => count++);
    const calls = new Uint32Array(count);
    let at = 0;
    each(trace, [look.from, look.to], this.derived.shown, threads, (span) => (calls[at++] = span));
    const { begin, finish, state } = trace;
    const keys: Record<Column, ((span: number) => number) | null> = {
      duration: (span) => finish[span]! - begin[span]!,
      begin: (span) => begin[span]!,
      state: (span) => state[span]!,
      // The calls are already collected in the order of threads.
      thread: null,
    };
    const key = keys[this.by];
    this.calls = key ? sorted(calls, key) : calls;
    if (this.direction === "down") this.calls.reverse();
    this.told.textContent = `${count.toLocaleString("en")} calls touch the range`;
    this.grid.setAttribute("aria-rowcount", String(count + 1));
  }

  private sortBy(column: Column, first: "up" | "down"): void {
    this.direction = this.by === column ? (this.direction === "up" ? "down" : "up") : first;
    this.by = column;
    this.scroller.scrollTop = 0;
    this.show();
  }

  private drawNow(): void {
    if (this.root.hidden) return;
    this.drawHead();
    const { scroller, calls } = this;
    const height = calls.length * ROW_PIXELS;
    const shownHeight = Math.min(height, SCROLL_PIXELS_MAX);
    this.spacer.style.height = `${shownHeight}px`;
    const most = Math.max(1, shownHeight - this.room);
    const share = scroller.scrollTop / most;
    const top = height > SCROLL_PIXELS_MAX ? share * (height - this.room) : scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_PIXELS));
    const after = Math.min(calls.length, first + Math.ceil(this.room / ROW_PIXELS) + 1);
    this.body.style.transform = `translateY(${scroller.scrollTop + first * ROW_PIXELS - top}px)`;
    const rows = [];
    for (let at = first; at < after; at++) rows.push(this.row(at));
    this.body.replaceChildren(...rows);
  }

  private drawHead(): void {
    const heads = COLUMNS.map(({ column, title, first }) => {
      const sort = column === this.by ? (this.direction === "up" ? "ascending" : "descending") : "none";
      const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sort];
      const its = button(title + arrow, {}, () => this.sortBy(column, first));
      return element("div", { role: "columnheader", "aria-sort": sort }, its);
    });
    if (this.head.textContent !== heads.map((head) => head.textContent).join("") + "Arguments") {
      this.head.replaceChildren(...heads, element("div", { role: "columnheader" }, "Arguments"));
    }
  }

  private row(at: number): HTMLElement {
    const { trace, look } = this.view;
    const span = this.calls[at]!;
    const its = trace.state[span]!;
    const longest = this.longest;
    const length = trace.finish[span]! - trace.begin[span]!;
    const bar = element("span", { class: "bar" });
    bar.style.width = `${(length / longest) * 100}%`;
    bar.style.background = this.derived.looks[its]!.color;
    const open = trace.unfinished.has(span) ? " not ended" : "";
    const given = argumentsOf(trace, span).map(({ name, value }) => `${name} = ${value}`);
    const cells = [
      element("div", { role: "gridcell", class: "length" }, bar, element("span", {}, duration(length) + open)),
      element("div", { role: "gridcell" }, name(trace.states[its]!.name)),
      element("div", { role: "gridcell" }, name(threadLabel(trace, threadOf(trace, span)))),
      element("div", { role: "gridcell" }, instant(trace.begin[span]!, 1)),
      element("div", { role: "gridcell" }, name(given.join(", "))),
    ];
    const selected = String(span === look.selected);
    const row = element("div", { role: "row", "aria-rowindex": String(at + 2), "aria-selected": selected }, ...cells);
    row.addEventListener("click", () => this.view.set({ selected: span }));
    row.addEventListener("dblclick", () => this.lookAt(span));
    return row;
  }

  /** Height in pixels of the part with rows. */
  private get room(): number {
    return this.scroller.clientHeight - HEAD_PIXELS;
  }

  private get longest(): number {
    const { trace } = this.view;
    const ends = [this.calls[0], this.calls.at(-1)].filter((span) => span !== undefined);
    return this.by === "duration"
      ? Math.max(1, ...ends.map((span) => trace.finish[span]! - trace.begin[span]!))
      : Math.max(1, trace.end);
  }

  /** Shows a call in the time line, with some time before and after. */
  private lookAt(span: number): void {
    const { trace } = this.view;
    const room = (trace.finish[span]! - trace.begin[span]!) * 0.5 + 10;
    this.view.show(trace.begin[span]! - room, trace.finish[span]! + room);
    this.view.set({ kind: "sequence", selected: span });
  }

  private key(event: KeyboardEvent): boolean {
    const at = this.view.look.selected === null ? -1 : this.calls.indexOf(this.view.look.selected);
    const page = Math.max(1, Math.floor(this.room / ROW_PIXELS) - 1);
    const to: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.calls.length - 1,
    };
    if (event.key === "Enter" && at >= 0) {
      this.lookAt(this.calls[at]!);
      return true;
    }
    const wanted = to[event.key];
    if (wanted === undefined || this.calls.length === 0) return false;
    const next = Math.min(Math.max(wanted, 0), this.calls.length - 1);
    this.reveal(next);
    this.view.set({ selected: this.calls[next]! });
    return true;
  }

  private reveal(at: number): void {
    const { scroller, calls } = this;
    const height = calls.length * ROW_PIXELS;
    const share = Math.min(1, (SCROLL_PIXELS_MAX - this.room) / Math.max(1, height - this.room));
    const top = scroller.scrollTop / share;
    const wanted = at * ROW_PIXELS;
    if (wanted < top) scroller.scrollTop = wanted * share;
    else if (wanted + ROW_PIXELS > top + this.room) {
      scroller.scrollTop = (wanted + ROW_PIXELS - this.room) * share;
    }
  }
}
