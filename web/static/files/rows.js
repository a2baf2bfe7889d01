// Patching: a change of a job is shown in the cells of its row, in place. A
// row is never added, removed or moved, and no cell changes its width. What a page
// is about is not patched: all that is said of it changes together, when the page is
// drawn again (refresh.js).

import { all, find, focused, number, pattern, setText } from "./page.js";
import { setTime } from "./times.js";

const svg = "http://www.w3.org/2000/svg";
const ended = ["discarded", "dead_letter", "dlq_failed"];
const applies = {
  replay: [...ended, "cancelled"], // a job that waits for a retry runs again automatically
  discard: ["dead_letter", "dlq_failed", "retryable", "scheduled", "available", "held"],
};

/** Everything on the page that shows a job. */
export const rows = (id) => all(id ? `[data-job="${CSS.escape(id)}"]` : "[data-job]");

/** The ids of the jobs on the page, at most as many as one may subscribe to. */
export const ids = () => [...new Set(rows().map((row) => row.dataset.job))].slice(0, 200);

/**
 * Shows where a job stands: {id, state, status, run, attempts, max_attempts, run_at, changed_at,
 * source}, the last one of a job that its source has.
 * Returns whether that was news: to a "row", to the "page" that is about the job, or not at all.
 */
export function patch(job) {
  let news = "";
  for (const row of rows(job.id)) {
    if (isOlder(job, row)) continue;
    const { changed } = row.dataset, about = isSubject(row);
    let is = Boolean(changed) && changed !== job.changed_at;
    if (!about) is = patchRow(row, job) || is;
    if (!is) continue;
    if (!about) row.dataset.ahead = ""; // of a drawing that is under way
    news = about ? "page" : news || "row";
  }
  return news;
}

// The page of a job is about it. The answer to a form is, too, but nothing draws it again.
const isSubject = (row) => row.localName !== "tr" && !row.closest("[data-still]");

// A poll, a message and the answer of an action can cross: the newer truth
// stays. An answer says no time; it only counts where nothing newer is shown.
function isOlder(job, row) {
  const run = Number(row.dataset.run), { changed } = row.dataset;
  if (job.run !== run) return job.run < run;
  return Boolean(changed) && !(Date.parse(job.changed_at) >= Date.parse(changed));
}

/** Lets the next thing that is said of a job count, whenever it is from. */
export function forget(id) {
  for (const row of rows(id)) delete row.dataset.changed;
}

/** Patches a row; returns whether its job has moved. */
function patchRow(row, job) {
  const cell = (name) => all(`[data-cell="${name}"]`, row);
  const replayed = job.run > Number(row.dataset.run), was = row.classList.contains("gone");
  const refocus = focused();
  row.dataset.run = String(job.run);
  if (job.changed_at) row.dataset.changed = job.changed_at;
  const moved = cell("state").filter((c) => setBadge(c, badgeOf(row, job), job)).length > 0 || replayed;
  for (const c of cell("attempts")) setAttempts(c, job);
  for (const c of cell("run")) setText(find("[data-value]", c) ?? c, String(job.run));
  if (moved) for (const c of cell("why")) setWhy(c, job, replayed);
  for (const c of cell("time")) setWhen(c, job);
  const gone = leave(row, job);
  for (const c of cell("acts")) setActs(c, job, replayed, gone && !cell("state").length);
  refocus();
  return moved || gone !== was;
}

// Among jobs that failed, one that succeeded has recovered. Of a returned job without a source
// it is unknown whether its source has it.
function badgeOf(row, { status, source }) {
  if (status === "completed" && kept(row).includes("retryable")) return "recovered";
  if (status === "returned" && !source) return "doubt";
  return status;
}

/** Shows a state; returns whether it is another one. */
function setBadge(cell, name, job) {
  const old = find(".badge", cell);
  const badge = pattern(`badge-${name}`);
  if (!badge) return false;
  if (old?.className === badge.className) return false;

  if (job.source) setText(find("span", badge), wordsOf(job));
  if (old) old.replaceWith(badge);
  else cell.append(badge);
  return true;
}

function setAttempts(cell, { attempts: used, max_attempts: limit, status }) {
  const known = used !== undefined, drawn = known && limit; // the source of a job may not say either
  if (!drawn || limit > maxPips) find(".pips", cell)?.remove();
  find(".pips", cell)?.classList.toggle("done", status === "completed");
  const text = drawn ? `${used}/${limit}` : used ? String(used) : "–";
  const value = find("[data-value]", cell);
  if (!value || value.textContent === text) return;
  value.textContent = text;
  find(".pips", cell)?.replaceChildren(...pips(used, limit));
}

// Of more attempts than these, the number alone can be read.
const maxPips = 10;

// The same picture as the server's pipsOf.
function pips(used, limit) {
  const [pitch, gap] = limit > 8 ? [3, 1] : limit > 5 ? [5, 2] : [7, 2];
  return Array.from({ length: limit }, (_, i) => {
    const hollow = i >= used ? 1 : 0;
    const rect = document.createElementNS(svg, "rect");
    rect.setAttribute("class", hollow ? "left" : "fill is-failed");
    rect.setAttribute("x", i * pitch + hollow / 2);
    rect.setAttribute("y", hollow / 2);
    rect.setAttribute("width", pitch - gap - hollow);
    rect.setAttribute("height", 10 - hollow);
    return rect;
  });
}

// The reason is not part of a message: once a job has moved on, the old one no
// longer holds. How long a job waits is for the server to say, which draws the row next.
function setWhy(cell, job, replayed) {
  const reason = find(".reason", cell);
  if (waits(job)) return;
  if (reason && ended.includes(job.status) && !replayed) return;
  const text = document.createElement("span");
  text.className = "dim";
  if (job.run > 1 && !ended.includes(job.status)) text.textContent = "replayed";
  if (cell.textContent.trim() !== text.textContent) cell.replaceChildren(text);
}

const waits = ({ status }) => status === "retryable" || status === "scheduled";

function setWhen(cell, job) {
  const time = find("time", cell);
  if (!time) return;
  if (waits(job) && job.run_at) setTime(time, job.run_at, "countdown");
  else if (job.changed_at) setTime(time, job.changed_at, "clock");
}

// An answer stays until the job fails again; that of a replay goes on to say how the
// run fares. A row that left the filter says where its job went, unless its state is
// in a cell of its own.
function setActs(cell, job, replayed, unsaid) {
  for (const input of all('input[name="run"]', cell)) input.value = String(job.run);
  const said = find(".answer", cell), offered = applies.replay.includes(job.status);
  if (replayed || said?.dataset.run) follow(cell, job);
  else if (said && (said.dataset.at === job.status || !offered)) setText(find("[data-answer-state]", said), ` · ${wordsOf(job)}`);
  else if (!said && unsaid) answer(cell, "answer", upper(wordsOf(job)), job);
  else said?.remove();
  if (offered || !find(".answer", cell)) offer(cell, job);
}

function offer(cell, job) {
  for (const form of all("form[data-act]", cell)) {
    const where = applies[form.dataset.act];
    if (where && !form.dataset.busy) form.hidden = !where.includes(job.status);
  }
}

/** Says how the run of a replay fares: in the place of the buttons, or above them once it failed again. */
function follow(cell, job) {
  let said = find(".answer", cell);
  const at = job.source ? "source" : job.status;
  if (said?.dataset.at !== at || said.dataset.run !== String(job.run)) {
    const [words, named] = fate(job);
    said = answer(cell, "answer", words, named && job);
    Object.assign(said.dataset, { run: String(job.run), at });
    said.classList.toggle("again", ended.includes(job.status));
  }
  if (job.status === "retryable" && job.run_at) next(find("[data-answer-state]", said), job.run_at);
}

/** What to say of a run that a replay began, and whether to name its state beside it. */
function fate({ run, status }) {
  if (status === "retryable") return [`Run ${number(run)} is retrying`];
  if (status === "completed") return [`Run ${number(run)} succeeded`];
  if (ended.includes(status)) return [`Run ${number(run)} failed again`];
  return [`Replayed, run ${number(run)}`, true];
}

function next(place, at) {
  let time = find("time", place);
  if (!time) {
    time = document.createElement("time");
    place.replaceChildren(", next ", time);
  }
  setTime(time, at, "countdown");
}

/** The state of a job; where it is, if its source has it. */
const wordsOf = ({ status, source }) => source ? `at ${source}` : pattern(`badge-${status}`)?.textContent.trim() ?? status.replaceAll("_", " ");
const upper = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** Puts an answer where the buttons were, with the state of a job if it is given. Focus that was on a button moves to it. */
export function answer(cell, name, text, job) {
  const span = pattern(name);
  setText(find("[data-words]", span), text);
  if (job) {
    span.dataset.at = job.status;
    setText(find("[data-answer-state]", span), ` · ${wordsOf(job)}`);
  }
  const focused = cell.contains(document.activeElement);
  for (const form of all("form", cell)) form.hidden = true;
  const before = find(".answer", cell);
  if (before) before.replaceWith(span);
  else (find(":scope > div", cell) ?? cell).append(span);
  if (focused) span.focus({ preventScroll: true });
  return span;
}

// A row that left the filter of its list stays, greyed. The result says so.
function leave(row, job) {
  const states = kept(row);
  if (!states.length) return false;
  return row.classList.toggle("gone", !states.includes(job.status) && !states.includes(job.state));
}

/** The states of the jobs that a row's list is about; none where it is about all. */
const kept = (row) => row.closest("[data-keeps]")?.dataset.keeps.split(" ").filter(Boolean) ?? [];
