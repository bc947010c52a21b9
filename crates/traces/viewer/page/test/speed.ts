/**
 * Measures the page in Chromium without a window: `npm run speed ADDRESS`, with the address of a running `starfish view
 * --no-open`.
 *
 * - opening: time from the request of the page until everything visible is drawn
 * - zoom, move, scroll: times between frames, and the times to draw them, while each frame changes the view
 * - views: time until another view is drawn
 * - memory: current and maximum memory of the largest process of Chromium
 */

import { readdirSync, readFileSync } from "node:fs";
import { chromium, type Page } from "playwright-core";
import { executable, settled } from "./browser";

const FRAMES = 180;

function percentile(numbers: number[], share: number): string {
  return numbers.sort((one, other) => one - other)[Math.ceil(share * numbers.length) - 1]!.toFixed(1);
}

/**
 * Changes the view a little in each frame. Returns for each frame the time since the previous frame and the time to
 * draw it, in milliseconds.
 */
function frames(page: Page, kind: "zoom" | "move" | "scroll"): Promise<[number, number][]> {
  return page.evaluate(
    ([kind, count]) =>
      new Promise<[number, number][]>((resolve) => {
        const { view, panels } = window.viewer!;
        const scroller = document.querySelector(".panel .scroller")!;
        const times: [number, number][] = [];
        if (kind === "move") view.show(0, view.whole / 20);
        let last = 0;
        const step = (now: number) => {
          if (last > 0) times.push([now - last, panels()[0]!.drawn]);
          last = now;
          const { from, to } = view.look;
          if (times.length === count) resolve(times);
          else {
            // Zoom in to a hundredth of the range, and out again.
            if (kind === "zoom") view.zoom(times.length < count / 2 ? 0.95 : 1 / 0.95, view.whole / 3, "goes on");
            if (kind === "move") view.show(from + (to - from) / 30, to + (to - from) / 30, "goes on");
            if (kind === "scroll") scroller.scrollTop += times.length < count / 2 ? 15 : -15;
            requestAnimationFrame(step);
          }
        };
        requestAnimationFrame(step);
      }),
    [kind, FRAMES] as const,
  );
}

/** Returns the current and maximum memory of the largest process of Chromium, in MiB. */
function memory(browser: number): string {
  const status = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/status`, "utf8");
    } catch {
      return "";
    }
  };
  const number = (text: string, field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((pid) => ({ pid: Number(pid), text: status(pid) }));
  const parent = new Map(all.map(({ pid, text }) => [pid, number(text, "PPid")]));
  const isOurs = (pid: number): boolean => pid === browser || (pid > 1 && isOurs(parent.get(pid) ?? 0));
  const ours = all.filter(({ pid }) => isOurs(pid)).map(({ text }) => [number(text, "VmRSS") / 1024, number(text, "VmHWM") / 1024]);
  const [now, most] = ours.sort((one, other) => other[1]! - one[1]!)[0]!;
  return `${now!.toFixed(0)} MiB, at most ${most!.toFixed(0)} MiB`;
}

const address = process.argv[2]!;
const server = await chromium.launchServer({ executablePath: executable()!, args: ["--no-sandbox"] });
const browser = await chromium.connect(server.wsEndpoint());
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const say = (what: string, value: string) => console.log(`${what.padEnd(14)} ${value}`);
await page.goto(address, { waitUntil: "commit" });
await page.waitForSelector('body[data-state="at rest"]', { timeout: 120_000 });
say("opening", `${((await page.evaluate(() => performance.now())) / 1000).toFixed(2)} s`);
say("spans", String(await page.evaluate(() => window.viewer!.view.trace.begin.length)));
for (const kind of ["zoom", "move", "scroll"] as const) {
  const times = await frames(page, kind);
  await settled(page);
  const [between, drawing] = [times.map(([time]) => time), times.map(([, drawn]) => drawn)];
  const figures = `median ${percentile(between, 0.5)} ms, 95 % ${percentile(between, 0.95)} ms, longest ${percentile(between, 1)} ms`;
  say(kind, `${figures}; drawing: median ${percentile(drawing, 0.5)} ms, 95 % ${percentile(drawing, 0.95)} ms`);
}
await page.evaluate(() => window.viewer!.view.show(0, window.viewer!.view.whole));
await settled(page);
for (const kind of ["duration", "distribution", "summary", "sequence"] as const) {
  const start = performance.now();
  await page.evaluate((kind) => window.viewer!.view.set({ kind }), kind);
  await settled(page);
  say(kind, `${((performance.now() - start) / 1000).toFixed(2)} s`);
}
const start = performance.now();
await page.evaluate(() => window.viewer!.view.set({ states: new Set([0, 1]) }));
await settled(page);
say("overlap", `${((performance.now() - start) / 1000).toFixed(2)} s`);
say("memory", memory(server.process().pid!));
await browser.close();
await server.close();
