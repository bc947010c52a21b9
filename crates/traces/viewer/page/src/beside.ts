/** Shifts the files of a trace to a common start, for comparison side by side. */

import { sorted } from "./order";
import type { Flows, Trace } from "./trace";

/** Returns the trace with the times of each file shifted so that each begins at the time of the earliest file. */
export function fromOneStart(trace: Trace): Trace {
  const first = Math.min(...trace.files.map((file) => file.begin));
  const later = trace.files.map((file) => file.begin - first);
  const ofThread = trace.threads.map(({ process }) => later[trace.processes[process]!.file]!);
  const files = trace.files.map((file, at) => ({ ...file, begin: first, end: file.end - later[at]! }));
  const [begin, finish] = [trace.begin.slice(), trace.finish.slice()];
  for (let tier = 0; tier < trace.tierThread.length; tier++) {
    const by = ofThread[trace.tierThread[tier]!]!;
    for (let span = trace.tierFirst[tier]!; span < trace.tierFirst[tier + 1]!; span++) {
      begin[span]! -= by;
      finish[span]! -= by;
    }
  }
  const series = trace.series.map((one) => ({ ...one, time: one.time.map((time) => time - ofThread[one.thread]!) }));
  const end = Math.max(...files.map((file) => file.end));
  return { ...trace, files, begin, finish, series, end, flows: moved(trace.flows, ofThread) };
}

/** Returns the flows with each end shifted like its thread. */
function moved({ fromThread, fromTime, toThread, toTime }: Flows, later: number[]): Flows {
  const sent = fromTime.map((time, flow) => time - later[fromThread[flow]!]!);
  const came = toTime.map((time, flow) => time - later[toThread[flow]!]!);
  const order = sorted(Uint32Array.from(sent, (_, flow) => flow), (flow) => sent[flow]!);
  const inOrder = <C extends Uint32Array | Float64Array>(column: C): C => column.map((_, at) => column[order[at]!]!) as C;
  return { fromThread: inOrder(fromThread), fromTime: inOrder(sent), toThread: inOrder(toThread), toTime: inOrder(came) };
}
