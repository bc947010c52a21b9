/**
 * Loads the columns, either from the page itself or from the server of the page. The page makes no other requests.
 */

import { decode } from "./columns";
import { byId } from "./elements";
import type { Trace } from "./trace";

const FOLLOW_MILLISECONDS = 1000;

/** Returns the trace in the page, or otherwise the trace on the server. */
export async function load(): Promise<Trace> {
  const embedded = byId("columns");
  const text = embedded.textContent!.trim();
  if (text === "") return (await fetched(null))!.trace;
  // Free the encoded text.
  embedded.remove();
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** True if the page has a server, so that the files can grow. */
export function canFollow(): boolean {
  return document.getElementById("columns") !== null;
}

interface Fetched {
  trace: Trace;
  version: string;
}

/** Returns the trace on the server, or null if its version is `known`. */
async function fetched(known: string | null): Promise<Fetched | null> {
  const answer = await fetch(known === null ? "columns" : `columns?known=${encodeURIComponent(known)}`);
  if (answer.status === 204) return null;
  if (!answer.ok) throw new Error(await answer.text());
  version = answer.headers.get("x-version") ?? "";
  return { trace: decode(new Uint8Array(await answer.arrayBuffer())), version };
}

let version = "";

/** Asks the server every second for a new version of the files, until `tell` returns false. */
export function follow(tell: (news: { trace: Trace } | { failure: string }) => boolean): void {
  const ask = async () => {
    let goOn = true;
    try {
      const news = await fetched(version);
      if (news) goOn = tell(news);
    } catch (error) {
      goOn = tell({ failure: error instanceof TypeError ? "The server has ended: the page shows the last data from it." : String(error) });
    }
    if (goOn) setTimeout(ask, FOLLOW_MILLISECONDS);
  };
  setTimeout(ask, FOLLOW_MILLISECONDS);
}
