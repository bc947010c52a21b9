/** Light and dark theme: the colours of the style sheet, for drawing on canvases. */

export interface Theme {
  background: string;
  band: string;
  grid: string;
  ink: string;
  faint: string;
  accent: string;
}

/** Returns the colours of the current theme. */
export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const names = ["background", "band", "grid", "ink", "faint", "accent"] as const;
  return Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as Theme;
}

/** Converts a colour of the style sheet, `#rrggbb`, to a pixel. */
export function pixel(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return (0xff000000 | (blue! << 16) | (green! << 8) | red!) >>> 0;
}

/** Switches between light and dark. Until the first switch, the setting of the system is used. */
export function toggleTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}
