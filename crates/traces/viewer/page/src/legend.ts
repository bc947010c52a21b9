/**
 * The legend: colour and pattern of each state, a checkbox that shows or hides it, and a button that chooses it for the
 * commands.
 */

import type { Derived } from "./derived";
import { button, byId, element, name } from "./elements";
import { swatch } from "./palette";
import type { View } from "./view";

/** Maximum number of states in the list. Users find others with the filter. */
const LINES_MAX = 200;

export class Legend {
  private readonly list = element("ul", { "aria-label": "States" });
  private readonly filter = element("input", { type: "search", placeholder: "filter states", "aria-label": "Filter states" });
  private readonly more = element("p", { class: "hint" });
  private of: unknown[] = [];

  constructor(
    private readonly view: View,
    private readonly derived: Derived,
  ) {
    const all = element("div", { class: "buttons" });
    all.append(
      button("all", { title: "Show all states" }, () => this.view.set({ hidden: new Set() })),
      button("none", { title: "Hide the states listed" }, () => this.hide(this.listed(), true)),
      button("chosen", { title: "Show only the states that are chosen" }, () => this.onlyChosen()),
    );
    this.filter.addEventListener("input", () => this.show());
    byId("legend").append(element("h2", {}, "States"), this.filter, all, this.list, this.more);
  }

  /** Returns the states with the text of the filter in their names or categories. */
  private listed(): number[] {
    const wanted = this.filter.value.trim().toLowerCase();
    const states = this.view.trace.states.map((_, state) => state);
    return states.filter((state) => {
      const { name, category } = this.view.trace.states[state]!;
      return name.toLowerCase().includes(wanted) || category.toLowerCase().includes(wanted);
    });
  }

  show(): void {
    const { trace, look } = this.view;
    const of = [trace, look.hidden, look.states, this.filter.value];
    if (of.every((part, at) => part === this.of[at])) return;
    const focused = (document.activeElement as HTMLElement | null)?.dataset.state;
    const kind = document.activeElement?.tagName;
    this.of = of;
    const listed = this.listed();
    this.list.replaceChildren(...listed.slice(0, LINES_MAX).map((state) => this.line(state)));
    this.more.textContent =
      listed.length > LINES_MAX
        ? `${listed.length - LINES_MAX} more states: use the filter to find them.`
        : "Click the names of states to choose them for the commands.";
    if (focused !== undefined) this.list.querySelector<HTMLElement>(`${kind}[data-state="${Number(focused)}"]`)?.focus();
  }

  private line(state: number): HTMLElement {
    const { trace, look } = this.view;
    const { name: its, category } = trace.states[state]!;
    const id = String(state);
    const shown = element("input", { type: "checkbox", "aria-label": `Show ${its}`, "data-state": id });
    shown.checked = !look.hidden.has(state);
    shown.addEventListener("change", () => this.hide([state], !shown.checked));
    const picture = element("canvas", { class: "swatch", "aria-hidden": "true" });
    swatch(picture, this.derived.looks[state]!);
    const pressed = String(look.states.has(state));
    const title = category === "" ? its : `${its} (${category})`;
    const choose = button("", { class: "state", "aria-pressed": pressed, "data-state": id, title }, () => {
      const states = new Set(look.states);
      if (!states.delete(state)) states.add(state);
      this.view.set({ states });
    });
    choose.append(picture, name(its));
    return element("li", {}, shown, choose);
  }

  private hide(states: number[], hide: boolean): void {
    const hidden = new Set(this.view.look.hidden);
    for (const state of states) {
      if (hide) hidden.add(state);
      else hidden.delete(state);
    }
    this.view.set({ hidden });
  }

  private onlyChosen(): void {
    const { trace, look } = this.view;
    if (look.states.size === 0) return;
    const others = trace.states.map((_, state) => state).filter((state) => !look.states.has(state));
    this.view.set({ hidden: new Set(others) });
  }
}
