// Refresh: when something has happened, the server draws the page anew, and what
// differs is put in its place. A page has no second way to say what it says, so
// no two parts of it can contradict each other.

import { all, announce, find, load, pattern } from "./page.js";
import { redraw } from "./morph.js";
import { showTimes } from "./times.js";

const second = 1000;
const together = 100; // milliseconds in which one act is usually told of in full
const share = 4; // a page waits so many times as long as the last answer took
const patience = 30 * second; // what depends on the time alone is no older

let timer = 0, alarm = 0;
let earliest = 0; // when the server may be asked again
let again = false; // something happened while it was asked
let asking = false;

/** Draws the page again, soon. */
export function refreshSoon() {
  if (asking) again = true;
  else timer ||= setTimeout(ask, Math.max(together, earliest - performance.now()));
}

async function ask() {
  timer = 0;
  if (document.hidden) return; // live.js asks when the page is seen again
  asking = true;
  const began = performance.now();
  const { status, page } = await load(address());
  asking = false;
  const took = performance.now() - began;
  if (page) show(page, status);
  earliest = performance.now() + Math.min(patience, Math.max(Number(document.body.dataset.pause), share * took));
  clearTimeout(alarm);
  alarm = setTimeout(refreshSoon, Number(find("main [data-again]")?.dataset.again ?? 0) * second || patience);
  if (again) {
    again = false;
    refreshSoon();
  }
}

// The answer to a form has no address: what surrounds it is that of any other page.
const address = () => find("#main").dataset.still === "answer" ? find("a.brand").href : location.href;

function show(page, status) {
  const main = find("#main", page);
  if (!main || status >= 500 || status === 429) return; // the server has no time, or trouble: another time
  if (!page.body.dataset.live) return signedOut();
  showTimes(page);
  document.body.dataset.pause = page.body.dataset.pause;
  document.title = page.title;
  const frame = all("nav.side, #notices");
  const regions = "still" in find("#main").dataset ? frame : [find("nav.side"), find("#main")];
  for (const region of regions) if (region) redraw(region, find(region.id ? `#${region.id}` : "nav.side", page));
  document.dispatchEvent(new Event("refreshed"));
}

// Whoever is no longer logged in keeps what is on the screen, ticks included.
function signedOut() {
  if (find("[data-signed-out]")) return;
  const banner = pattern("signed-out");
  const back = find("a", banner);
  back.setAttribute("href", `${back.getAttribute("href")}?${new URLSearchParams({ next: location.pathname + location.search })}`);
  find("#notices").prepend(banner);
  announce(banner.textContent.trim());
}
