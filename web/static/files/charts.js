// Charts: a bar says what its row of the table says. There are so many bars that the
// page does not hold their words as well.

import { all, find } from "./page.js";

function tell({ target }) {
  const bar = target.closest?.("[data-bars] > g");
  if (!bar || find("title", bar)) return;
  const row = all("tbody tr", bar.closest("figure"))[[...bar.parentNode.children].indexOf(bar)];
  const [, , requeued, dead, succeeded, replayed] = [...row.cells].map((cell) => cell.textContent.trim());
  const title = document.createElementNS(bar.namespaceURI, "title");
  const time = find("time", row).dateTime.slice(11, 16); // as the axis has it
  title.textContent = `${time}: ${succeeded} succeeded, ${requeued} requeued, ${dead} failed permanently${replayed === "0" ? "" : `, ${replayed} replayed`}`;
  bar.prepend(title);
}

export function start() {
  document.addEventListener("pointerover", tell);
}
