// Suggestions in the box of a filter. Without this module the list knows whole
// filters of one word; with it, it completes the last word of several.

import { find } from "./page.js";

const box = find("[data-suggest]");

export function start() {
  if (!box?.list) return;
  const options = [...box.list.options], words = options.map((option) => option.value);
  box.addEventListener("input", () => {
    const before = box.value.slice(0, box.value.lastIndexOf(" ") + 1);
    const quoted = before.split('"').length % 2 === 0; // in the middle of a text
    options.forEach((option, i) => { option.value = quoted ? "" : before + words[i]; });
  });
}
