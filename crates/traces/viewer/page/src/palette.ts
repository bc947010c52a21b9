/**
 * Appearance of states: each has a colour, a pattern and a code of one or two letters, so that states also differ
 * without colours.
 *
 * States without a declared colour get mostly colours of Okabe and Ito, which colour-blind people can distinguish.
 */

import type { Trace } from "./trace";

const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7b61c4", "#8c8c8c"];

/** Patterns of eight by eight pixels: a 1 bit is a darker pixel. The first pattern is plain. */
const PATTERNS: number[][] = [
  [0, 0, 0, 0, 0, 0, 0, 0],
  [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80],
  [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01],
  [0xff, 0, 0, 0, 0, 0, 0, 0],
  [0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01],
  [0x80, 0, 0, 0, 0x08, 0, 0, 0],
  [0x81, 0x42, 0x24, 0x18, 0x18, 0x24, 0x42, 0x81],
];

export interface Looks {
  /** Colour in CSS notation. */
  color: string;
  red: number;
  green: number;
  blue: number;
  pattern: number[];
  /** One or two letters, unique as long as the letters of the name allow. */
  code: string;
  /** Black or white, whichever is easier to read on the colour. */
  ink: string;
}

/** Returns the appearance of each state. */
export function looks(trace: Trace): Looks[] {
  const taken = new Set<string>();
  return trace.states.map(({ name, color }, index) => {
    const its = color !== null && /^#[0-9a-f]{6}$/.test(color) ? color : COLORS[index % COLORS.length]!;
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(its.slice(at, at + 2), 16)) as [number, number, number];
    const light = 0.299 * red + 0.587 * green + 0.114 * blue > 140;
    const ink = light ? "#000000" : "#ffffff";
    return { color: its, red, green, blue, pattern: PATTERNS[index % PATTERNS.length]!, code: code(name, taken), ink };
  });
}

/** Returns the first letter of a name, or the first and another letter, whichever code is free. */
function code(name: string, taken: Set<string>): string {
  const letters = [...name.normalize("NFC")].filter((letter) => /[\p{L}\p{N}]/u.test(letter));
  const first = (letters[0] ?? "?").toUpperCase();
  const candidates = [first, ...letters.slice(1).map((letter) => first + letter.toLowerCase())];
  const free = candidates.find((candidate) => !taken.has(candidate)) ?? candidates.at(-1)!;
  taken.add(free);
  return free;
}

/** Factor for the brightness of the darker pixels of a pattern. */
export const DARKER = 0.72;

/** Draws the appearance of a state into a small canvas, for legends. */
export function swatch(canvas: HTMLCanvasElement, { red, green, blue, pattern, ink, code }: Looks): void {
  const scale = 2;
  const [width, height] = [26, 16];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const factor = (pattern[y % 8]! >> (x % 8)) & 1 ? DARKER : 1;
      context.fillStyle = `rgb(${red * factor} ${green * factor} ${blue * factor})`;
      context.fillRect(x, y, 1, 1);
    }
  }
  context.fillStyle = ink;
  context.font = "bold 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(code, width / 2, height / 2 + 0.5);
}
