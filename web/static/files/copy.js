// Copying says so where it was asked for; where the browser refuses, what is to
// be copied can be selected.

import { all, announce, find } from "./page.js";

/** Copies a text and shows at a button that it was; false where that fails. */
export async function copied(control, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return false;
  }
  const use = find("use", control), before = use.getAttribute("href");
  if (before !== "#i-check") {
    use.setAttribute("href", "#i-check");
    setTimeout(() => use.setAttribute("href", before), 2000);
  }
  announce("Copied");
  return true;
}

export function start() {
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", () => copied(button, find("pre", button.parentElement).textContent));
  }
}
