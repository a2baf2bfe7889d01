// An operation under way: absolute figures, asked for each second while something
// can still change. No row moves; what needs another page is a link in the bar
// that is always there.

import { all, announce, find, number, setText } from "./page.js";
import { about, clock, now, setTime } from "./times.js";

const second = 1000;
const rateEvery = 5; // questions for the meters to one for the chart
const over = new Set(["finished", "aborted"]);
const floor = 84, room = 53; // of the chart, as the server draws it

const source = find("[data-operation-source]");

/** Starts when the page shows an operation. */
export function start() {
  if (!source) return;
  const drawn = find("[data-op-state]").dataset.opState;
  if (drawn === "preview" || drawn === "collecting") return;
  let quiet = 0, asked = 0;
  const ask = async () => {
    if (document.hidden) return true;
    const { operation, progress } = await json(source.href);
    show(operation, progress);
    if (operation.state !== drawn) moved(`It is ${operation.state} now: show`);
    else if (progress.canary_unsettled === 0 && Number(find("[data-canary]")?.dataset.canary) > 0) moved("The canary has ended: show");
    if (operation.state === "running" && ++asked % rateEvery === 0) await showRate();
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
  setTimeout(again, second);
}

async function json(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  return answer.json();
}

function show(o, progress) {
  const figures = { ...o, ...progress };
  for (const cell of all("[data-n]")) {
    const n = figures[cell.dataset.n];
    if (n !== undefined) setText(cell, number(n));
  }
  const meters = all(".meter.thick");
  draw(meters[0], o, o.total);
  draw(meters[1], o, o.done);
  setText(find("[data-outcome-note]"), outcome(o));
  setText(find("[data-guard]"), `Now ${progress.guard_same} of ${progress.guard_ended}.`);
  if (o.rate > 0 && o.state === "running") showLeft((o.pending / o.rate) * second);
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
  meter.setAttribute("aria-label", `Of ${number(total)}: ${words(meter)}`);
}

// The legend beside a meter is up to date by now.
const words = (meter) => all("li", meter.nextElementSibling)
  .map((part) => `${find("b", part).textContent} ${part.textContent.replace(find("b", part).textContent, "").trim()}`).join(", ");

function outcome(o) {
  const ended = o.succeeded + o.relapsed + o.dropped;
  if (ended === 0) return `none of the ${number(o.done)} replayed runs has ended yet`;
  const noun = ended === 1 ? "run that ended" : "runs that ended";
  return `${Math.floor((100 * o.succeeded) / ended)} % of the ${number(ended)} ${noun} succeeded`;
}

function showLeft(ms) {
  setText(find("[data-left]"), about(ms));
  const ends = find("[data-ends] time");
  if (ends) setTime(ends, new Date(now() + ms).toISOString(), "clock");
}

// The server drew as many bars as there can be. A step may grow while it goes
// on: then all bars get new heights.
async function showRate() {
  const figure = find("[data-rate-url]");
  if (!figure) return;
  const { from, step_seconds: step, done } = await json(figure.dataset.rateUrl);
  const bars = all("[data-step]", figure);
  const top = Math.max(...done) / step;
  for (const [i, bar] of bars.entries()) {
    const height = i < done.length && top > 0 ? (room * done[i]) / step / top : 0;
    bar.setAttribute("y", floor - height);
    bar.setAttribute("height", height);
    if (height > 0) find("title", bar)?.remove();
  }
  setText(find("[data-rate-top]", figure), top > 0 ? `${Number(top.toFixed(1))} /s` : "");
  setText(find("[data-rate-from]", figure), clock(Date.parse(from)));
  setText(find("[data-rate-end]", figure), clock(Date.parse(from) + step * second * bars.length));
}

function moved(text) {
  const bar = find("[data-op-moved]");
  if (!bar) return;
  const link = find("a", bar);
  if (link.hidden) announce(text);
  setText(find("[data-words]", link), text);
  link.hidden = false;
  bar.classList.remove("idle");
}
