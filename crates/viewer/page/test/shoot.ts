/** Takes pictures of each view, light and dark: `npm run shoot DIRECTORY`. To be looked at. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { columns, drawn, selfContained } from "./made";
import { end, open } from "./browser";

const directory = process.argv[2]!;
const built = readFileSync("../src/page.html", "utf8");
const file = join(directory, "page.html");
writeFileSync(file, selfContained(built, columns(drawn(1))));
for (const theme of ["light", "dark"] as const) {
  for (const [name, hash] of [
    ["sequence", "view=sequence"],
    ["zoomed", "view=sequence&range=10000000,16000000&states=0,1&marked=11000000,15000000&call=0,0,0"],
    ["beside", "view=sequence&beside=yes"],
    ["duration", "view=duration"],
    ["distribution", "view=distribution"],
    ["linear", "view=distribution&scale=linear"],
    ["summary", "view=summary"],
  ]) {
    const { page, close } = await open(`file://${file}#${hash}`, { theme });
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(directory, `${name}-${theme}.png`) });
    await close();
  }
}
await end();
