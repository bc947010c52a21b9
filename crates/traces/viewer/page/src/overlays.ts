/** Draws over the spans of a time line: names of states, counters, flows and overlaps. */

import type { Stretches } from "./measures";
import type { Looks } from "./palette";
import type { Painted } from "./paint";
import type { Theme } from "./theme";
import { TIER_PIXELS } from "./rows";
import { firstAbove, firstFrom, type Flows, type Series, type Trace } from "./trace";

export const LABEL_FONT = "11px system-ui, sans-serif";
/** Minimum width in pixels of a span with letters. */
const LETTERS_PIXELS = 12;
/** Maximum number of arrows. If more flows are visible, none are drawn, because arrows would cover everything. */
export const ARROWS_MAX = 500;

/** Shown range of times, and size of the picture in CSS pixels. */
export interface Scale {
  from: number;
  to: number;
  width: number;
  height: number;
}

export function x(scale: Scale, time: number): number {
  return ((time - scale.from) / (scale.to - scale.from)) * scale.width;
}

/** Writes names into spans, truncated to their width; in narrow spans, the codes of their states. */
export class Labels {
  private readonly widths = new Map<string, number>();

  draw(context: CanvasRenderingContext2D, trace: Trace, looks: Looks[], painted: Painted[], ratio: number): void {
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const { span, left, right, top } of painted) {
      const room = (right - left) / ratio;
      if (room < LETTERS_PIXELS) continue;
      const state = trace.state[span]!;
      const text = this.fitting(context, trace.states[state]!.name, looks[state]!.code, room - 6);
      if (text === "") continue;
      const middle = top / ratio + (TIER_PIXELS - 1) / 2 + 0.5;
      const { color, ink } = looks[state]!;
      // Replace the pattern behind the letters by the plain colour.
      context.fillStyle = color;
      const wide = Math.min(this.width(context, text) + 3, room - 2);
      context.fillRect(left / ratio + 2, top / ratio + 2, wide, TIER_PIXELS - 5);
      context.fillStyle = ink;
      context.fillText(text, left / ratio + 3, middle);
    }
  }

  private fitting(context: CanvasRenderingContext2D, name: string, code: string, room: number): string {
    if (this.width(context, name) <= room) return name;
    const letters = [...name];
    const count = Math.floor((letters.length * (room - this.width(context, "…"))) / this.width(context, name));
    if (count >= 3) return `${letters.slice(0, count).join("")}…`;
    return this.width(context, code) <= room ? code : "";
  }

  private width(context: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      // The map holds whole names and codes, which can be many, so it is cleared at a limit.
      if (this.widths.size > 10_000) this.widths.clear();
      width = context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }
}

/** Minimum and maximum of a counter, over blocks of its samples and over all samples. */
export class Extremes {
  private static readonly BLOCK = 64;
  private readonly least: Float64Array;
  private readonly largest: Float64Array;
  readonly all: [number, number];

  constructor(private readonly value: Float64Array) {
    const blocks = Math.ceil(value.length / Extremes.BLOCK);
    this.least = new Float64Array(blocks).fill(Infinity);
    this.largest = new Float64Array(blocks).fill(-Infinity);
    value.forEach((value, at) => {
      const block = Math.floor(at / Extremes.BLOCK);
      this.least[block] = Math.min(this.least[block]!, value);
      this.largest[block] = Math.max(this.largest[block]!, value);
    });
    this.all = [this.least.reduce((a, b) => Math.min(a, b), 0), this.largest.reduce((a, b) => Math.max(a, b), 0)];
  }

  /** Returns the minimum and maximum of the samples `from..to`. */
  of(from: number, to: number): [number, number] {
    let [least, largest] = [Infinity, -Infinity];
    for (let at = from; at < to; ) {
      const block = at / Extremes.BLOCK;
      if (Number.isInteger(block) && at + Extremes.BLOCK <= to) {
        least = Math.min(least, this.least[block]!);
        largest = Math.max(largest, this.largest[block]!);
        at += Extremes.BLOCK;
      } else {
        least = Math.min(least, this.value[at]!);
        largest = Math.max(largest, this.value[at]!);
        at++;
      }
    }
    return [least, largest];
  }
}

/** Draws a counter as steps between `top` and `bottom`. Where a pixel has several samples, draws their range. */
export function counter(
  context: CanvasRenderingContext2D,
  { time }: Series,
  extremes: Extremes,
  scale: Scale,
  top: number,
  bottom: number,
  theme: Theme,
): void {
  const [low, high] = extremes.all;
  const y = (value: number) => bottom - ((value - low) / Math.max(high - low, Number.MIN_VALUE)) * (bottom - top);
  const pixel = (scale.to - scale.from) / scale.width;
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.35;
  let next = firstAbove(time, scale.from, 0, time.length);
  const heights: number[] = [];
  for (let at = 0; at < scale.width; at++) {
    const until = scale.from + (at + 1) * pixel;
    const first = next;
    next = firstFrom(time, until, first, Math.min(time.length, first + Math.ceil(time.length)));
    // Include the value at the begin of the pixel.
    const [least, largest] = extremes.of(Math.max(0, first - 1), Math.max(next, first));
    if (first === 0 && next === 0) {
      heights.push(NaN);
      continue;
    }
    const upper = y(largest);
    context.fillRect(at, upper, 1, y(Math.min(least, 0) === least ? least : 0) - upper);
    heights.push(upper);
  }
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1;
  context.beginPath();
  heights.forEach((height, at) => {
    if (Number.isNaN(height)) return;
    if (at === 0 || Number.isNaN(heights[at - 1]!)) context.moveTo(at, height);
    else context.lineTo(at, heights[at - 1]!);
    context.lineTo(at, height);
  });
  context.stroke();
}

/** Shades intervals of time over the whole height. */
export function shade(context: CanvasRenderingContext2D, { begin, end }: Stretches, scale: Scale, theme: Theme): void {
  const pixel = (scale.to - scale.from) / scale.width;
  context.fillStyle = theme.accent;
  for (let i = firstAbove(end, scale.from, 0, end.length); i < begin.length && begin[i]! < scale.to; ) {
    const left = Math.max(0, x(scale, begin[i]!));
    // Draw intervals that touch the same pixel as one.
    let last = i;
    for (;;) {
      const further = firstAbove(begin, end[last]! + pixel, last + 1, begin.length) - 1;
      if (further <= last) break;
      last = further;
      if (end[last]! > scale.to) break;
    }
    const right = Math.min(scale.width, x(scale, end[last]!));
    context.globalAlpha = 0.22;
    context.fillRect(left, 0, Math.max(1, right - left), scale.height);
    context.globalAlpha = 0.7;
    context.fillRect(left, 0, Math.max(1, right - left), 3);
    i = last + 1;
  }
  context.globalAlpha = 1;
}

/** Returns the flows that touch a range; more than {@link ARROWS_MAX} if there are too many to draw. */
export function visibleFlows({ fromTime, toTime }: Flows, longest: number, { from, to }: Scale): number[] {
  const flows = [];
  const after = firstAbove(fromTime, to + longest, 0, fromTime.length);
  for (let flow = firstFrom(fromTime, from - longest, 0, fromTime.length); flow < after; flow++) {
    const [sent, came] = [fromTime[flow]!, toTime[flow]!];
    if (Math.max(sent, came) < from || Math.min(sent, came) > to) continue;
    flows.push(flow);
    if (flows.length > ARROWS_MAX) break;
  }
  return flows;
}

/** Draws an arrow from one point to another. */
export function arrow(context: CanvasRenderingContext2D, fromX: number, fromY: number, toX: number, toY: number): void {
  const bend = Math.max(12, Math.abs(toX - fromX) / 2);
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - 6, toY - 3.5);
  context.lineTo(toX - 6, toY + 3.5);
  context.fill();
}
