// Refresh: when something has happened, the server draws the page again, and what
// differs is put in its place, so that parts that say the same change together. Only
// rows (rows.js) and counters that stand alone (live.js) may run ahead of that.

import { all, announce, find, focused, load, pattern } from "./page.js";
import { redraw } from "./morph.js";
import { showTimes } from "./times.js";

const second = 1000;
const together = 100; // milliseconds in which one act is usually told of in full
const brisk = 300; // milliseconds between two drawings of what the page is about
const share = 4; // a page waits so many times as long as the last answer took
const patience = 30 * second; // what depends on the time alone is no older

let timer = 0, due = 0, alarm = 0; // due: when the timer ends
let earliest = 0; // when the server may be asked again
let soonest = 0; // the same, when what the page is about has changed
let again = null; // something happened while it was asked: whether that is urgent
let asking = 0; // which question is under way
let questions = 0;
let held = false;

/** Draws the page again, soon; at once when what it is about has changed. A held page waits. */
export function refreshSoon(urgent = false) {
  if (!held) want(urgent);
}

/** Draws the page again at once, held or not: its reader has changed something that an answer under way does not know. */
export function refreshNow() {
  asking = 0;
  want(true);
}

/** Keeps what is shown, also from an answer that is under way, until it is let go. */
export function holdRefresh(is) {
  held = is;
  if (!held) return;
  clearTimeout(timer);
  timer = asking = 0;
  again = null;
}

function want(urgent) {
  if (asking) {
    again ||= urgent;
    return;
  }
  const at = Math.max(performance.now() + together, urgent ? soonest : earliest);
  if (timer && due <= at) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(ask, at - performance.now());
}

async function ask() {
  timer = 0;
  if (document.hidden) return; // live.js asks when the page is seen again
  const mine = asking = ++questions;
  for (const shown of all("[data-ahead]")) delete shown.dataset.ahead; // the answer knows of it
  const began = performance.now();
  const { status, page } = await load(address());
  if (mine !== asking) return;
  asking = 0;
  if (page) show(page, status);
  rest(performance.now() - began);
  if (again !== null) want(again);
  again = null;
}

// What the page is about can change many times a second: even then the server draws
// it at most about three times a second, and half of the time at most.
function rest(took) {
  const now = performance.now();
  soonest = now + Math.max(brisk, took);
  earliest = now + Math.min(patience, Math.max(Number(document.body.dataset.pause), share * took));
  start();
}

/** Starts to draw the page again for what changes with the time alone. */
export function start() {
  clearTimeout(alarm);
  alarm = setTimeout(() => refreshSoon(), Number(find("main [data-again]")?.dataset.again ?? 0) * second || patience);
}

const isAnswer = () => find("#main").dataset.still === "answer";

// The answer to a form has no address: what surrounds it is that of the first page of
// its part of the navigation.
const address = () => isAnswer() ? (find("nav.side [aria-current]") ?? find("a.brand")).href : location.href;

function show(page, status) {
  const main = find("#main", page);
  if (!main || status >= 500 || status === 429) return; // the server has no time, or trouble: another time
  if (!page.body.dataset.live) return signedOut();
  showTimes(page);
  Object.assign(document.body.dataset, { pause: page.body.dataset.pause, seq: page.body.dataset.seq });
  if (!isAnswer()) document.title = page.title;
  const refocus = focused();
  const frame = all("nav.side, #notices");
  const regions = "still" in find("#main").dataset ? frame : [find("nav.side"), find("#main")];
  for (const region of regions) if (region) redraw(region, find(region.id ? `#${region.id}` : "nav.side", page));
  refocus();
  document.dispatchEvent(new Event("refreshed"));
}

// A user who is no longer logged in keeps what is on the screen, ticks included.
function signedOut() {
  document.dispatchEvent(new Event("signed-out"));
  if (find("[data-signed-out]")) return;
  const banner = pattern("signed-out");
  const back = find("a", banner);
  back.setAttribute("href", `${back.getAttribute("href")}?${new URLSearchParams({ next: location.pathname + location.search })}`);
  find("#notices").prepend(banner);
  announce(banner.textContent.trim());
}
