/** The page in Chromium, from `starfish view`. The program and a trace to show are named by STARFISH and TRACE. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { end, executable, open, settled } from "./browser";

const { STARFISH, TRACE } = process.env;
const skip =
  executable() === null
    ? "there is no Chromium: apt-get install chromium, or name it in CHROMIUM"
    : !STARFISH || !TRACE
      ? "STARFISH and TRACE name no program and no trace: make test-viewer does"
      : false;

describe("starfish view", { skip, timeout: 60_000 }, () => {
  let directory: string;
  let file: string;
  let server: ChildProcess;
  let address: string;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "viewer-"));
    file = join(directory, "growing.tlv");
    copyFileSync(TRACE!, file);
    server = spawn(STARFISH!, ["view", "--no-open", file], { stdio: ["ignore", "pipe", "inherit"] });
    address = await new Promise((resolve) => {
      let printed = "";
      server.stdout!.on("data", (text) => {
        printed += text;
        if (printed.includes("\n")) resolve(printed.split("\n")[0]!);
      });
    });
  });

  after(async () => {
    await end();
    server.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  });

  test("shows a file, follows it as it grows, and ends with Ctrl-C", async () => {
    const { page, complaints, asked, close } = await open(address);
    const spans = () => page.evaluate(() => window.viewer!.view.trace.begin.length);
    const before = await spans();
    assert.ok(before > 0);
    await page.evaluate(() => window.viewer!.view.set({ selected: 3 }));
    const selected = () => page.evaluate(() => {
      const { trace, look } = window.viewer!.view;
      return [trace.begin[look.selected!], trace.finish[look.selected!]];
    });
    const chosen = await selected();
    // The same run once more, as a section after the first.
    appendFileSync(file, readFileSync(TRACE!));
    await page.waitForFunction((before) => window.viewer!.view.trace.begin.length === 2 * before, before, { timeout: 15_000 });
    await settled(page);
    assert.deepEqual(await selected(), chosen);
    assert.deepEqual(complaints, []);
    assert.ok(asked.every((url) => url.startsWith(address)), asked.join(" "));
    const ended = new Promise((resolve) => server.on("exit", (code) => resolve(code)));
    server.kill("SIGINT");
    assert.equal(await ended, 0);
    await page.waitForFunction(() => document.getElementById("status")!.textContent!.includes("server has ended"), null, { timeout: 10_000 });
    await close();
  });
});
