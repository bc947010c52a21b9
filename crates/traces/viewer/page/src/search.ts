/** Search: the next call of a state, thread or argument with some words in it. */

import { argumentsOf, type Trace } from "./trace";

/**
 * The shown call after `after`, in order of time, whose state, thread or argument has the words; from the beginning again
 * if there is none. Null if there is none at all.
 */
export function search(trace: Trace, words: string, shown: Uint8Array, after: number | null): number | null {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return null;
  const has = (text: string) => text.toLowerCase().includes(wanted);
  const states = trace.states.map(({ name }) => has(name));
  const threads = trace.threads.map(({ name, process }) => has(name) || has(trace.processes[process]!.name));
  const given = new Set<number>();
  let last = -1;
  for (const span of trace.arguments.span) {
    if (span === last) continue;
    last = span;
    if (argumentsOf(trace, span).some(({ name, value }) => has(`${name} = ${value}`))) given.add(span);
  }
  // At one time calls are in the order of their indices.
  const from = after === null ? -Infinity : trace.begin[after]!;
  const isLater = (span: number) => trace.begin[span]! > from || (trace.begin[span]! === from && span > after!);
  const isSooner = (one: number, other: number | null) => other === null || trace.begin[one]! < trace.begin[other]!;
  let next: number | null = null;
  let first: number | null = null;
  for (let tier = 0; tier < trace.tierThread.length; tier++) {
    const ofThread = threads[trace.tierThread[tier]!]!;
    for (let span = trace.tierFirst[tier]!; span < trace.tierFirst[tier + 1]!; span++) {
      const state = trace.state[span]!;
      if (shown[state] === 0 || !(ofThread || states[state]! || given.has(span))) continue;
      if (isSooner(span, first)) first = span;
      if (isLater(span)) {
        if (isSooner(span, next)) next = span;
        break;
      }
    }
  }
  // A tier is left at its first later call: of equal begin times the lowest index comes first.
  return next ?? first;
}
