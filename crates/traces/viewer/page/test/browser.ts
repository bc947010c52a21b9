/** Debian's Chromium, driven by Playwright. */

import { accessSync, constants } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";

/** Returns the path of Chromium, or null if it is not installed. */
export function executable(): string | null {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const isThere = (place: string) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return places.find((place) => place !== undefined && isThere(place)) ?? null;
}

let browser: Promise<Browser> | null = null;

/**
 * Opens a page and waits until it is drawn. Collects errors of the page in `complaints`, and the addresses of its
 * requests in `asked`.
 */
export async function open(address: string, { theme = "light", height = 800 }: { theme?: "light" | "dark"; height?: number } = {}) {
  browser ??= chromium.launch({ executablePath: executable()!, args: ["--no-sandbox"] });
  const context = await (await browser).newContext({ viewport: { width: 1280, height }, colorScheme: theme });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(address);
  await settled(page);
  return { page, complaints, asked, close: () => context.close() };
}

/** Waits until the view is at rest and everything visible is drawn. */
export async function settled(page: Page): Promise<void> {
  // A key or click takes effect within a frame.
  await page.waitForTimeout(40);
  await page.waitForSelector('body[data-state="at rest"]', { timeout: 20_000 });
}

/** Closes the browser, after all pages are closed. */
export async function end(): Promise<void> {
  await (await browser)?.close();
}
