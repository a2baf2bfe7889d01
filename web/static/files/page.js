// What the other modules share: finding, saying, and copying the parts that
// the server drew into <template data-pattern>, so that hardly any markup
// lives in a script.

export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const grouped = new Intl.NumberFormat("en-US");

/** Writes a count as the server does: 1,261,402. */
export const number = (n) => grouped.format(n);

/** Copies a part that the server drew: pattern("badge-active"). */
export function pattern(name) {
  const template = find(`template[data-pattern="${CSS.escape(name)}"]`);
  return template ? template.content.firstElementChild.cloneNode(true) : null;
}

/** Sets text only where it differs, so that nothing is drawn for nothing. */
export function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/** Returns what to do after a change: focus on what is gone moves to the row or the part that it was in. */
export function focused() {
  const path = [];
  for (let at = document.activeElement; at; at = at.parentElement) path.push(at);
  return () => {
    if (!path.length || path[0].isConnected && path[0].checkVisibility()) return;
    const near = path.find((at) => at.isConnected && at.matches("tr, [tabindex]"));
    (near?.localName === "tr" ? find("a", near) : near)?.focus({ preventScroll: true });
  };
}

/** Tells people who listen instead of looking. There is one such voice. */
export function announce(text) {
  setText(find("[data-announce]"), text);
}

/** Loads a page as a document, whose scripts do not run: its status and itself, null when there is none. */
export function load(url, { signal } = {}) {
  const request = new XMLHttpRequest();
  signal?.addEventListener("abort", () => request.abort());
  return new Promise((resolve) => {
    request.responseType = "document";
    request.open("GET", url);
    request.onloadend = () => resolve({ status: request.status, page: request.response });
    request.send();
  });
}
