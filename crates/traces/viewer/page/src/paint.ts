/**
 * Paints spans as pixels.
 *
 * For each tier, one row of pixels is computed and then repeated over the height of the tier. Spans that are too narrow
 * for a rectangle are summed up for each pixel by the levels of detail. So a frame with ten million spans takes about
 * as long as one with a thousand.
 */

import type { Levels, Tally } from "./levels";
import { DARKER, type Looks } from "./palette";
import { firstFrom, type Trace } from "./trace";

/** Minimum width in pixels of a span that is drawn as a rectangle. */
const OWN_PIXELS = 2;
/** Minimum width in pixels of a span with a pattern. */
const PATTERN_PIXELS = 5;

/** A span painted with a pattern, which is wide enough for a label. */
export interface Painted {
  span: number;
  left: number;
  right: number;
  top: number;
}

/** The pixels of a time line, without overlays. */
export class Surface {
  readonly image: ImageData;
  private readonly pixels: Uint32Array;
  readonly painted: Painted[] = [];

  constructor(
    readonly width: number,
    readonly height: number,
    readonly background: number,
  ) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.clear();
  }

  clear(): void {
    this.pixels.fill(this.background);
    this.painted.length = 0;
  }

  /** Fills whole rows of pixels. */
  band(top: number, bottom: number, color: number): void {
    const from = Math.max(0, top) * this.width;
    this.pixels.fill(color, from, Math.max(from, Math.min(bottom, this.height) * this.width));
  }

  /** Fills a column of pixels. */
  column(x: number, color: number): void {
    for (let at = x; at >= 0 && x < this.width && at < this.pixels.length; at += this.width) this.pixels[at] = color;
  }

  /**
   * Paints the spans of a tier that touch the range `from..to` into the rows of pixels `top..bottom`. The range spans
   * the width of the surface.
   */
  tier(trace: Trace, levels: Levels, looks: Looks[], tier: number, from: number, to: number, top: number, bottom: number): void {
    const { width, pixels } = this;
    const [first, last] = [Math.max(0, top), Math.min(bottom, this.height)];
    if (first >= last) return;
    const { begin, finish, state } = trace;
    const { shown } = levels;
    const scale = width / (to - from);
    const row = first * width;
    const after = trace.tierFirst[tier + 1]!;
    const tally: Tally = { busy: 0, votes: 0, state: 0 };
    const wide = this.painted.length;
    let span = firstFrom(finish, from, trace.tierFirst[tier]!, after);
    while (span < after && begin[span]! <= to) {
      const left = (begin[span]! - from) * scale;
      const right = (finish[span]! - from) * scale;
      const pixel = Math.max(0, Math.floor(left));
      if (pixel >= width) break;
      if (right - left >= OWN_PIXELS) {
        if (shown[state[span]!] === 1) {
          const edge = Math.min(width, Math.max(pixel + 1, Math.round(right)));
          const its = looks[state[span]!]!;
          pixels.fill(color(its.red, its.green, its.blue), row + pixel, row + edge);
          // A darker first column separates adjacent calls of the same state.
          if (right - left >= 4 && left >= 0) pixels[row + pixel] = color(its.red * 0.6, its.green * 0.6, its.blue * 0.6);
          if (right - left >= PATTERN_PIXELS) this.painted.push({ span, left: pixel, right: edge, top });
        }
        span++;
        continue;
      }
      const next = this.lastNarrow(trace, span, after, from + (pixel + 1) / scale, scale);
      levels.tally(span, next, tally);
      if (tally.votes > 0) {
        const its = looks[tally.state]!;
        const share = Math.min(1, 0.35 + 0.65 * tally.busy * scale);
        pixels[row + pixel] = mix(pixels[row + pixel]!, its, share);
      }
      span = next;
    }
    for (let y = first + 1; y < last; y++) pixels.copyWithin(y * width, row, row + width);
    for (const rectangle of this.painted.slice(wide)) this.pattern(rectangle, looks[state[rectangle.span]!]!, first, last);
  }

  /**
   * Returns the first span after `span` that begins after the pixel (time `end`), or is wide enough for a rectangle.
   */
  private lastNarrow(trace: Trace, span: number, after: number, end: number, scale: number): number {
    let step = 1;
    let low = span + 1;
    while (low + step < after && trace.begin[low + step]! < end) {
      low += step;
      step *= 2;
    }
    const next = firstFrom(trace.begin, end, low, Math.min(after, low + step));
    const last = next - 1;
    const isWide = last > span && (trace.finish[last]! - trace.begin[last]!) * scale >= OWN_PIXELS;
    return isWide ? last : next;
  }

  private pattern({ left, right }: Painted, { red, green, blue, pattern }: Looks, first: number, last: number): void {
    const dark = color(red * DARKER, green * DARKER, blue * DARKER);
    for (let y = first; y < last; y++) {
      const bits = pattern[y % 8]!;
      if (bits === 0) continue;
      for (let x = left + 1; x < right; x++) if ((bits >> (x % 8)) & 1) this.pixels[y * this.width + x] = dark;
    }
  }
}

/** Returns a pixel as stored in memory: red in the lowest byte. */
export function color(red: number, green: number, blue: number): number {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

function mix(under: number, { red, green, blue }: Looks, share: number): number {
  const rest = 1 - share;
  return color(
    (under & 0xff) * rest + red * share,
    ((under >> 8) & 0xff) * rest + green * share,
    ((under >> 16) & 0xff) * rest + blue * share,
  );
}
