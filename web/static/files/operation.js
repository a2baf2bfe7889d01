// The meters of an operation: absolute figures, asked for each second while
// something can still change. No row moves; what needs another page is a link
// in the bar that is always there.

import { all, find, number, setText } from "./page.js";

const second = 1000;
const over = new Set(["finished", "aborted"]);

const source = find("[data-operation-source]");

/** Starts when the page shows an operation. */
export function start() {
  if (!source) return;
  const drawn = find("[data-op-state]").dataset.opState;
  let quiet = 0;
  const ask = async () => {
    if (document.hidden) return true;
    const answer = await fetch(source.href, { headers: { Accept: "application/json" } });
    if (!answer.ok) return true;
    const { operation } = await answer.json();
    show(operation);
    if (operation.state !== drawn) moved(operation.state);
    return !over.has(operation.state) || operation.unsettled > 0;
  };
  const again = async () => {
    let more = true;
    try {
      more = await ask();
      quiet = 0;
    } catch {
      quiet += 1; // the server is away: ask more rarely
    }
    if (more) setTimeout(again, second * Math.min(30, 2 ** quiet));
  };
  if (drawn !== "preview" && drawn !== "collecting") setTimeout(again, second);
}

function show(o) {
  const figures = { ...o, worked: o.total - o.pending };
  for (const cell of all("[data-n]")) {
    const n = figures[cell.dataset.n];
    if (n !== undefined) setText(cell, number(n));
  }
  const meters = all(".meter.thick");
  draw(meters[0], o, o.total);
  draw(meters[1], o, o.done);
}

function draw(meter, o, total) {
  if (!meter) return;
  let x = 0;
  for (const bar of all("[data-part]", meter)) {
    const width = total > 0 ? (100 * o[bar.dataset.part]) / total : 0;
    bar.setAttribute("x", `${x}%`);
    bar.setAttribute("width", `${width}%`);
    const seam = find(`[data-seam="${bar.dataset.part}"]`, meter);
    seam.setAttribute("x", `${x}%`);
    seam.setAttribute("width", x > 0 && width > 0 ? "1" : "0");
    x += width;
  }
}

function moved(state) {
  const bar = find("[data-op-moved]");
  if (!bar) return;
  const link = find("a", bar);
  setText(find("[data-words]", link), `It is ${state} now: show`);
  link.hidden = false;
  bar.classList.remove("idle");
}
