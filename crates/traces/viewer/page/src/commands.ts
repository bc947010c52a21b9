/**
 * The three commands: total duration and overlap of the chosen states and threads in the measured range, and single
 * duration of the selected call.
 */

import type { Derived } from "./derived";
import { button, byId, element, name } from "./elements";
import { chosen, length, OVERLAP_MAX, threadsOf, total } from "./measures";
import { duration, instant } from "./time";
import { argumentsOf, firstAbove, threadLabel, threadOf } from "./trace";
import type { View } from "./view";

export class Commands {
  private readonly root = byId("commands");
  private readonly spoken = byId("spoken");
  private toldOf: number | null = null;

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
    private readonly zoomTo: (span: number) => void,
  ) {}

  /** Recomputes and shows the commands; called when the view is at rest. */
  show(): void {
    this.root.replaceChildren(
      element("h2", {}, "Range"),
      ...this.range(),
      element("h2", {}, "Total duration"),
      ...this.total(),
      element("h2", {}, "Overlap"),
      ...this.overlap(),
      element("h2", {}, "Single duration"),
      ...this.single(),
    );
    this.speak();
  }

  private range(): HTMLElement[] {
    const { look, measured } = this.view;
    const [from, to] = measured;
    const step = (to - from) / 1000;
    const text = `${instant(from, step)} to ${instant(to, step)}: ${duration(to - from)}`;
    if (!look.marked) return [element("p", {}, text), element("p", { class: "hint" }, "Drag with Shift to measure a part of this range.")];
    return [element("p", {}, text), button("measure the shown range", {}, () => this.view.set({ marked: null }))];
  }

  private get ofWhom(): string {
    const { trace, look } = this.view;
    const names = (set: Set<number>, of: (index: number) => string, all: string) =>
      set.size === 0 ? all : set.size <= 3 ? [...set].map(of).join(", ") : `${set.size} chosen`;
    const states = names(look.states, (state) => trace.states[state]!.name, "all states shown");
    const threads = names(look.threads, (thread) => threadLabel(trace, thread), "all threads");
    return `${states}; ${threads}`;
  }

  private total(): HTMLElement[] {
    const { trace, look, measured, counted } = this.view;
    const states = look.states.size === 0 ? this.derived.shown : chosen(trace.states.length, look.states);
    const told = counted.map((file) => {
      const its = total(trace, measured, states, threadsOf(trace, look.threads, file));
      return this.ofFile(file, `${duration(its.total)} in ${its.count.toLocaleString("en")} calls, ${this.share(its.total)} % of the range`);
    });
    return [element("p", { class: "of" }, name(this.ofWhom)), element("div", { id: "total" }, ...told)];
  }

  /** Returns a paragraph with this text about a file that is counted separately, or about all files (null). */
  private ofFile(file: number | null, text: string): HTMLElement {
    const its = file === null ? [] : [element("b", {}, name(this.view.trace.files[file]!.name)), ": "];
    return element("p", {}, ...its, text);
  }

  /** Returns a time as a percentage of the measured range. */
  private share(time: number): string {
    const [from, to] = this.view.measured;
    return ((time / (to - from)) * 100).toFixed(1);
  }

  private overlap(): HTMLElement[] {
    const { look } = this.view;
    const overlaps = this.derived.overlaps();
    if (overlaps.every(({ stretches }) => stretches === null)) {
      const hint = `Choose 2 to ${OVERLAP_MAX} states, or as many threads: by their names in the legend and the rows.`;
      return [element("p", { class: "hint", id: "overlap" }, hint)];
    }
    const what = look.states.size >= 2 ? "these states at the same time, each in a different thread" : "these threads at the same time";
    const told = overlaps.flatMap(({ file, stretches }) => {
      if (!stretches) return [];
      const time = length(stretches);
      return this.ofFile(file, `${what}: ${duration(time)}, ${this.share(time)} % of the range, ${stretches.begin.length.toLocaleString("en")} times`);
    });
    return [
      element("p", { class: "of" }, name(this.ofWhom)),
      element("div", { id: "overlap" }, ...told),
      button("choose none", {}, () => this.view.set({ states: new Set(), threads: new Set() })),
    ];
  }

  private single(): HTMLElement[] {
    const span = this.view.look.selected;
    if (span === null) return [element("p", { class: "hint", id: "single" }, "Click a call, or search for one.")];
    const list = element("dl", { id: "single" });
    for (const [label, text] of this.facts(span)) list.append(element("dt", {}, label), element("dd", {}, name(text)));
    return [list, button("zoom to it", {}, () => this.zoomTo(span))];
  }

  /** Returns the properties of a call as pairs of label and text. */
  private facts(span: number): [string, string][] {
    const { trace } = this.view;
    const [begin, end] = [trace.begin[span]!, trace.finish[span]!];
    const thread = threadOf(trace, span);
    const facts: [string, string][] = [
      ["state", trace.states[trace.state[span]!]!.name],
      ["duration", duration(end - begin) + (trace.unfinished.has(span) ? ", not ended by the end of the file" : "")],
      ["begin", instant(begin, 1)],
      ["end", instant(end, 1)],
      ["thread", threadLabel(trace, thread)],
    ];
    for (const series of trace.series.filter((series) => series.thread === thread && series.system)) {
      const at = (time: number) => series.value[firstAbove(series.time, time, 0, series.time.length) - 1];
      const [first, last] = [at(begin), at(end)];
      if (first === undefined || last === undefined) continue;
      const switches = series.name.includes("switches");
      facts.push([series.name, switches ? String(last - first) : first === last ? String(first) : `${first}, later ${last}`]);
    }
    return [...facts, ...argumentsOf(trace, span).map(({ name, value }): [string, string] => [name, String(value)])];
  }

  /** Announces the selected call to screen readers. */
  private speak(): void {
    const span = this.view.look.selected;
    if (span === this.toldOf) return;
    this.toldOf = span;
    this.spoken.textContent = span === null ? "" : this.facts(span).slice(0, 5).map((fact) => fact.join(" ")).join(", ");
  }
}
