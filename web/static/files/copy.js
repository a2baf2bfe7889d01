// Copying says so where it was asked for; where the browser refuses, what is to
// be copied can be selected.

import { announce, find, pattern } from "./page.js";

/** Copies a text and shows at a button whether that worked. */
async function copied(control, text) {
  let done = true;
  try {
    await navigator.clipboard.writeText(await text);
  } catch {
    done = false; // the browser copies only on https and on this machine, or the text did not come
  }
  mark(find("svg", control), find("svg", pattern(done ? "answer" : "answer-refused")));
  announce(done ? "Copied" : "The browser did not copy it. Select the text instead.");
  return done;
}

const before = new WeakMap(); // what an icon showed before its mark

/** Shows the drawing of another icon for a moment. */
function mark(icon, { childNodes }) {
  if (!before.has(icon)) before.set(icon, [...icon.childNodes]);
  icon.replaceChildren(...childNodes);
  setTimeout(() => icon.replaceChildren(...before.get(icon)), 2000);
}

/** What a button copies: its text, what is at an address, or what stands beside it. */
async function textOf({ dataset, parentElement }) {
  if (!dataset.copyUrl) return dataset.copy || find("pre", parentElement).textContent;
  const response = await fetch(dataset.copyUrl);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.text();
}

async function click(event) {
  const control = event.target.closest?.("[data-copy], [data-copy-url], [data-copy-link]");
  if (!control) return;
  if (!("copyLink" in control.dataset)) return copied(control, textOf(control));
  event.preventDefault();
  if (!(await copied(control, control.href))) location.assign(control.href);
}

export function start() {
  document.addEventListener("click", click);
}
