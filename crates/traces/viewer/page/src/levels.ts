/**
 * Levels of detail: sums over long runs of spans of one tier, without visiting each span.
 *
 * Level 0 sums up blocks of 16 spans; each higher level sums up 16 blocks of the level below. A block stores its busy
 * time and the state with most of this time. A weighted majority vote determines the state: it finds any state with
 * more than half of the busy time, and otherwise one of the longer states. Spans of hidden states do not count.
 */

import type { Trace } from "./trace";

const BLOCK = 16;

interface Level {
  busy: Float64Array;
  votes: Float64Array;
  state: Uint32Array;
}

/** Sums over some spans. */
export interface Tally {
  /** Time in shown states, in nanoseconds. */
  busy: number;
  votes: number;
  state: number;
}

function vote(tally: Tally, busy: number, votes: number, state: number): void {
  tally.busy += busy;
  if (tally.state === state) tally.votes += votes;
  else if (votes > tally.votes) {
    tally.votes = votes - tally.votes;
    tally.state = state;
  } else tally.votes -= votes;
}

export class Levels {
  private readonly levels: Level[] = [];

  constructor(
    private readonly trace: Trace,
    readonly shown: Uint8Array,
  ) {
    const { length } = trace.begin;
    for (let size = BLOCK; size < length; size *= BLOCK) this.levels.push(this.build(Math.ceil(length / size)));
  }

  /** Sums up the spans `from..to` in `tally`. */
  tally(from: number, to: number, tally: Tally): void {
    tally.busy = tally.votes = tally.state = 0;
    this.add(-1, from, to, tally);
  }

  private build(blocks: number): Level {
    const below = this.levels.length - 1;
    const level = { busy: new Float64Array(blocks), votes: new Float64Array(blocks), state: new Uint32Array(blocks) };
    const items = below < 0 ? this.trace.begin.length : this.levels[below]!.busy.length;
    const tally = { busy: 0, votes: 0, state: 0 };
    for (let block = 0; block < blocks; block++) {
      tally.busy = tally.votes = tally.state = 0;
      this.addEach(below, block * BLOCK, Math.min((block + 1) * BLOCK, items), tally);
      level.busy[block] = tally.busy;
      level.votes[block] = tally.votes;
      level.state[block] = tally.state;
    }
    return level;
  }

  /**
   * Adds the items `from..to` of a level (-1 for spans) to `tally`. Takes whole blocks of items from the level above.
   */
  private add(level: number, from: number, to: number, tally: Tally): void {
    const first = Math.ceil(from / BLOCK);
    const after = Math.floor(to / BLOCK);
    if (first >= after || level + 1 >= this.levels.length) return this.addEach(level, from, to, tally);
    this.addEach(level, from, first * BLOCK, tally);
    this.add(level + 1, first, after, tally);
    this.addEach(level, after * BLOCK, to, tally);
  }

  private addEach(level: number, from: number, to: number, tally: Tally): void {
    if (level < 0) {
      const { begin, finish, state } = this.trace;
      for (let span = from; span < to; span++) {
        const its = state[span]!;
        if (this.shown[its] === 0) continue;
        const length = finish[span]! - begin[span]!;
        // A span without measurable duration gets a vote, so that it is visible.
        vote(tally, length, Math.max(length, 0.5), its);
      }
    } else {
      const { busy, votes, state } = this.levels[level]!;
      for (let i = from; i < to; i++) vote(tally, busy[i]!, votes[i]!, state[i]!);
    }
  }
}
