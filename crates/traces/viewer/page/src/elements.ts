/** Creates elements of the page. All strings become text nodes, so that no name in a trace is interpreted as markup. */

type Child = Node | string;

/** Returns a new element with attributes and children. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Returns a button that calls `press` when clicked. */
export function button(label: string, attributes: Record<string, string>, press: (event: MouseEvent) => void) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", press);
  return made;
}

/** Returns an element with a name from a trace, isolated because it can be in any script and direction. */
export function name(text: string): HTMLElement {
  return element("bdi", {}, text);
}

/** Returns the element of the page with this id. */
export function byId<Type extends HTMLElement = HTMLElement>(id: string): Type {
  return document.getElementById(id) as Type;
}

/** Returns a function that runs `work` once it has not been called for `milliseconds`. */
export function atRest(milliseconds: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Returns a function that runs `work` before the next frame, once for any number of calls. */
export function nextFrame(work: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}
