// Times: the server writes UTC and what it means at that moment; this keeps
// "5 s ago" and "in 30 s" true, and shows local times to who prefers them.
// Numerals are tabular and columns are fixed, so nothing moves.

import { all, find, number, setText } from "./page.js";

const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;

// The server's clock leads: a laptop that is ten minutes off still counts down
// to the right moment.
const skew = (() => {
  const off = Date.parse(document.body.dataset.now) - Date.now();
  return Math.abs(off) > 5 * second ? off : 0;
})();

/** The server's time in milliseconds. */
export const now = () => Date.now() + skew;

let zone = stored();

function stored() {
  try {
    return localStorage.getItem("zone") === "local" ? "local" : "UTC";
  } catch {
    return "UTC"; // storage is blocked
  }
}

/** A duration as a person says it, as the server's About. */
export function about(ms) {
  const d = Math.max(ms, 0), minutes = Math.round(d / minute), hours = Math.round(d / hour);
  if (d < 100 * second) return `${Math.floor(d / second)} s`;
  if (minutes < 100) return `${minutes} min`;
  if (minutes < 600) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  if (hours < 48) return `${hours} h`;
  return `${number(Math.round(d / day))} d`;
}

function relative(t) {
  const d = t - now();
  if (d >= second) return `in ${about(d)}`;
  if (d > -second) return "now";
  return `${about(-d)} ago`;
}

function countdown(t, come) {
  const d = t - now();
  return d < second ? come || "due" : `in ${about(d)}`;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

/** The parts of a time in the chosen zone. */
function parts(t) {
  const d = new Date(zone === "local" ? t - new Date(t).getTimezoneOffset() * minute : t);
  return {
    date: `${d.getUTCDate()} ${months[d.getUTCMonth()]}`,
    year: d.getUTCFullYear(),
    hm: `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`,
    s: two(d.getUTCSeconds()),
    tenth: Math.floor(d.getUTCMilliseconds() / 100),
  };
}

function zoneName(t) {
  if (zone === "UTC") return "UTC";
  const off = -new Date(t).getTimezoneOffset();
  return `UTC${off < 0 ? "−" : "+"}${two(Math.floor(Math.abs(off) / 60))}:${two(Math.abs(off) % 60)}`;
}

/** The time of day, with the date when it is not today, as the server's clock(). */
export function clock(t, form = "") {
  const p = parts(t), today = parts(now());
  const exact = form === "tenths";
  if (p.date === today.date && p.year === today.year) return `${p.hm}:${p.s}${exact ? `.${p.tenth}` : ""}`;
  if (exact) return `${p.date} ${p.hm}:${p.s}.${p.tenth}`;
  return p.year === today.year ? `${p.date} ${p.hm}` : `${p.date} ${p.year}`;
}

/** The whole time, for titles. */
function stamp(t) {
  const p = parts(t);
  return `${p.date} ${p.year} ${p.hm}:${p.s} ${zoneName(t)}`;
}

const at = (element) => Date.parse(element.dateTime);

/** Makes an element show a time in one of the forms that tick. */
export function setTime(element, iso, form) {
  if (element.dateTime === iso && form in element.dataset) return;
  element.dateTime = iso;
  for (const other of ["clock", "relative", "countdown"]) delete element.dataset[other];
  element.dataset[form] = "";
  element.title = stamp(at(element));
  show(element);
}

function show(element) {
  const { dataset } = element;
  if ("relative" in dataset) setText(element, relative(at(element)));
  else if ("age" in dataset) setText(element, about(now() - at(element)));
  else if ("countdown" in dataset) setText(element, countdown(at(element), dataset.countdown));
  else if ("clock" in dataset) setText(element, clock(at(element), dataset.clock));
}

// What goes on now, and comes next, is only known while the page is kept current (live.js).
function tick() {
  const stale = document.body.classList.contains("stale");
  for (const element of all(stale ? "time[data-relative]" : "time[data-relative], time[data-age], time[data-countdown]")) show(element);
  setText(find("time[data-tick]"), clock(now()));
}

/** Shows every time of a document as this reader wants times. */
export function showTimes(page) {
  for (const element of all("time[data-clock], time[data-relative], time[data-age], time[data-countdown]", page)) {
    if (Number.isNaN(at(element))) continue;
    element.title = stamp(at(element));
    show(element);
  }
}

function showZone() {
  setText(find("[data-zone]"), zone === "local" ? "Local" : "UTC");
  showTimes(document);
  tick();
}

function switchZone() {
  zone = zone === "local" ? "UTC" : "local";
  try {
    localStorage.setItem("zone", zone);
  } catch {
    // storage is blocked: the choice lasts for this page
  }
  showZone();
}

export function start() {
  find("[data-zone-switch]")?.addEventListener("click", switchZone);
  showZone();
  setInterval(tick, second);
}
