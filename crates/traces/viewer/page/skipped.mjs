// A reporter of node:test that appends skipped tests to the list that `make test` prints at its end.
import { appendFileSync } from "node:fs";

export default async function* skipped(events) {
  for await (const { type, data } of events) {
    const list = process.env.STARFISH_SKIPPED;
    if (list && type === "test:pass" && data.skip) appendFileSync(list, `${data.skip}\tviewer ${data.name}\n`);
  }
}
