/** Tests of the self-contained page in Chromium. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";

import { decode } from "../src/columns";
import { firstFrom } from "../src/trace";
import { end, executable, open, settled } from "./browser";
import { columns, drawn, selfContained, type Made, type MadeSpan } from "./made";

const BUILT = readFileSync("../src/page.html", "utf8");
const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "</script><script>document.title='taken'</script>",
  "\u202eright to left\u202c",
  "\"'><b>&amp;",
  "العربية 漢字 ไทย 🦈",
  "nul\u0000 and bell\u0007",
  "x".repeat(4000),
];

const skip = executable() === null ? "Chromium is missing: apt-get install chromium, or set CHROMIUM to its path" : false;

let directory: string;
before(() => void (directory = mkdtempSync(join(tmpdir(), "viewer-"))));
after(async () => {
  await end();
  rmSync(directory, { recursive: true });
});

/** Opens the self-contained page of a trace. */
async function shown(made: Made, hash = "", theme: "light" | "dark" = "light", look = "") {
  const file = join(directory, "page.html");
  writeFileSync(file, selfContained(BUILT, columns(made), look));
  const opened = await open(`${pathToFileURL(file)}#${hash}`, { theme });
  const ending = async () => {
    assert.deepEqual(opened.complaints, []);
    // The page requested only itself.
    assert.deepEqual(opened.asked.filter((url) => !url.startsWith(String(pathToFileURL(file))) && !url.startsWith("data:")), []);
    await opened.close();
  };
  return { ...opened, close: ending };
}

const range = (page: Page) => page.evaluate(() => [window.viewer!.view.look.from, window.viewer!.view.look.to] as const);
const text = (page: Page, selector: string) => page.locator(selector).innerText();

/** Returns the colour of a pixel of the time line. */
function pixel(page: Page, x: number, y: number): Promise<number[]> {
  return page.evaluate(
    ([x, y]) => [...document.querySelector<HTMLCanvasElement>("canvas.spans")!.getContext("2d")!.getImageData(x!, y!, 1, 1).data.slice(0, 3)],
    [x, y],
  );
}

/** Trace of two threads: one reads twice and waits during the first read, the other writes at the same time. */
const SMALL: Made = {
  states: [{ name: "read", color: "#ff0000" }, { name: "write", color: "#00ff00" }, { name: "wait", color: "#0000ff" }],
  files: [
    {
      name: "small.tlv",
      notes: ["it ends in the middle of a chunk, after 7 bytes of the chunk"],
      processes: [
        {
          name: "psrs 1",
          threads: [
            {
              name: "main",
              spans: [
                { state: 0, begin: 0, end: 400_000, arguments: { bytes: 8192 } },
                { state: 2, begin: 100_000, end: 200_000, depth: 1 },
                { state: 0, begin: 600_000, end: 1_000_000 },
              ],
            },
            { name: "agent", dropped: 3, spans: [{ state: 1, begin: 300_000, end: 700_000, unfinished: true }] },
          ],
        },
      ],
    },
  ],
};

describe("the page", { skip, timeout: 60_000 }, () => {
  test("draws spans at their places and in their colours, in both themes", async () => {
    for (const theme of ["light", "dark"] as const) {
      const { page, close } = await shown(SMALL, "", theme);
      const width = await page.locator("canvas.spans").evaluate((canvas) => canvas.clientWidth);
      // Below the heading of the process, the thread main has two tiers, followed by the thread agent.
      const [main, waits, agent] = [24 + 16, 24 + 18 + 16, 24 + 36 + 4 + 16];
      assert.deepEqual(await pixel(page, width * 0.3, main), [255, 0, 0]);
      assert.deepEqual(await pixel(page, width * 0.8, main), [255, 0, 0]);
      const background = theme === "light" ? [255, 255, 255] : [21, 24, 28];
      assert.deepEqual(await pixel(page, width * 0.55, main), background);
      const [red, , blue] = await pixel(page, width * 0.15, waits);
      assert.ok(red === 0 && blue! > 150);
      assert.deepEqual(await pixel(page, width * 0.25, waits), background);
      assert.ok((await pixel(page, width * 0.5, agent))[1]! > 150);
      assert.match(await text(page, "#notes"), /1 note/);
      await close();
    }
  });

  test("has the three commands", async () => {
    const { page, close } = await shown(SMALL);
    assert.match(await text(page, "#total"), /^1.3 ms in 4 calls, 130.0 % of the range$/);
    await page.locator("#legend .state", { hasText: "read" }).click();
    await settled(page);
    assert.match(await text(page, "#total"), /^800 µs in 2 calls, 80.0 % of the range$/);
    await page.locator("#legend .state", { hasText: "write" }).click();
    await settled(page);
    assert.match(await text(page, "#overlap"), /200 µs, 20.0 % of the range, 2 times/);
    await page.getByRole("button", { name: "choose none" }).click();
    await page.locator(".names .thread", { hasText: "main" }).click();
    await page.locator(".names .thread", { hasText: "agent" }).click();
    await settled(page);
    assert.match(await text(page, "#overlap"), /these threads at the same time: 200 µs/);
    const box = (await page.locator("canvas.spans").boundingBox())!;
    await page.mouse.click(box.x + box.width * 0.2, box.y + 24 + 9);
    await settled(page);
    assert.match(await text(page, "#single"), /read\s+duration\s+400 µs/);
    assert.match(await text(page, "#single"), /bytes\s+8192/);
    assert.match(await text(page, "#spoken"), /state read, duration 400 µs/);
    // Dragging with Shift measures a part of the time.
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + box.width * 0.35, box.y + 150);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.65, box.y + 150, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await settled(page);
    assert.match(await text(page, "#overlap"), /: (99|100|101)[.\d]* µs/);
    await close();
  });

  test("zooms and moves by wheel, keys, drag, mini map and typed ranges, and undoes changes", async () => {
    const { page, close } = await shown(drawn(1));
    const [, whole] = await range(page);
    const box = (await page.locator("canvas.spans").boundingBox())!;
    await page.mouse.move(box.x + box.width / 4, box.y + 100);
    await page.mouse.wheel(0, -600);
    await settled(page);
    const zoomed = await range(page);
    assert.ok(zoomed[1] - zoomed[0] < whole / 2);
    // The time at the pointer stays at the pointer.
    assert.ok(Math.abs(zoomed[0] + (zoomed[1] - zoomed[0]) / 4 - whole / 4) < whole / 500);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 4 - 100, box.y + 100, { steps: 4 });
    await page.mouse.up();
    const dragged = await range(page);
    const moved = (100 / box.width) * (zoomed[1] - zoomed[0]);
    assert.ok(Math.abs(dragged[0] - zoomed[0] - moved) < moved / 20);
    await page.locator("canvas.spans").focus();
    await page.keyboard.press("+");
    const closer = await range(page);
    assert.ok(closer[1] - closer[0] < (dragged[1] - dragged[0]) * 0.8);
    await page.keyboard.press("ArrowRight");
    assert.ok((await range(page))[0] > closer[0]);
    for (const before of [closer, dragged, zoomed]) {
      await page.keyboard.press("u");
      assert.deepEqual(await range(page), before);
    }
    await page.locator("#from").fill("10 ms");
    await page.locator("#from").press("Enter");
    await page.locator("#to").fill("0.0125 s");
    await page.locator("#to").press("Enter");
    assert.deepEqual(await range(page), [10e6, 12.5e6]);
    await page.locator("#to").fill("soon");
    await page.locator("#to").press("Enter");
    assert.match(await text(page, "#status"), /“soon” and the other time do not form a range/);
    const map = (await page.locator("#minimap").boundingBox())!;
    await page.mouse.move(map.x + map.width * 0.5, map.y + 10);
    await page.mouse.down();
    await page.mouse.move(map.x + map.width * 0.75, map.y + 10, { steps: 3 });
    await page.mouse.up();
    const [from, to] = await range(page);
    assert.ok(Math.abs(from - whole / 2) < whole / 200 && Math.abs(to - whole * 0.75) < whole / 200);
    await page.locator("#whole").click();
    assert.deepEqual(await range(page), [0, whole]);
    await close();
  });

  test("lists all calls, the longest first, and sorts them by any column", async () => {
    const made = drawn(1);
    const { page, close } = await shown(made, "view=duration");
    const trace = decode(columns(made));
    const lengths = Array.from(trace.begin, (begin, span) => trace.finish[span]! - begin).sort((one, other) => other - one);
    assert.match(await text(page, "#duration .told"), new RegExp(`^${lengths.length.toLocaleString("en")} calls`));
    const first = () => text(page, ".calls .body [role=row]:first-child [role=gridcell]:first-child");
    assert.equal(await first(), `${Number((lengths[0]! / 1e6).toFixed(3))} ms`);
    // Only visible rows have elements.
    assert.ok((await page.locator(".calls .body [role=row]").count()) < 60);
    await page.locator(".calls").focus();
    await page.keyboard.press("End");
    await settled(page);
    const last = await text(page, "[aria-selected=true] [role=gridcell]:first-child");
    assert.equal(last, `${lengths.at(-1)! / 1e3} µs`);
    await page.getByRole("button", { name: "Duration ▼" }).click();
    await settled(page);
    assert.equal(await first(), `${lengths.at(-1)! / 1e3} µs`);
    await page.locator(".calls .body [role=row]:first-child").dblclick();
    await settled(page);
    assert.equal(await page.locator("#sequence").isVisible(), true);
    assert.match(await text(page, "#single"), /duration/);
    await close();
  });

  test("shows distributions with median and 99 %, and a summary with equal figures", async () => {
    const made = drawn(1);
    const { page, close } = await shown({ ...made, wallClock: "1700000000123456789" }, "view=distribution");
    assert.equal(await page.locator(".card canvas:not(.swatch)").count(), made.states.length);
    const reads = page.locator(".card", { hasText: "160 calls" }).first();
    const said = /median (.*), 99 % (.*), largest (.*)/.exec(await reads.innerText())!;
    const inked = await reads.locator("canvas:not(.swatch)").evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((value, at) => at % 4 === 3 && value > 0).length;
    });
    assert.ok(inked > 2000, `${inked} pixels`);
    await page.locator("select").selectOption("linear");
    await settled(page);
    assert.match(await page.evaluate(() => location.hash), /scale=linear/);
    await page.keyboard.press("Escape");
    await page.locator("#tab-summary").click();
    await settled(page);
    const row = await page.locator("#summary tbody tr", { hasText: "read" }).first().innerText();
    for (const figure of said.slice(1)) assert.ok(row.includes(figure!), `${figure} in ${row}`);
    const spansOf = (file: Made["files"][number]) => file.processes.flatMap(({ threads }) => threads.flatMap(({ spans }) => spans));
    const lengths = (spans: MadeSpan[]) => spans.reduce((sum, { begin, end }) => sum + end - begin, 0);
    const times = made.files.map((file) => {
      const spans = spansOf(file);
      return 6 * (Math.max(...spans.map(({ end }) => end)) - Math.min(...spans.map(({ begin }) => begin)));
    });
    const share = lengths(made.files.flatMap(spansOf).filter(({ state }) => state === 0)) / (times[0]! + times[1]!);
    assert.ok(row.includes(`${(share * 100).toFixed(1)} %`), `${share} in ${row}`);
    assert.match(await text(page, "#summary"), /Time 0 is 2023-11-14 22:13:20.123 UTC/);
    await page.getByRole("button", { name: "each state of each thread" }).click();
    assert.equal(await page.locator("#summary tbody tr").count(), 12 * made.states.length);
    await close();
  });

  test("hides states, filters and folds rows, and shows files side by side", async () => {
    const { page, close } = await shown(drawn(1));
    const calls = async () => Number(/in ([\d,]+) calls/.exec(await text(page, "#total"))![1]!.replace(",", ""));
    const all = await calls();
    await page.getByRole("checkbox", { name: "Show flush" }).uncheck();
    await settled(page);
    assert.equal(all - (await calls()), 168);
    assert.equal(await page.locator(".names .thread").count() > 6, true);
    await page.locator("#rows").fill("disk 1");
    await settled(page);
    assert.equal(await page.locator(".names .thread").count(), 4);
    await page.locator("#rows").fill("");
    await page.locator(".names .process").first().click();
    await settled(page);
    assert.equal(await page.locator(".names .process").first().getAttribute("aria-expanded"), "false");
    await page.locator("#beside").click();
    await settled(page);
    assert.deepEqual(await page.locator(".panel h2").allInnerTexts(), ["predicted.tlv", "measured.tlv"]);
    await close();
  });

  test("shows files side by side, each completely from its own begin", async () => {
    const made = drawn(1);
    const later = made.files[1]!.processes.flatMap((process) => process.threads.flatMap((thread) => thread.spans));
    for (const span of later) [span.begin, span.end] = [span.begin + 2e9, span.end + 2e9];
    const { page, close } = await shown(made, "", "light", "beside=yes");
    await settled(page);
    assert.equal(await page.locator(".panel h2").count(), 2);
    const files = await page.evaluate(() => window.viewer!.view.trace.files.map(({ begin, end }) => [begin, end] as const));
    const longest = Math.max(...files.map(([begin, end]) => end - begin));
    const ofEach = [files[0]![0], files[0]![0] + longest];
    assert.deepEqual(await range(page), ofEach);
    // Each file is counted separately.
    const calls = (file: number) => made.files[file]!.processes.flatMap((process) => process.threads.flatMap((thread) => thread.spans)).length;
    const told = async () => (await page.locator("#total p").allInnerTexts()).map((text) => text.replaceAll(",", ""));
    const eachApart = await told();
    assert.equal(eachApart.length, 2);
    ["predicted.tlv", "measured.tlv"].forEach((name, file) => {
      assert.ok(eachApart[file]!.startsWith(`${name}: `) && eachApart[file]!.includes(` in ${calls(file)} calls`), `${eachApart[file]}, not ${calls(file)}`);
    });
    await page.locator("#tab-summary").click();
    await settled(page);
    assert.equal(await page.locator("#summary thead th").first().innerText(), "File");
    assert.equal(await page.locator("#summary tbody tr").count(), 2 * made.states.length);
    await page.locator("#tab-sequence").click();
    await page.locator("#beside").click();
    await settled(page);
    assert.match((await told()).join(), new RegExp(`^[^:]* in ${calls(0) + calls(1)} calls`), "all together");
    assert.deepEqual(await range(page), [0, Math.max(...later.map((span) => span.end))], "on one clock, the range extends from the begin of the first file to the end of the last");
    await page.locator("#beside").click();
    await settled(page);
    assert.deepEqual(await range(page), ofEach);
    await close();
  });

  test("distinguishes counters of equal names by their threads", async () => {
    const made = drawn(1);
    const samples: [number, number][] = [[0, 1], [1e6, 2]];
    made.series = [3, 4, 10].map((thread) => ({ name: "queue", unit: "requests", thread, samples }));
    const { page, close } = await shown(made);
    const names = (await page.locator(".names .counter").allInnerTexts()).map((text) => text.split("\n")[0]);
    assert.deepEqual(names, ["queue, of requests", "queue, of disk 0", "queue"]);
    await close();
  });

  test("finds calls, one after the other", async () => {
    const { page, close } = await shown(drawn(1));
    await page.keyboard.press("/");
    await page.keyboard.type("prefetch");
    const begins = [];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press("Enter");
      begins.push(await page.evaluate(() => window.viewer!.view.trace.begin[window.viewer!.view.look.selected!]!));
    }
    assert.ok(begins[0]! < begins[1]! && begins[1]! < begins[2]!, begins.join());
    await settled(page);
    assert.match(await text(page, "#single"), /prefetch/);
    await close();
  });

  test("is restored by its address", async () => {
    const first = await shown(drawn(1), "view=sequence&range=10000000,16000000&states=0,1&hidden=3&call=0,0,0");
    const hash = await first.page.evaluate(() => location.hash);
    const look = () => ({ ...window.viewer!.view.look, states: [...window.viewer!.view.look.states], hidden: [...window.viewer!.view.look.hidden] });
    const seen = await first.page.evaluate(look);
    await first.close();
    const second = await shown(drawn(1), hash.slice(1));
    assert.deepEqual(await second.page.evaluate(look), seen);
    assert.deepEqual([seen.from, seen.to, seen.states, seen.hidden], [10e6, 16e6, [0, 1], [3]]);
    await second.close();
  });

  test("interprets no name as markup", async () => {
    const spans = HOSTILE.map((name, state) => ({ state, begin: state * 100, end: state * 100 + 90, arguments: { [name]: name } }));
    const made: Made = {
      states: HOSTILE.map((name) => ({ name, category: name, color: "url(x)" })),
      files: HOSTILE.map((name) => ({ name, notes: [name], processes: [{ name, threads: [{ name, spans }] }] })),
      series: HOSTILE.map((name) => ({ name, unit: name, thread: 0, samples: [[1, 2], [3, Infinity], [4, NaN], [5, -1e300]] })),
    };
    const { page, close } = await shown(made);
    let asked = false;
    page.on("dialog", () => void (asked = true));
    for (const key of ["2", "3", "4", "1"]) {
      await page.keyboard.press(key);
      await settled(page);
      assert.equal(await page.locator("img, b b, script:not(:last-of-type)").count(), 0);
    }
    await page.locator("canvas.spans").focus();
    await page.keyboard.press("n");
    await settled(page);
    assert.ok((await text(page, "#single")).includes(HOSTILE[0]!));
    assert.match(await page.title(), /Thread Log Viewer$/);
    assert.equal(asked, false);
    await close();
  });

  test("can be used with the keyboard only, and describes its elements to screen readers", async () => {
    const { page, close } = await shown(SMALL);
    await page.locator("canvas.spans").focus();
    await page.keyboard.press("n");
    await settled(page);
    assert.match(await text(page, "#spoken"), /state read, .*thread main/);
    await page.keyboard.press("i");
    await settled(page);
    assert.match(await text(page, "#spoken"), /state wait/);
    await page.keyboard.press("o");
    await page.keyboard.press("Enter");
    const [from, to] = await range(page);
    assert.ok(from === 0 && to < 700_000);
    await page.keyboard.press("?");
    assert.equal(await page.locator("#keys-dialog").isVisible(), true);
    await page.keyboard.press("Escape");
    await page.locator("#tab-sequence").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tab-duration").getAttribute("aria-selected"), "true");
    // Each button and field has an accessible name.
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, canvas[role], [role=grid]")]
        .filter((element) => !element.getAttribute("aria-label") && !element.textContent?.trim() && !element.closest("label"))
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(nameless, []);
    await close();
  });

  test("reports that a trace is empty", async () => {
    const { page, close } = await shown({ states: [], files: [{ name: "empty.tlv", processes: [] }] });
    assert.match(await text(page, "#status"), /still empty/);
    for (const key of ["2", "3", "4", "1"]) {
      await page.keyboard.press(key);
      await settled(page);
    }
    await close();
  });

  test("draws each pixel of a hundred thousand spans in the colour of its main state", async () => {
    const spans = Array.from({ length: 100_000 }, (_, i) => ({ state: i % 10 === 0 ? 1 : 0, begin: i * 1000, end: i * 1000 + 990 }));
    const made: Made = { ...SMALL, files: [{ name: "f", processes: [{ name: "p", threads: [{ name: "t", spans }] }] }] };
    const { page, close } = await shown(made);
    const width = await page.locator("canvas.spans").evaluate((canvas) => canvas.clientWidth);
    const trace = decode(columns(made));
    assert.equal(firstFrom(trace.begin, 5e7, 0, trace.begin.length), 50_000);
    for (const share of [0.1, 0.37, 0.9]) {
      const [red, green] = await pixel(page, Math.round(width * share), 24 + 9);
      assert.ok(red! > 240 && green! < 20, `${red}, ${green}`);
    }
    await close();
  });
});
