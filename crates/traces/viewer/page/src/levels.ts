/**
 * Levels of detail: what a long run of spans of one tier comes to, without looking at each.
 *
 * Level 0 sums up blocks of 16 spans, each level above 16 blocks of the one below. A block knows how long it is busy, and
 * which state has most of that: by a weighted majority vote, which finds any state that has more than half, and
 * otherwise one of the longer ones. Spans of states that are hidden count as nothing.
 */

import type { Trace } from "./trace";

const BLOCK = 16;

interface Level {
  busy: Float64Array;
  votes: Float64Array;
  state: Uint32Array;
}

/** What some spans come to. */
export interface Tally {
  /** Nanoseconds in states that are shown. */
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

  /** What the spans `from..to` come to. */
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

  /** Adds items of a level, -1 for spans themselves: whole blocks of them from the level above. */
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
        // What took no measurable time is still there.
        vote(tally, length, Math.max(length, 0.5), its);
      }
    } else {
      const { busy, votes, state } = this.levels[level]!;
      for (let i = from; i < to; i++) vote(tally, busy[i]!, votes[i]!, state[i]!);
    }
  }
}
