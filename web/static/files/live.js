// Live: totals and rows follow the server over a websocket, or by polling when
// it cannot be reached, and the page is redrawn when they have told of something
// (refresh.js). Between navigations no row moves: what is newer is a number in a bar
// that is always there.

import { all, announce, find, number, pattern, setText } from "./page.js";
import { holdRefresh, refreshSoon } from "./refresh.js";
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
let offlineSince = 0; // when the server was heard last, if it does not answer
let retryTimer = 0, pollTimer = 0;
let frozen = false;
let ended = false; // the login: nothing more is told
let missed = new Map(); // what came while frozen, newest per job
let news = { count: 0, more: false }, told = news; // what is newer than the page; what the bar says of it

// ------------------------------------------------------------ connection

function connect() {
  clearTimeout(retryTimer);
  if (socket || ended || document.hidden) return;
  const url = new URL(source, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const mine = new WebSocket(url);
  socket = mine;
  mine.addEventListener("open", () => opened(mine));
  mine.addEventListener("message", (event) => mine === socket && receive(event.data));
  mine.addEventListener("close", () => mine === socket && closed());
}

function opened(mine) {
  offlineSince = 0;
  if (failures) refreshSoon(); // there was a gap
  failures = 0;
  seq = 0; // a restarted server counts from the start
  clearInterval(pollTimer);
  pollTimer = 0;
  // The server answers with where these jobs stand now and what is newer, so
  // nothing that happened since the page was drawn, or during the gap, is missed.
  const { first, ...filter } = shown();
  mine.send(JSON.stringify({ type: "subscribe", ids: ids(), filter, first, newer: counts() }));
  status("live");
}

function shown() {
  const { state = "", queue = "", type = "", first = "" } = list?.dataset ?? {};
  return { state, queue, type, first };
}

const counts = () => Boolean(find("[data-newer]"));

function closed() {
  socket = null;
  failures++;
  offlineSince ||= now();
  if (document.hidden) return;
  refreshSoon(); // the login may have ended
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

// The page asks for itself now and then; once a user is logged in again, it is live.
function signedOut() {
  ended = true;
  disconnect();
  status("ended");
}

function signedIn() {
  if (!ended) return;
  ended = false;
  connect();
}

// --------------------------------------------------------------- polling

function startPolling() {
  if (pollTimer) return;
  const ask = async () => {
    const answered = await poll(ids(), counts() ? shown() : {});
    if (pollTimer) status(answered ? "polling" : "offline"); // otherwise the page is live by now
  };
  pollTimer = setInterval(ask, pollEvery);
  ask();
}

async function poll(wanted, list = {}) {
  const url = new URL(source, location.href);
  if (wanted.length) url.searchParams.set("ids", wanted.join(","));
  for (const [name, value] of Object.entries(list)) if (value) url.searchParams.set(name, value);
  try {
    const response = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!response.ok) return false;
    const body = await response.json();
    showCounters(body.counters);
    showJobs(body.jobs ?? []);
    if (body.newer) showNewer(body.newer);
    return true;
  } catch {
    return false; // said by the dot: Offline since
  }
}

// A hidden tab asks for the counters only; when it is shown again, it connects again,
// which asks once for the rows, or goes on polling if it did before.
function visibility() {
  disconnect();
  if (document.hidden) {
    pollTimer = setInterval(() => poll([]), hiddenEvery);
    return;
  }
  refreshSoon();
  if (failures >= failuresToPoll && !ended) startPolling();
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
  else if (message.type === "newer") showNewer(message);
  else if (message.type === "page" && !frozen) refreshSoon();
}

function showCounters(counters) {
  if (!counters || frozen || counters.seq < seq) return;
  if (counters.seq !== Number(document.body.dataset.seq)) refreshSoon();
  seq = counters.seq;
  for (const counter of all("[data-counter]").filter(standsAlone)) {
    const value = counters[counter.dataset.counter];
    if (typeof value !== "number") continue;
    setText(find("[data-value]", counter), number(value));
    if ("alarm" in counter.dataset) counter.classList.toggle("is-alarm", value > 0);
  }
}

// What a page says once may run ahead of its next drawing. How many jobs are in a state is
// said in many ways, in lists, facets and meters: all of them change together, when the
// page is drawn again. So does a counter that the page says elsewhere, too: in another
// counter, or in words that only a drawing changes (data-with-page).
const standsAlone = ({ dataset: { counter } }) => all(`[data-counter="${counter}"], [data-with-page="${counter}"]`).length === 1;

function showJobs(jobs) {
  for (const job of jobs) {
    if (frozen) missed.set(job.id, job);
    else follow(patch(job));
  }
}

// What the page is about is drawn at once, what it lists with the rest.
const follow = (news) => news && refreshSoon(news === "page");

function showNewer(latest) {
  news = latest;
  const bar = find("[data-newer]");
  if (!bar || frozen || held()) return;
  told = news;
  const { count, more } = news;
  const link = find("a", bar);
  const noun = count === 1 && !more ? bar.dataset.one : bar.dataset.many;
  setText(find("[data-words]", link), `${more ? "More than " : ""}${number(count)} newer ${noun}: show`);
  if (count && link.hidden) announce(`There are newer ${bar.dataset.many}`);
  link.hidden = !count; // what was newer can have left the list again
  bar.classList.toggle("idle", !count);
}

// While anything is ticked, a menu or a dialog is open or text is selected,
// even the number waits. It follows when that is over.
const held = () => selecting() || Boolean(find("dialog[open], details[data-menu][open], :popover-open")) || getSelection()?.type === "Range";

const catchUp = () => told !== news && showNewer(news);

// ---------------------------------------------------------------- status

function status(name) {
  const dot = find("[data-live-status]");
  if (!dot || ended && name !== "ended") return;
  if (name === "polling") offlineSince = 0;
  else if (name === "offline") offlineSince ||= now();
  keepsCurrent(name !== "offline");
  const shown = frozen && !ended ? "frozen" : name;
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

// Without the server, all that the page says of now is as old as its last answer: it says
// so, its states turn grey, and nothing on it counts on.
function keepsCurrent(is) {
  document.body.classList.toggle("stale", !is);
  for (const place of all("[data-fresh]")) setText(place, is ? place.dataset.fresh : `Not updated since ${clock(offlineSince)}.`);
}

/** Stops and resumes every change of the page, but for those that its reader makes. */
export function toggleFreeze() {
  frozen = !frozen;
  holdRefresh(frozen);
  if (!frozen) {
    for (const job of missed.values()) patch(job);
    missed = new Map();
    showNewer(news);
    poll([]);
    refreshSoon(true);
  }
  status(find("[data-live-status]")?.dataset.state ?? "connecting");
}

/** Starts when the page shows the product. */
export function start() {
  document.addEventListener("visibilitychange", visibility);
  document.addEventListener("signed-out", signedOut);
  document.addEventListener("refreshed", () => {
    keepsCurrent(true);
    signedIn();
  });
  for (const release of ["held", "selectionchange"]) document.addEventListener(release, catchUp);
  for (const release of ["close", "toggle"]) document.addEventListener(release, catchUp, true);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && visibility());
  connect(); // until it opens or fails, the dot says nothing
}
