/** The mini map: the number of threads in shown states over the whole time, and a window that marks the shown range. */

import type { Derived } from "./derived";
import { byId, nextFrame } from "./elements";
import { concurrency } from "./measures";
import { theme } from "./theme";
import type { View } from "./view";

const EDGE_PIXELS = 5;

export class MiniMap {
  private readonly canvas = byId<HTMLCanvasElement>("minimap");
  private values: { counted: Uint8Array; width: number; end: number; values: Float64Array } | null = null;
  readonly draw = nextFrame(() => this.drawNow());

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
  ) {
    new ResizeObserver(this.draw).observe(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  private drawNow(): void {
    const { canvas, view } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (width === 0) return;
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const { counted } = this.derived;
    if (this.values?.counted !== counted || this.values.width !== width || this.values.end !== view.whole) {
      this.values = { counted, width, end: view.whole, values: concurrency(view.trace, [0, view.whole], counted, width) };
    }
    const { values } = this.values;
    const context = canvas.getContext("2d")!;
    const now = theme();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = now.band;
    context.fillRect(0, 0, width, height);
    const most = values.reduce((most, value) => Math.max(most, value), 0);
    context.fillStyle = now.accent;
    values.forEach((value, at) => {
      const high = (value / Math.max(most, Number.MIN_VALUE)) * (height - 4);
      context.fillRect(at, height - high, 1, high);
    });
    const [left, right] = this.window;
    context.fillStyle = now.background;
    context.globalAlpha = 0.65;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = now.ink;
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, Math.max(2, right - left - 2), height - 2);
  }

  /** Left and right edge of the shown range, in pixels. */
  private get window(): [number, number] {
    const { look, whole } = this.view;
    const scale = this.canvas.clientWidth / whole;
    return [look.from * scale, Math.max(look.to * scale, look.from * scale + 3)];
  }

  private time(event: MouseEvent): number {
    const bounds = this.canvas.getBoundingClientRect();
    return ((event.clientX - bounds.left) / bounds.width) * this.view.whole;
  }

  private press(event: PointerEvent): void {
    const { canvas, view } = this;
    const start = this.time(event);
    const [left, right] = this.window;
    const at = event.clientX - canvas.getBoundingClientRect().left;
    const { from, to } = view.look;
    const all = to - from >= view.whole;
    view.remember();
    canvas.setPointerCapture(event.pointerId);
    // Dragging an edge moves this edge, dragging the middle moves both, and dragging outside draws a new range.
    const near = (edge: number) => Math.abs(at - edge) <= EDGE_PIXELS;
    const move = (event: PointerEvent) => {
      const time = Math.min(Math.max(this.time(event), 0), view.whole);
      if (!all && near(left)) view.show(Math.min(time, to), to, "goes on");
      else if (!all && near(right)) view.show(from, Math.max(time, from), "goes on");
      else if (!all && at > left && at < right) view.show(from + time - start, to + time - start, "goes on");
      else if (Math.abs(time - start) > view.whole / 1000) view.show(Math.min(time, start), Math.max(time, start), "goes on");
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), { once: true });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    this.view.zoom(1.0018 ** (event.deltaY * (event.deltaMode === 0 ? 1 : 30)), this.time(event), "goes on");
  }
}
