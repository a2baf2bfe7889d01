// Live: totals and rows follow the server over a websocket, or by polling when
// it cannot be reached. Between navigations nothing moves: news is a number in
// a bar that is always there.

import { all, announce, find, number, pattern, setText } from "./page.js";
import { ids, patch } from "./rows.js";
import { selecting } from "./selection.js";
import { clock, now } from "./times.js";

const second = 1000;
const pollEvery = 5 * second, hiddenEvery = 30 * second;
const firstWait = second, longestWait = 30 * second, failuresToPoll = 3;

const list = find("[data-list]");
const source = document.body.dataset.live;

let socket = null;
let failures = 0; // connections in a row that did not open
let seq = 0; // of the newest counters shown
let offlineSince = 0;
let retryTimer = 0, pollTimer = 0;
let frozen = false;
let missed = new Map(); // what came while frozen, newest per job
let newerBefore = 0, newerNow = 0, newerShown = 0; // of earlier connections, of this one; in the bar

// ------------------------------------------------------------ connection

function connect() {
  clearTimeout(retryTimer);
  if (socket || document.hidden) return;
  const url = new URL(source, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const mine = new WebSocket(url);
  socket = mine;
  mine.addEventListener("open", () => opened(mine));
  mine.addEventListener("message", (event) => mine === socket && receive(event.data));
  mine.addEventListener("close", () => mine === socket && closed());
}

function opened(mine) {
  failures = 0;
  seq = 0; // a restarted server counts anew
  clearInterval(pollTimer);
  pollTimer = 0;
  newerBefore += newerNow;
  newerNow = 0;
  // The server answers with where these jobs stand now, so nothing that
  // happened since the page was drawn, or during the gap, is missed.
  mine.send(JSON.stringify({ type: "subscribe", ids: ids(), filter: filter(), newer: Boolean(find("[data-newer]")) }));
  status("live");
}

function filter() {
  const { state = "", queue = "", type = "" } = list?.dataset ?? {};
  return { state, queue, type };
}

function closed() {
  socket = null;
  failures++;
  if (document.hidden) return;
  if (failures >= failuresToPoll) startPolling();
  else status("connecting");
  const wait = Math.min(firstWait * 2 ** (failures - 1), longestWait);
  retryTimer = setTimeout(connect, wait * (0.75 + Math.random() * 0.5));
}

function disconnect() {
  clearTimeout(retryTimer);
  clearInterval(pollTimer);
  pollTimer = 0;
  const old = socket;
  socket = null;
  old?.close();
}

// --------------------------------------------------------------- polling

function startPolling() {
  if (pollTimer) return;
  const ask = async () => status((await poll(ids())) ? "polling" : "offline");
  pollTimer = setInterval(ask, pollEvery);
  ask();
}

async function poll(wanted) {
  const url = new URL(source, location.href);
  if (wanted.length) url.searchParams.set("ids", wanted.join(","));
  try {
    const response = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!response.ok) return false;
    const body = await response.json();
    showCounters(body.counters);
    showJobs(body.jobs ?? []);
    return true;
  } catch {
    return false; // said by the dot: Offline since
  }
}

// A tab that nobody sees asks for the counters only; on return it connects
// again, which asks once for the rows, or goes on polling if it did before.
function visibility() {
  disconnect();
  if (document.hidden) {
    pollTimer = setInterval(() => poll([]), hiddenEvery);
    return;
  }
  if (failures >= failuresToPoll) startPolling();
  connect();
}

// -------------------------------------------------------------- messages

function receive(data) {
  let message;
  try {
    message = JSON.parse(data);
  } catch {
    return; // not ours; the next one replaces it
  }
  if (message.type === "counters") showCounters(message);
  else if (message.type === "job") showJobs(message.jobs ?? []);
  else if (message.type === "newer") showNewer(message.count);
}

function showCounters(counters) {
  if (!counters || frozen || counters.seq < seq) return;
  seq = counters.seq;
  for (const counter of all("[data-counter]")) {
    const value = counters[counter.dataset.counter];
    if (typeof value !== "number") continue;
    setText(find("[data-value]", counter), number(value));
    if ("alarm" in counter.dataset) counter.classList.toggle("is-alarm", value > 0);
  }
  for (const element of all("[data-state-count]")) {
    const value = counters.states?.[element.dataset.stateCount];
    if (typeof value === "number") setText(element, number(value));
  }
}

function showJobs(jobs) {
  for (const job of jobs) {
    if (frozen) missed.set(job.id, job);
    else patch(job);
  }
}

function showNewer(count) {
  newerNow = count;
  const total = newerBefore + count;
  const bar = find("[data-newer]");
  if (!bar || !total || frozen || held()) return;
  newerShown = total;
  const link = find("a", bar);
  const noun = total === 1 ? bar.dataset.one : bar.dataset.many;
  setText(find("[data-words]", link), `${number(total)} newer ${noun}: show`);
  if (link.hidden) announce(`There are newer ${bar.dataset.many}`);
  link.hidden = false;
  bar.classList.remove("idle");
}

// While anything is ticked, a menu or a dialog is open or text is selected,
// even the number waits. It follows when that is over.
const held = () => selecting() || Boolean(find("dialog[open], details.menu[open], :popover-open")) || getSelection()?.type === "Range";

const catchUp = () => newerShown !== newerBefore + newerNow && showNewer(newerNow);

// ---------------------------------------------------------------- status

function status(name) {
  const dot = find("[data-live-status]");
  if (!dot) return;
  if (name === "live" || name === "polling") offlineSince = 0;
  else if (name === "offline" && !offlineSince) offlineSince = now();
  const shown = frozen ? "frozen" : name;
  dot.dataset.state = name;
  const drawn = pattern(`live-${shown}`);
  const first = dot.classList.contains("unknown");
  const since = shown === "offline" ? ` since ${clock(offlineSince)}` : "";
  const words = drawn.textContent.trim() + since;
  if (!first && dot.textContent.trim() === words) return;
  dot.className = `live scripted ${drawn.className}`;
  find("[data-since]", drawn).textContent = since;
  dot.replaceChildren(...drawn.childNodes);
  if (name !== "connecting" && !first) announce(words);
}

/** Stops and resumes every change of the page. */
export function toggleFreeze() {
  frozen = !frozen;
  if (!frozen) {
    for (const job of missed.values()) patch(job);
    missed = new Map();
    showNewer(newerNow);
    poll([]);
  }
  status(find("[data-live-status]")?.dataset.state ?? "connecting");
}

export function start() {
  document.addEventListener("visibilitychange", visibility);
  for (const release of ["held", "selectionchange"]) document.addEventListener(release, catchUp);
  for (const release of ["close", "toggle"]) document.addEventListener(release, catchUp, true);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && visibility());
  connect(); // until it opens or fails, the dot says nothing
}
