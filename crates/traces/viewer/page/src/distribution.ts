/**
 * The view of distributions: for each state, a histogram of the durations of its calls, with median and 99th
 * percentile.
 */

import uPlot from "uplot";

import type { Derived } from "./derived";
import { byId, element, name } from "./elements";
import { figures, grouped, histogram, threadsOf, type Figures, type Groups } from "./measures";
import { swatch, type Looks } from "./palette";
import { theme } from "./theme";
import { duration, ticks } from "./time";
import type { View } from "./view";

const BINS = 60;
const PLOT_PIXELS = 170;
/** Maximum number of states drawn: those with the most time. Users see the others by choosing them. */
const PLOTS_MAX = 24;

export class DistributionView {
  private readonly root = byId("distribution");
  private plots: uPlot[] = [];

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
  ) {}

  show(): void {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
    const { trace, look, measured, counted } = this.view;
    const states = this.derived.shown.map((shown, state) => (look.states.size === 0 || look.states.has(state) ? shown : 0));
    const groups = counted.map((file) =>
      grouped(trace, measured, states, threadsOf(trace, look.threads, file), trace.states.length, (state) => state),
    );
    const sum = (of: (groups: Groups) => number) => groups.reduce((sum, its) => sum + of(its), 0);
    const order = trace.states.map((_, state) => state).filter((state) => sum(({ lengths }) => lengths[state]!.length) > 0);
    const totals = trace.states.map((_, state) => sum(({ totals }) => totals[state]!));
    order.sort((one, other) => totals[other]! - totals[one]!);
    const scales = element("select", { "aria-label": "Scale of durations" });
    for (const [value, text] of [["log", "logarithmic"], ["linear", "linear"]] as const) {
      scales.append(element("option", { value }, text));
    }
    scales.value = look.logarithmic ? "log" : "linear";
    scales.addEventListener("change", () => this.view.set({ logarithmic: scales.value === "log" }));
    const left = order.length > PLOTS_MAX ? `; the ${PLOTS_MAX} states with the most time are shown; choose others in the legend` : "";
    const told = element("p", { class: "told" }, element("label", {}, "Durations ", scales), left);
    const cards = element("div", { class: "cards" });
    this.root.replaceChildren(told, cards);
    if (order.length === 0) cards.append(element("p", {}, "No call touches the measured range."));
    for (const state of order.slice(0, PLOTS_MAX)) {
      groups.forEach(({ lengths, totals }, at) => {
        const its = lengths[state]!;
        if (its.length > 0) cards.append(this.card(state, counted[at]!, its, figures(its, totals[state]!)));
      });
    }
  }

  private card(state: number, file: number | null, lengths: Float64Array, its: Figures): HTMLElement {
    const { trace, look } = this.view;
    const picture = element("canvas", { class: "swatch", "aria-hidden": "true" });
    swatch(picture, this.derived.looks[state]!);
    const text = `${its.count.toLocaleString("en")} calls, median ${duration(its.median)}, 99 % ${duration(its.p99)}, largest ${duration(its.largest)}`;
    const place = element("div", { class: "plot", role: "img", "aria-label": `Histogram: ${text}` });
    const of = file === null ? "" : `, ${trace.files[file]!.name}`;
    const title = element("h2", {}, picture, name(trace.states[state]!.name + of));
    const card = element("section", { class: "card" }, title, place, element("p", {}, text));
    // The width of the card is known only after it is in the page.
    requestAnimationFrame(() => {
      if (place.isConnected) this.plots.push(plot(place, lengths, its, this.derived.looks[state]!, look.logarithmic));
    });
    return card;
  }
}

function plot(place: HTMLElement, lengths: Float64Array, its: Figures, looks: Looks, logarithmic: boolean): uPlot {
  const { edges, counts } = histogram(lengths, logarithmic, BINS);
  const now = theme();
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: now.ink, font, grid: { stroke: now.grid, width: 1 }, ticks: { stroke: now.grid, width: 1 } };
  const marks = (plot: uPlot) => mark(plot, [[its.median, "median"], [its.p99, "99 %"]], now.ink);
  const options: uPlot.Options = {
    width: place.clientWidth,
    height: PLOT_PIXELS,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, distr: logarithmic ? 3 : 1, range: [edges[0]!, edges.at(-1)!] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.12)] },
    },
    axes: [
      { ...axis, splits: () => marksOf(edges, logarithmic), filter: (_, marks) => marks, values: (_, marks) => marks.map(duration) },
      { ...axis, size: 56, values: (_, values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : "")) },
    ],
    series: [
      {},
      {
        stroke: looks.color,
        fill: `${looks.color}99`,
        points: { show: false },
        paths: uPlot.paths.stepped!({ align: 1 }),
      },
    ],
    hooks: { draw: [marks] },
  };
  return new uPlot(options, [edges, [...counts, counts.at(-1)!]], place);
}

/** Returns round durations for the labels of the axis, few enough that the labels do not overlap. */
function marksOf(edges: number[], logarithmic: boolean): number[] {
  const [from, to] = [edges[0]!, edges.at(-1)!];
  const powers = Math.log10(to / from);
  if (!logarithmic || powers < 0.8) return ticks(from, to, 5).times;
  const digits = powers > 2.5 ? [1] : [1, 2, 5];
  const marks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
    marks.push(...digits.map((digit) => digit * 10 ** power).filter((mark) => mark >= from && mark <= to));
  }
  return marks;
}

/** Draws vertical lines, each with a word. */
function mark(plot: uPlot, marks: [number, string][], ink: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.setLineDash([4, 3]);
  let free = -Infinity;
  marks.forEach(([value, word]) => {
    const at = Math.round(plot.valToPos(Math.max(value, 1), "x", true));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const wide = ctx.measureText(word).width;
    const leftOf = at + wide + 4 > bbox.left + bbox.width;
    const left = leftOf ? at - wide - 4 : at + 4;
    ctx.fillText(word, left, bbox.top + (left < free ? 14 * devicePixelRatio : 1));
    free = left + wide + 6;
  });
  ctx.restore();
}
