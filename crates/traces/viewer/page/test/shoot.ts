/**
 * Takes screenshots of each view in both themes: `npm run shoot DIRECTORY [PAGE]`. PAGE is a page that `starfish view
 * --html` wrote; the default is a page with a made-up trace. The screenshots in the manual were taken in this way.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { columns, drawn, selfContained } from "./made";
import { end, open } from "./browser";

const [directory, given] = process.argv.slice(2) as [string, string | undefined];
const file = given ?? join(directory, "page.html");
if (!given) writeFileSync(file, selfContained(readFileSync("../src/page.html", "utf8"), columns(drawn(1))));
const views = {
  sequence: "view=sequence",
  zoomed: "view=sequence&range=10000000,16000000&states=0,1&marked=11000000,15000000&call=0,0,0",
  beside: "view=sequence&beside=yes",
  duration: "view=duration",
  distribution: "view=distribution",
  linear: "view=distribution&scale=linear",
  summary: "view=summary",
};
for (const theme of ["light", "dark"] as const) {
  for (const [name, hash] of Object.entries(views)) {
    const { page, close } = await open(`${pathToFileURL(resolve(file))}#${hash}`, { theme, height: 640 });
    await page.screenshot({ path: join(directory, `${name}-${theme}.png`) });
    await close();
  }
}
await end();
