// Charts: a bar says what its row of the table says. There are so many bars that the
// page does not hold their words as well.

import { all, find, setText } from "./page.js";

function tell({ target, clientX }) {
  const bars = target.closest?.("[data-bars]");
  if (!bars) return;
  const { left, width } = bars.parentNode.getBoundingClientRect();
  const piece = Math.floor(((clientX - left) / width) * bars.viewBox.baseVal.width);
  const at = Date.parse(bars.dataset.first) + piece * bars.dataset.step * 1000;
  const row = all("tbody tr", bars.closest("figure")).find((row) => Date.parse(find("time", row).dateTime) === at);
  if (!row) return; // the very edge of a bar
  const [, , requeued, dead, succeeded, replayed] = [...row.cells].map((cell) => cell.textContent.trim());
  const time = find("time", row).dateTime.slice(11, 16); // as the axis has it
  if (!find("title", bars)) bars.prepend(document.createElementNS(bars.namespaceURI, "title"));
  setText(find("title", bars), `${time}: ${succeeded} succeeded, ${requeued} requeued, ${dead} failed permanently${replayed === "0" ? "" : `, ${replayed} replayed`}`);
}

export function start() {
  document.addEventListener("pointermove", tell);
}
