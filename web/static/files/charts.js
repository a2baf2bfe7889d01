// Charts: a bar says what its row of the table says, in the words of the columns. There
// are so many bars that the page does not hold their words as well.

import { all, find, setText } from "./page.js";

function tell({ target, clientX }) {
  const bars = target.closest?.("[data-bars]");
  if (!bars) return;
  const { left, width } = bars.parentNode.getBoundingClientRect();
  const piece = Math.floor(((clientX - left) / width) * bars.viewBox.baseVal.width);
  const at = Date.parse(bars.dataset.first) + piece * bars.dataset.step * 1000;
  const table = find("table", bars.closest("figure"));
  const row = [...table.tBodies[0].rows].find((row) => Date.parse(find("time", row).dateTime) === at);
  if (!row) return; // the very edge of a bar
  const counts = all("th[data-words]", table).map((head) => `${row.cells[head.cellIndex].textContent} ${head.dataset.words}`);
  const time = find("time", row).dateTime.slice(11, 16); // as the axis has it
  if (!find("title", bars)) bars.prepend(document.createElementNS(bars.namespaceURI, "title"));
  setText(find("title", bars), `${time}: ${counts.join(", ")}`);
}

export function start() {
  document.addEventListener("pointermove", tell);
}
