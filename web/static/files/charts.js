// Charts: a bar says what its row of the table says, in the words of the columns. There
// are so many bars that the page does not hold their words as well.

import { all, find } from "./page.js";

function tell({ target }) {
  const bar = target.closest?.("[data-bars] > g");
  if (!bar || find("title", bar)) return;
  const table = find("table", bar.closest("figure"));
  const row = table.tBodies[0].rows[[...bar.parentNode.children].indexOf(bar)];
  const counts = all("th[data-words]", table).map((head) => `${row.cells[head.cellIndex].textContent} ${head.dataset.words}`);
  const title = document.createElementNS(bar.namespaceURI, "title");
  const time = find("time", row).dateTime.slice(11, 16); // as the axis has it
  title.textContent = `${time}: ${counts.join(", ")}`;
  bar.prepend(title);
}

export function start() {
  document.addEventListener("pointerover", tell);
}
