/** Search for the next call with given words in its state, thread or arguments. */

import { argumentsOf, type Trace } from "./trace";

/**
 * Returns the next shown call after `after`, in order of time, with the words in its state, thread, process or
 * arguments. After the last such call, the search continues with the first. Null if no call has the words.
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
  // Calls with equal begin times are in the order of their indices.
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
  // The search leaves a tier after its first later call.
  return next ?? first;
}
