/** Sorts calls for the table by radix sort, because a sort of ten million calls by comparisons takes too long. */

const DIGIT = 16;
const DIGITS = 1 << DIGIT;

/**
 * Returns the indices sorted by ascending key; indices with equal keys stay in order. Keys are integers from 0 to 2^53.
 */
export function sorted(indices: Uint32Array, key: (index: number) => number): Uint32Array {
  let largest = 0;
  for (const index of indices) largest = Math.max(largest, key(index));
  let from: Uint32Array = indices;
  let to: Uint32Array = new Uint32Array(indices.length);
  for (let scale = 1; scale <= largest; scale *= DIGITS) {
    const starts = new Uint32Array(DIGITS + 1);
    for (const index of from) starts[(Math.floor(key(index) / scale) % DIGITS) + 1]!++;
    for (let digit = 0; digit < DIGITS; digit++) starts[digit + 1]! += starts[digit]!;
    for (const index of from) to[starts[Math.floor(key(index) / scale) % DIGITS]!++] = index;
    [from, to] = [to, from === indices ? new Uint32Array(indices.length) : from];
  }
  return from;
}
