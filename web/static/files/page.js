// What the other modules share: finding, saying, and copying the parts that
// the server drew into <template data-pattern>, so that no word and no markup
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

/** Tells people who listen instead of looking. There is one such voice. */
export function announce(text) {
  setText(find("[data-announce]"), text);
}

/** Shows one of the two faces of everything around `root`: "on" or "off". */
export function flip(root, state) {
  root.dataset.flips = state;
  for (const face of all("[data-when]", root)) face.hidden = face.dataset.when !== state;
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
