/** Sets up the page: the trace, the view, and the parts that show them. */

import { Commands } from "./commands";
import { Derived } from "./derived";
import { DistributionView } from "./distribution";
import { DurationView } from "./duration";
import { atRest, byId, element } from "./elements";
import { Legend } from "./legend";
import { MiniMap } from "./minimap";
import { Panel } from "./panel";
import { search } from "./search";
import { canFollow, follow, load } from "./source";
import { SummaryView } from "./summary";
import { toggleTheme } from "./theme";
import { instant, parse } from "./time";
import { KINDS, View, type Kind } from "./view";

/** Access for tests and the console of the browser. */
declare global {
  interface Window {
    viewer?: { view: View; panels: () => Panel[] };
  }
}

class Page {
  private readonly view: View;
  private readonly derived: Derived;
  private readonly legend: Legend;
  private readonly commands: Commands;
  private readonly duration: DurationView;
  private readonly distribution: DistributionView;
  private readonly summary: SummaryView;
  private panels: Panel[] = [];
  private panelsOf = "";
  private readonly rest = atRest(120, () => this.atRest());

  constructor(view: View) {
    this.view = view;
    this.derived = new Derived(view);
    const minimap = new MiniMap(view, this.derived);
    view.onChange((look, before) => {
      this.changed();
      for (const panel of this.panels) panel.changed(look, before);
      minimap.draw();
    });
    this.legend = new Legend(view, this.derived);
    this.commands = new Commands(view, this.derived, (span) => this.panels[0]!.zoomTo(span));
    this.duration = new DurationView(view, this.derived);
    this.distribution = new DistributionView(view, this.derived);
    this.summary = new SummaryView(view, this.derived);
    this.listen();
    window.viewer = { view, panels: () => this.panels };
  }

  private changes = 0;

  private changed(): void {
    const { look, trace } = this.view;
    this.changes++;
    document.body.dataset.state = "moving";
    this.derived.refresh();
    this.arrangePanels();
    for (const kind of KINDS) {
      byId(kind).hidden = kind !== look.kind;
      const tab = byId(`tab-${kind}`);
      tab.setAttribute("aria-selected", String(kind === look.kind));
      tab.tabIndex = kind === look.kind ? 0 : -1;
    }
    const step = (look.to - look.from) / 1000;
    for (const [id, time] of [["from", look.from], ["to", look.to]] as const) {
      const input = byId<HTMLInputElement>(id);
      if (document.activeElement !== input) input.value = instant(time, step);
    }
    byId("beside").hidden = trace.files.length < 2;
    byId("beside").setAttribute("aria-pressed", String(look.beside));
    byId("processors").hidden = !trace.series.some((series) => series.system);
    byId("processors").setAttribute("aria-pressed", String(look.processors));
    const rows = byId<HTMLInputElement>("rows");
    if (rows.value !== look.rows) rows.value = look.rows;
    this.rest();
  }

  /** Updates the parts that take longer than a frame, when the view is at rest. */
  private atRest(): void {
    const { look } = this.view;
    this.legend.show();
    this.commands.show();
    if (look.kind === "duration") this.duration.show();
    if (look.kind === "distribution") this.distribution.show();
    if (look.kind === "summary") this.summary.show();
    for (const panel of this.panels) panel.draw();
    history.replaceState(null, "", `#${this.view.address()}`);
    // After the frames requested above, everything visible is drawn. Tests wait for this state.
    const { changes } = this;
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        if (changes === this.changes) document.body.dataset.state = "at rest";
      }),
    );
  }

  /** Creates one time line for all files, or one for each file. */
  private arrangePanels(): void {
    const { look, trace } = this.view;
    const beside = look.beside && trace.files.length > 1;
    const of = `${beside} ${trace.files.length}`;
    if (of === this.panelsOf) return;
    this.panelsOf = of;
    this.panels = (beside ? trace.files.map((_, file) => file) : [null]).map((file) => new Panel(this.view, this.derived, file));
    byId("sequence").replaceChildren(...this.panels.map((panel) => panel.root));
  }

  /** Shows the loaded trace and the notes on its files. */
  start(address: string): void {
    const { files, end } = this.view.trace;
    document.title = `${files.map((file) => file.name).join(", ")} — Thread Log Viewer`;
    byId("files").textContent = files.map((file) => file.name).join(", ");
    const notes = files.flatMap((file) => file.notes.map((note) => `${file.name}: ${note}`));
    const told = byId("notes");
    told.hidden = notes.length === 0;
    told.replaceChildren(element("summary", {}, `${notes.length} ${notes.length === 1 ? "note" : "notes"} on the files`));
    told.append(element("ul", {}, ...notes.map((note) => element("li", {}, note))));
    byId("status").textContent = end === 0 ? "The trace is still empty." : "";
    this.view.restore(address);
    byId("loading").hidden = true;
    if (canFollow()) follow((news) => this.follow(news));
  }

  private follow(news: { trace: View["trace"] } | { failure: string }): boolean {
    if ("failure" in news) {
      byId("status").textContent = news.failure;
      return false;
    }
    this.view.replace(news.trace);
    byId("status").textContent = "Following the files.";
    return true;
  }

  private listen(): void {
    const { view } = this;
    for (const kind of KINDS) byId(`tab-${kind}`).addEventListener("click", () => view.set({ kind }));
    byId("tabs").addEventListener("keydown", (event) => this.tabKey(event));
    for (const id of ["from", "to"] as const) {
      byId<HTMLInputElement>(id).addEventListener("change", (event) => this.typed(id, event.target as HTMLInputElement));
    }
    const press = (id: string, act: () => void) => byId(id).addEventListener("click", act);
    press("undo", () => view.undo());
    press("whole", () => view.showAll());
    press("in", () => view.zoom(0.5, (view.look.from + view.look.to) / 2));
    press("out", () => view.zoom(2, (view.look.from + view.look.to) / 2));
    press("beside", () => view.setBeside(!view.look.beside));
    press("processors", () => view.set({ processors: !view.look.processors }));
    press("help", () => byId<HTMLDialogElement>("keys-dialog").showModal());
    press("theme", () => {
      toggleTheme();
      this.redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    byId("rows").addEventListener("input", (event) => view.set({ rows: (event.target as HTMLInputElement).value }));
    byId("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(byId<HTMLInputElement>("search").value);
    });
    window.addEventListener("hashchange", () => view.restore(location.hash.slice(1)));
    document.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
  }

  private redraw(): void {
    this.view.set({});
  }

  private tabKey(event: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const at = KINDS.indexOf(this.view.look.kind);
    const kind = KINDS[(at + by + KINDS.length) % KINDS.length]!;
    this.view.set({ kind });
    byId(`tab-${kind}`).focus();
  }

  private typed(id: "from" | "to", input: HTMLInputElement): void {
    const time = parse(input.value);
    const { look } = this.view;
    const [from, to] = id === "from" ? [time, look.to] : [look.from, time];
    const isRange = from !== null && to !== null && from < to;
    input.setAttribute("aria-invalid", String(!isRange));
    byId("status").textContent = isRange ? "" : `“${input.value}” and the other time do not form a range: enter a time such as 12.5 ms.`;
    if (isRange) this.view.show(from, to);
  }

  private find(words: string): void {
    const { trace, look } = this.view;
    const found = search(trace, words, this.derived.shown, look.selected);
    byId("status").textContent = found === null ? `No shown call has “${words}” in its state, thread or arguments.` : "";
    if (found !== null) this.view.select(found);
  }

  /** Handles the keys that work everywhere except in text fields. Returns false for other keys. */
  private key(event: KeyboardEvent): boolean {
    const target = event.target as HTMLElement;
    const typing = target instanceof HTMLInputElement && target.type !== "checkbox";
    if (typing || target instanceof HTMLSelectElement) return false;
    if ((event.ctrlKey || event.metaKey) && event.key === "z") {
      this.view.undo();
      return true;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const kinds: Record<string, Kind> = { "1": "sequence", "2": "duration", "3": "distribution", "4": "summary" };
    const kind = kinds[event.key];
    if (kind) {
      this.view.set({ kind });
      return true;
    }
    switch (event.key) {
      case "u":
      case "Backspace":
        this.view.undo();
        return true;
      case "0":
        this.view.showAll();
        return true;
      case "/":
        byId("search").focus();
        return true;
      case "?":
        byId<HTMLDialogElement>("keys-dialog").showModal();
        return true;
      default:
        return false;
    }
  }
}

// Initial view of a self-contained page, unless the address has a fragment.
const look = byId("columns").dataset["look"] ?? "";

load().then(
  (trace) => new Page(new View(trace)).start(location.hash.slice(1) || look),
  (error: unknown) => {
    byId("loading").textContent = `This trace cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  },
);
