/**
 * Where the columns come from: out of the page itself, or from the server that the page came from. Nothing else is ever
 * asked for.
 */

import { decode } from "./columns";
import { byId } from "./elements";
import type { Trace } from "./trace";

const FOLLOW_MILLISECONDS = 1000;

/** The trace in the page, or on the server. */
export async function load(): Promise<Trace> {
  const embedded = byId("columns");
  const text = embedded.textContent!.trim();
  if (text === "") return (await fetched(null))!.trace;
  // What has been decoded need not be kept twice.
  embedded.remove();
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** Whether the files may still grow: only a server could tell. */
export function canFollow(): boolean {
  return document.getElementById("columns") !== null;
}

interface Fetched {
  trace: Trace;
  version: string;
}

/** What the server has, unless it is what `known` says. */
async function fetched(known: string | null): Promise<Fetched | null> {
  const answer = await fetch(known === null ? "columns" : `columns?known=${encodeURIComponent(known)}`);
  if (answer.status === 204) return null;
  if (!answer.ok) throw new Error(await answer.text());
  version = answer.headers.get("x-version") ?? "";
  return { trace: decode(new Uint8Array(await answer.arrayBuffer())), version };
}

let version = "";

/** Asks the server now and then whether the files have grown, until `tell` says that it is enough. */
export function follow(tell: (news: { trace: Trace } | { failure: string }) => boolean): void {
  const ask = async () => {
    let goOn = true;
    try {
      const news = await fetched(version);
      if (news) goOn = tell(news);
    } catch (error) {
      goOn = tell({ failure: error instanceof TypeError ? "The server has ended: this is what it had." : String(error) });
    }
    if (goOn) setTimeout(ask, FOLLOW_MILLISECONDS);
  };
  setTimeout(ask, FOLLOW_MILLISECONDS);
}
