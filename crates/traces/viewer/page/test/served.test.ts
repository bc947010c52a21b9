/** Tests of the page of `starfish view` in Chromium. The variable STARFISH is the path of the program. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { end, executable, open, settled } from "./browser";

const { STARFISH } = process.env;
/** Trace of a process with one call, stored in version 1 of the format. */
const TRACE = Buffer.from(readFileSync("../../trace/tests/version-1.hex", "utf8").replace(/\s/g, ""), "hex");
const skip =
  executable() === null
    ? "Chromium is missing: apt-get install chromium, or set CHROMIUM to its path"
    : !STARFISH
      ? "STARFISH is not set to the path of the program: run make test-viewer"
      : false;

describe("starfish view", { skip, timeout: 60_000 }, () => {
  let directory: string;
  let file: string;
  let server: ChildProcess;
  let address: string;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "viewer-"));
    file = join(directory, "growing.tlv");
    writeFileSync(file, TRACE);
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
    assert.equal(before, 1);
    await page.evaluate(() => window.viewer!.view.set({ selected: 0 }));
    const selected = () => page.evaluate(() => {
      const { trace, look } = window.viewer!.view;
      return [trace.begin[look.selected!], trace.finish[look.selected!]];
    });
    const chosen = await selected();
    // Append the same recording as a second section.
    appendFileSync(file, TRACE);
    await page.waitForFunction((before) => window.viewer!.view.trace.begin.length === 2 * before, before, { timeout: 15_000 });
    await settled(page);
    assert.deepEqual(await selected(), chosen);
    assert.deepEqual(complaints, []);
    assert.ok(asked.every((url) => url.startsWith(address)), asked.join(" "));
    const ended = new Promise((resolve) => server.on("exit", (code) => resolve(code)));
    server.kill("SIGINT");
    assert.equal(await ended, 130);
    await page.waitForFunction(() => document.getElementById("status")!.textContent!.includes("server has ended"), null, { timeout: 10_000 });
    await close();
  });
});
