/**
 * A time line: an axis with the concurrency graph, and below it the rows. It shows all files, or one file if each file
 * has its own time line.
 */

import type { Derived } from "./derived";
import { button, element, name, nextFrame, atRest } from "./elements";
import { concurrency } from "./measures";
import { arrow, ARROWS_MAX, counter, Labels, LABEL_FONT, shade, visibleFlows, x, type Scale } from "./overlays";
import { Surface } from "./paint";
import { TIER_PIXELS, Rows, type Row } from "./rows";
import { pixel, theme, type Theme } from "./theme";
import { duration, instant, ticks } from "./time";
import { firstAbove, firstFrom, tierOf, threadOf } from "./trace";
import type { Look, View } from "./view";

const AXIS_PIXELS = 22;
const GRAPH_PIXELS = 54;
/** Approximate maximum height of an element in browsers, in pixels. */
const SCROLL_PIXELS_MAX = 16_000_000;
/** Maximum distance in pixels from the pointer to the span that it hits. */
const NEAR_PIXELS = 3;
/** Maximum number of cached elements with names of rows. */
const NAMES_MAX = 2000;

export class Panel {
  readonly root: HTMLElement;
  readonly canvas = element("canvas", {
    class: "spans",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "time line",
    "aria-describedby": "keys",
  });
  private readonly head = element("canvas", { class: "head" });
  private readonly names = element("div", { class: "names" });
  private readonly scroller = element("div", { class: "scroller", tabindex: "-1" });
  private readonly spacer = element("div", { class: "spacer" });
  private readonly tip = element("div", { class: "tip", hidden: "" });
  private rows!: Rows;
  private rowsOf: unknown[] = [];
  private readonly labels = new Labels();
  private surface: Surface | null = null;
  private graph: { from: number; to: number; counted: Uint8Array; values: Float64Array } | null = null;
  /** Time in milliseconds to draw the last frame. */
  drawn = 0;
  readonly draw = nextFrame(() => this.drawNow());
  private readonly drawGraphAtRest = atRest(80, () => this.computeGraph());

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
    /** The file to show; null for all files. */
    private readonly file: number | null,
  ) {
    const label = file === null ? "Time line" : `Time line of ${view.trace.files[file]!.name}`;
    this.canvas.setAttribute("aria-label", label);
    this.spacer.append(element("div", { class: "window" }, this.names, this.canvas));
    this.scroller.append(this.spacer);
    this.root = element("div", { class: "panel" }, this.head, this.scroller, this.tip);
    if (file !== null) this.root.prepend(element("h2", {}, name(view.trace.files[file]!.name)));
    this.scroller.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.scroller);
    this.listen();
  }

  private get scale(): Scale {
    const { from, to } = this.view.look;
    return { from, to, width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /** Times of the labels on the axis: round numbers. */
  private ticks({ from, to, width }: Scale): { step: number; times: number[] } {
    return ticks(from, to, width / 110);
  }

  private timeAt(event: MouseEvent): number {
    const { from, to, width } = this.scale;
    return from + ((event.clientX - this.canvas.getBoundingClientRect().left) / width) * (to - from);
  }

  /** Redraws after a change of the view. */
  changed(look: Look, before: Look): void {
    if (look.selected !== before.selected && look.selected !== null) this.reveal(threadOf(this.view.trace, look.selected));
    this.draw();
  }

  // ---- rows and scrolling

  private arrange(): void {
    const { trace, look } = this.view;
    const of = [trace, look.rows, look.folded, look.processors];
    if (of.some((part, at) => part !== this.rowsOf[at])) {
      this.rowsOf = of;
      this.rows = new Rows(trace, look, this.file);
    }
    this.spacer.style.height = `${Math.min(this.rows.height + 40, SCROLL_PIXELS_MAX)}px`;
  }

  /** Offset in pixels, within all rows, of the upper edge of the visible part. */
  private get top(): number {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (scrollHeight < SCROLL_PIXELS_MAX) return scrollTop;
    return (scrollTop / (scrollHeight - clientHeight)) * (this.rows.height - clientHeight);
  }

  private scrollTo(height: number): void {
    const { scrollHeight, clientHeight } = this.scroller;
    const share = scrollHeight < SCROLL_PIXELS_MAX ? 1 : (scrollHeight - clientHeight) / (this.rows.height - clientHeight);
    this.scroller.scrollTop = height * share;
  }

  /** Scrolls until the row of a thread is visible, if this time line has such a row. */
  private reveal(thread: number): void {
    this.arrange();
    const row = this.rows.ofThread(thread);
    if (!row) return;
    const height = this.scroller.clientHeight;
    if (row.top < this.top || row.top + row.height > this.top + height) this.scrollTo(row.top - height / 3);
  }

  private showNames(rows: Row[]): void {
    const { trace, look } = this.view;
    // A name that scrolls out of view and back keeps its element, and so the focus. Above NAMES_MAX elements, drop all
    // of them and create those of the visible names.
    if (trace !== this.namedTrace || this.named.size > NAMES_MAX) this.named.clear();
    this.namedTrace = trace;
    const made = rows.map((row) => {
      const its = this.nameOf(row);
      its.style.top = `${row.top - this.top}px`;
      its.style.height = `${row.height}px`;
      if (row.kind === "thread") its.setAttribute("aria-pressed", String(look.threads.has(row.thread)));
      if (row.kind === "process") its.setAttribute("aria-expanded", String(!look.folded.has(row.process)));
      return its;
    });
    const kept = [...this.names.children].filter((child) => !made.includes(child as HTMLElement));
    for (const child of kept) child.remove();
    for (const child of made) if (child.parentElement !== this.names) this.names.append(child);
  }

  private readonly named = new Map<string, HTMLElement>();
  private namedTrace: unknown = null;

  private nameOf(row: Row): HTMLElement {
    const which = row.kind === "process" ? row.process : row.kind === "thread" ? row.thread : row.series;
    const key = `${row.kind}${which}`;
    const known = this.named.get(key);
    if (known) return known;
    const made = this.makeName(row);
    made.classList.add("row", row.kind);
    this.named.set(key, made);
    return made;
  }

  private makeName(row: Row): HTMLElement {
    const { trace } = this.view;
    const toggled = (set: Set<number>, index: number) => {
      const changed = new Set(set);
      if (!changed.delete(index)) changed.add(index);
      return changed;
    };
    if (row.kind === "process") {
      const { name: its, facts } = trace.processes[row.process]!;
      const title = [its, ...facts.map(([label, text]) => `${label}: ${text}`)].join("\n");
      const made = button("", { title }, () => this.view.set({ folded: toggled(this.view.look.folded, row.process) }));
      made.append(name(its));
      const { files } = trace;
      const command = facts.find(([label]) => label === "command line")?.[1] ?? "";
      const aside = files.length > 1 && this.file === null ? files[trace.processes[row.process]!.file]!.name : command;
      if (aside !== "") made.append(element("small", {}, name(aside)));
      return made;
    }
    if (row.kind === "thread") {
      const { name: its, dropped } = trace.threads[row.thread]!;
      const lost = dropped > 0 ? `\n${dropped.toLocaleString("en")} records were dropped because the buffer was full` : "";
      const title = `${its}${lost}\nClick to choose this thread for the commands`;
      const made = button("", { title }, () => this.view.set({ threads: toggled(this.view.look.threads, row.thread) }));
      made.append(name(its));
      if (dropped > 0) made.append(element("span", { class: "lost" }, " ⚠"));
      return made;
    }
    const { name: its, unit, thread } = trace.series[row.series]!;
    const [low, high] = this.derived.extremesOf(row.series).all;
    const whole = `${its}, of ${trace.threads[thread]!.name}`;
    const label = element("div", { title: whole }, name(this.isOnly(row.series) ? its : whole));
    const range = `${low.toLocaleString("en")} to ${high.toLocaleString("en")} ${unit}`;
    label.append(element("small", {}, range));
    return label;
  }

  /** True if no other thread of the process has a counter of the same name. */
  private isOnly(series: number): boolean {
    const { trace } = this.view;
    const { name: its, thread } = trace.series[series]!;
    const { process } = trace.threads[thread]!;
    return trace.series.every((other, at) => at === series || other.name !== its || trace.threads[other.thread]!.process !== process);
  }

  // ---- drawing

  private drawNow(): void {
    if (!this.root.isConnected || this.canvas.clientWidth === 0) return;
    const start = performance.now();
    this.arrange();
    const now = theme();
    this.drawHead(now);
    const rows = this.rows.between(this.top, this.top + this.scroller.clientHeight);
    this.showNames(rows);
    this.drawRows(rows, now);
    this.drawGraphAtRest();
    this.drawn = performance.now() - start;
  }

  private drawRows(rows: Row[], now: Theme): void {
    const { canvas, derived, scale, top } = this;
    const { trace } = this.view;
    const ratio = devicePixelRatio;
    canvas.style.height = `${this.scroller.clientHeight}px`;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(this.scroller.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    if (width === 0 || height === 0) return;
    const background = pixel(now.background);
    if (this.surface?.width !== width || this.surface.height !== height || this.surface.background !== background) {
      this.surface = new Surface(width, height, background);
    } else this.surface.clear();
    const { surface } = this;
    for (const time of this.ticks(scale).times) {
      surface.column(Math.round(x(scale, time) * ratio), pixel(now.grid));
    }
    for (const row of rows) {
      const from = Math.round((row.top - top) * ratio);
      if (row.kind === "process") surface.band(from, Math.round((row.top + row.height - top) * ratio), pixel(now.band));
      if (row.kind !== "thread") continue;
      for (let tier = trace.threadTier[row.thread]!; tier < trace.threadTier[row.thread + 1]!; tier++) {
        const its = Math.round((row.top + (tier - trace.threadTier[row.thread]!) * TIER_PIXELS - top) * ratio);
        const bottom = its + Math.round((TIER_PIXELS - 1) * ratio);
        surface.tier(trace, derived.levels, derived.looks, tier, scale.from, scale.to, its, bottom);
      }
    }
    const context = canvas.getContext("2d", { alpha: false })!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(surface.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.labels.draw(context, trace, derived.looks, surface.painted, ratio);
    const view = { ...scale, height: this.scroller.clientHeight };
    for (const row of rows) {
      if (row.kind !== "counter") continue;
      const series = trace.series[row.series]!;
      const extremes = derived.extremesOf(row.series);
      counter(context, series, extremes, view, row.top - top + 4, row.top + row.height - top - 4, now);
    }
    this.drawFlows(context, rows, view, now);
    for (const { file, stretches } of derived.overlapsKnown) {
      if (this.file === file && stretches) shade(context, stretches, view, now);
    }
    this.drawMarks(context, view, now);
  }

  /**
   * Returns the vertical position of a time of a thread: the middle of the tier of the innermost span at this time;
   * null if the row of the thread is not visible.
   */
  private place(rows: Row[], thread: number, time: number): number | null {
    const row = rows.find((row) => row.kind === "thread" && row.thread === thread);
    if (!row) return null;
    const { trace } = this.view;
    const first = trace.threadTier[thread]!;
    let tier = first;
    for (let at = first; at < trace.threadTier[thread + 1]!; at++) {
      const after = trace.tierFirst[at + 1]!;
      const span = firstFrom(trace.finish, time, trace.tierFirst[at]!, after);
      if (span < after && trace.begin[span]! <= time) tier = at;
    }
    return row.top - this.top + (tier - first + 0.5) * TIER_PIXELS;
  }

  private drawFlows(context: CanvasRenderingContext2D, rows: Row[], scale: Scale, now: Theme): void {
    const { flows } = this.view.trace;
    if (flows.fromTime.length === 0) return;
    const visible = visibleFlows(flows, this.derived.longestFlow, scale);
    if (visible.length > ARROWS_MAX) return;
    context.strokeStyle = context.fillStyle = now.ink;
    context.lineWidth = 1.2;
    context.globalAlpha = 0.7;
    for (const flow of visible) {
      const fromY = this.place(rows, flows.fromThread[flow]!, flows.fromTime[flow]!);
      const toY = this.place(rows, flows.toThread[flow]!, flows.toTime[flow]!);
      if (fromY === null || toY === null) continue;
      arrow(context, x(scale, flows.fromTime[flow]!), fromY, x(scale, flows.toTime[flow]!), toY);
    }
    context.globalAlpha = 1;
  }

  private drawMarks(context: CanvasRenderingContext2D, scale: Scale, now: Theme): void {
    const { trace, look } = this.view;
    if (look.marked) {
      const [left, right] = look.marked.map((time) => x(scale, time)) as [number, number];
      context.fillStyle = now.ink;
      context.globalAlpha = 0.1;
      context.fillRect(left, 0, right - left, scale.height);
      context.globalAlpha = 1;
      for (const edge of [left, right]) context.fillRect(edge - 0.5, 0, 1, scale.height);
    }
    if (look.selected === null) return;
    const tier = tierOf(trace, look.selected);
    const thread = trace.tierThread[tier]!;
    const row = this.rows.ofThread(thread);
    if (!row) return;
    const top = row.top - this.top + (tier - trace.threadTier[thread]!) * TIER_PIXELS;
    const left = Math.max(-4, x(scale, trace.begin[look.selected]!));
    const right = Math.min(scale.width + 4, Math.max(x(scale, trace.finish[look.selected]!), left + 2));
    context.strokeStyle = now.background;
    context.lineWidth = 4;
    context.strokeRect(left, top, right - left, TIER_PIXELS - 1);
    context.strokeStyle = now.ink;
    context.lineWidth = 2;
    context.strokeRect(left, top, right - left, TIER_PIXELS - 1);
  }

  private drawHead(now: Theme): void {
    const { head, scale } = this;
    const ratio = devicePixelRatio;
    const gutter = this.names.clientWidth;
    const [width, height] = [this.scroller.clientWidth, AXIS_PIXELS + GRAPH_PIXELS];
    head.style.height = `${height}px`;
    head.style.width = `${width}px`;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (head.width !== wide || head.height !== high) [head.width, head.height] = [wide, high];
    const context = head.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    context.fillStyle = now.faint;
    context.textAlign = "right";
    context.fillText("threads in shown states", gutter - 8, AXIS_PIXELS + 10);
    const { step, times } = this.ticks(scale);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, width - gutter, height);
    context.clip();
    context.textAlign = "left";
    for (const time of times) {
      const at = gutter + Math.round(x(scale, time)) + 0.5;
      context.fillStyle = now.grid;
      context.fillRect(at - 0.5, 0, 1, height);
      context.fillStyle = now.ink;
      context.fillText(instant(time, step), at + 4, AXIS_PIXELS / 2);
    }
    const most = this.drawGraph(context, gutter, now);
    context.restore();
    context.textAlign = "right";
    context.fillStyle = now.faint;
    if (most > 0) context.fillText(`up to ${most.toLocaleString("en", { maximumFractionDigits: 1 })}`, gutter - 8, AXIS_PIXELS + 26);
  }

  /** Draws the concurrency graph computed last, at its place in the current range. Returns its maximum. */
  private drawGraph(context: CanvasRenderingContext2D, gutter: number, now: Theme): number {
    const { graph, scale } = this;
    if (!graph) return 0;
    const most = graph.values.reduce((most, value) => Math.max(most, value), 0);
    const bottom = AXIS_PIXELS + GRAPH_PIXELS;
    context.fillStyle = now.accent;
    context.globalAlpha = 0.55;
    const bucket = (graph.to - graph.from) / graph.values.length;
    const wide = Math.max(1, (bucket / (scale.to - scale.from)) * scale.width);
    graph.values.forEach((value, at) => {
      if (value === 0) return;
      const height = (value / most) * (GRAPH_PIXELS - 4);
      context.fillRect(gutter + x(scale, graph.from + at * bucket), bottom - height, wide, height);
    });
    context.globalAlpha = 1;
    return most;
  }

  private computeGraph(): void {
    const { from, to, width } = this.scale;
    const { counted } = this.derived;
    const known = this.graph;
    if (known && known.from === from && known.to === to && known.counted === counted && known.values.length === width) return;
    if (width === 0 || !this.root.isConnected) return;
    const { trace } = this.view;
    const here = this.file === null ? null : Uint8Array.from(trace.threads, (thread) => (this.isHere(thread.process) ? 1 : 0));
    this.graph = { from, to, counted, values: concurrency(trace, [from, to], counted, width, here) };
    this.drawHead(theme());
  }

  private isHere(process: number): boolean {
    return this.file === null || this.view.trace.processes[process]!.file === this.file;
  }

  // ---- pointing

  /** Returns the span at the pointer, or null. */
  private spanAt(event: MouseEvent): number | null {
    const { trace } = this.view;
    const bounds = this.canvas.getBoundingClientRect();
    const height = event.clientY - bounds.top + this.top;
    const row = this.rows.count > 0 ? this.rows.row(this.rows.at(height)) : null;
    if (row?.kind !== "thread" || height > row.top + row.height) return null;
    const tier = trace.threadTier[row.thread]! + Math.floor((height - row.top) / TIER_PIXELS);
    if (tier >= trace.threadTier[row.thread + 1]!) return null;
    const time = this.timeAt(event);
    const { from, to, width } = this.scale;
    const near = (NEAR_PIXELS * (to - from)) / width;
    const [first, after] = [trace.tierFirst[tier]!, trace.tierFirst[tier + 1]!];
    const next = firstFrom(trace.finish, time, first, after);
    const shown = (span: number) => span >= first && span < after && this.derived.shown[trace.state[span]!] === 1;
    const away = (span: number) => Math.max(trace.begin[span]! - time, time - trace.finish[span]!);
    const near2 = [next, next - 1].filter((span) => shown(span) && away(span) <= near);
    return near2.sort((one, other) => away(one) - away(other))[0] ?? null;
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", (event) => {
      const span = this.spanAt(event);
      if (span !== null) this.zoomTo(span);
    });
    canvas.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
  }

  private lastWheel = 0;

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const gesture = event.timeStamp - this.lastWheel > 400 ? "new" : "goes on";
    this.lastWheel = event.timeStamp;
    const pixels = event.deltaMode === 0 ? 1 : 30;
    const { from, to } = this.view.look;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const moved = (((event.deltaX || event.deltaY) * pixels) / this.scale.width) * (to - from);
      this.view.show(from + moved, to + moved, gesture);
    } else if (event.altKey) this.scroller.scrollTop += event.deltaY * pixels;
    else this.view.zoom(1.0018 ** (event.deltaY * pixels), this.timeAt(event), gesture);
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    const { canvas, view } = this;
    const start = { x: event.clientX, y: event.clientY, top: this.scroller.scrollTop, ...view.look };
    const at = this.timeAt(event);
    let moved = false;
    canvas.setPointerCapture(event.pointerId);
    const move = (event: PointerEvent) => {
      if (!moved && Math.hypot(event.clientX - start.x, event.clientY - start.y) < 4) return;
      if (!moved && !event.shiftKey) view.remember();
      moved = true;
      if (event.shiftKey) {
        const other = this.timeAt(event);
        view.set({ marked: [Math.min(at, other), Math.max(at, other)] });
        return;
      }
      const by = ((start.x - event.clientX) / this.scale.width) * (start.to - start.from);
      view.show(start.from + by, start.to + by, "goes on");
      this.scroller.scrollTop = start.top + start.y - event.clientY;
    };
    const release = (event: PointerEvent) => {
      canvas.removeEventListener("pointermove", move);
      if (!moved) view.set({ selected: this.spanAt(event), ...(event.shiftKey ? { marked: null } : {}) });
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", release, { once: true });
  }

  private hover(event: PointerEvent): void {
    const span = event.buttons === 0 ? this.spanAt(event) : null;
    this.tip.hidden = span === null;
    if (span === null) return;
    const { trace } = this.view;
    const length = trace.finish[span]! - trace.begin[span]!;
    const what = element("b", {}, name(trace.states[trace.state[span]!]!.name));
    const open = trace.unfinished.has(span) ? ", not ended" : "";
    this.tip.replaceChildren(what, ` ${duration(length)}${open}`);
    const bounds = this.root.getBoundingClientRect();
    const left = Math.min(event.clientX - bounds.left + 14, bounds.width - this.tip.offsetWidth - 8);
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${Math.min(event.clientY - bounds.top + 16, bounds.height - 30)}px`;
  }

  // ---- keys

  /** Handles a key. Returns false if the key has no function in the time line. */
  private key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const { view } = this;
    const { from, to, selected } = view.look;
    const step = (to - from) * (event.shiftKey ? 0.5 : 0.1);
    const middle = (from + to) / 2;
    const gesture = event.repeat ? "goes on" : "new";
    switch (event.key) {
      case "ArrowLeft":
      case "a":
        view.show(from - step, to - step, gesture);
        return true;
      case "ArrowRight":
      case "d":
        view.show(from + step, to + step, gesture);
        return true;
      case "+":
      case "=":
      case "w":
        view.zoom(0.7, middle, gesture);
        return true;
      case "-":
      case "s":
        view.zoom(1 / 0.7, middle, gesture);
        return true;
      case "ArrowUp":
        this.scroller.scrollTop -= 40;
        return true;
      case "ArrowDown":
        this.scroller.scrollTop += 40;
        return true;
      case "PageUp":
        this.scroller.scrollTop -= this.scroller.clientHeight;
        return true;
      case "PageDown":
        this.scroller.scrollTop += this.scroller.clientHeight;
        return true;
      case "Enter":
        if (selected !== null) this.zoomTo(selected);
        return true;
      case "n":
      case "p":
        this.neighbour(event.key === "n" ? 1 : -1);
        return true;
      case "i":
      case "o":
        this.nested(event.key === "i" ? 1 : -1);
        return true;
      case "Escape":
        view.set({ selected: null, marked: null });
        return true;
      default:
        return false;
    }
  }

  /** Selects a span and shows it with some time before and after. */
  zoomTo(span: number): void {
    const { trace } = this.view;
    const [begin, end] = [trace.begin[span]!, trace.finish[span]!];
    const room = Math.max((end - begin) * 0.3, 10);
    this.view.show(begin - room, end + room);
    this.view.set({ selected: span });
  }

  /** Selects the next or previous shown span of the same tier; without a selection, the first visible span. */
  private neighbour(by: 1 | -1): void {
    const { trace, look } = this.view;
    const { shown } = this.derived;
    if (look.selected === null) {
      const row = this.rows.between(this.top, this.top + this.scroller.clientHeight).find((row) => row.kind === "thread");
      if (row?.kind !== "thread") return;
      const tier = trace.threadTier[row.thread]!;
      const after = trace.tierFirst[tier + 1]!;
      const span = tier < trace.threadTier[row.thread + 1]! ? firstFrom(trace.finish, this.scale.from, trace.tierFirst[tier]!, after) : after;
      if (span < after) this.view.select(span);
      return;
    }
    const tier = tierOf(trace, look.selected);
    let span = look.selected + by;
    while (span >= trace.tierFirst[tier]! && span < trace.tierFirst[tier + 1]! && shown[trace.state[span]!] === 0) span += by;
    if (span >= trace.tierFirst[tier]! && span < trace.tierFirst[tier + 1]!) this.view.select(span);
  }

  /** Selects the first span within the selected span, or the span around it. */
  private nested(by: 1 | -1): void {
    const { trace, look } = this.view;
    if (look.selected === null) return;
    const tier = tierOf(trace, look.selected) + by;
    if (tier < 0 || trace.tierThread[tier] !== threadOf(trace, look.selected)) return;
    const [first, after] = [trace.tierFirst[tier]!, trace.tierFirst[tier + 1]!];
    const begin = trace.begin[look.selected]!;
    const span = by > 0 ? firstFrom(trace.begin, begin, first, after) : firstAbove(trace.begin, begin, first, after) - 1;
    const inside = by > 0 ? trace.begin[span]! <= trace.finish[look.selected]! : trace.finish[span]! >= begin;
    if (span >= first && span < after && inside) this.view.select(span);
  }
}

