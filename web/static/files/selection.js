// Selection: which jobs or error groups are ticked, as a map from id to run that
// lives outside of the rows, one for all pages of a list. A tick means the run that
// was shown when it was set; the server checks each of them again. A group has no
// run. The bar above the list says how many there are and sends them.

import { all, announce, find, number, pattern, setText } from "./page.js";
import { note, post } from "./actions.js";
import { refreshSoon } from "./refresh.js";

const bar = find("form[data-bulk]");
const kinds = bar ? all(".actions button", bar).filter((button) => !button.disabled) : [];
const store = bar && `ticks ${bar.dataset.ticks}`;

let ticks = new Map();
let every = false; // everything that matches, not only what is ticked
let anchor = null; // the row from which a range begins

const rows = () => all("tr:has([data-pick])").filter(key);
const key = ({ dataset }) => dataset.job ?? dataset.group;
const run = ({ dataset }) => Number(dataset.run ?? 0);
const box = (row) => find("[data-pick]", row);

/** Reports whether anything is selected: then order and news are held. */
export const selecting = () => every || ticks.size > 0;

/** Ticks or unticks a row; with `range`, all rows from the last one to it. Returns whether the row has a tick. */
export function toggle(row, range = false) {
  if (!box(row)) return false;
  choose(row, every || !ticks.has(key(row)), range);
  return true;
}

function choose(row, is, range) {
  const list = rows(), from = range && anchor ? list.indexOf(anchor) : -1, to = list.indexOf(row);
  const chosen = from < 0 ? [row] : list.slice(Math.min(from, to), Math.max(from, to) + 1);
  if (every && !is) only(list);
  for (const r of chosen) set(r, is);
  anchor = row;
  changed();
}

// A user who takes one row out of everything is left with the others shown.
function only(list) {
  every = false;
  for (const row of list) set(row, true);
}

function set(row, is) {
  if (!is) ticks.delete(key(row));
  else if (!ticks.has(key(row))) ticks.set(key(row), run(row));
}

function clear() {
  every = false;
  ticks.clear();
  anchor = null;
  changed();
}

function changed() {
  if (selecting()) count();
  else refreshSoon(true); // while it was in use, the bar was not drawn again
  remember();
  show();
  announce(find("[data-bulk-words] > :not([hidden])", bar).textContent.trim());
  document.dispatchEvent(new Event("held"));
}

// The server counts what matches where its totals do not say so, once the user is
// about to need the count. Until then, and where counting takes too long, the words
// have no number.
async function count() {
  const url = bar.dataset.countUrl;
  if (!url) return;
  delete bar.dataset.countUrl;
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.statusText);
    const { count: n, more } = await answer.json();
    if (n === undefined || bar.dataset.countUrl) return; // or the bar was drawn again, as of a later time
    for (const place of all("[data-bulk-total]", bar)) setText(place, more ? `: more than ${number(n)}` : `: ${number(n)}`);
    if (!more) bar.dataset.total = number(n);
    show();
  } catch {
    bar.dataset.countUrl = url; // the next tick asks again
  }
}

function remember() {
  try {
    if (ticks.size) sessionStorage.setItem(store, JSON.stringify([...ticks]));
    else sessionStorage.removeItem(store);
  } catch {
    // storage is blocked or full: the ticks last for this page
  }
}

function recall() {
  try {
    ticks = new Map(JSON.parse(sessionStorage.getItem(store) ?? "[]"));
  } catch {
    ticks = new Map(); // storage is blocked, or holds something else
  }
}

// ---------------------------------------------------------------- showing

function show() {
  const list = rows();
  let skipped = 0, shown = 0;
  for (const row of list) {
    const ticked = every || ticks.has(key(row));
    if (box(row).checked !== ticked) box(row).checked = ticked;
    const skips = ticked && isSkipped(row);
    mark(row, skips);
    skipped += skips ? 1 : 0;
    shown += ticks.has(key(row)) ? 1 : 0;
  }
  showHead(list);
  showBar(skipped, ticks.size - shown);
}

// A job that has moved on to another run, or to a state in which nothing that
// the bar offers applies, is not touched. A group always can be.
function isSkipped(row) {
  if (row.dataset.group) return false;
  const ticked = ticks.get(key(row));
  if (ticked !== undefined && ticked !== run(row)) return true;
  return !find('[data-cell="acts"] form:not([hidden])', row);
}

function mark(row, is) {
  for (const cell of [find('[data-cell="why"]', row), find('[data-cell="acts"] > div', row)]) {
    if (!cell) continue;
    const old = find(":scope > [data-skipped]", cell);
    if (is && !old) cell.append(pattern("skipped"));
    else if (!is) old?.remove();
  }
}

function showHead(list) {
  const head = find("[data-pick-all]");
  const ticked = list.filter((row) => box(row).checked).length;
  head.checked = ticked > 0 && ticked === list.length;
  head.indeterminate = ticked > 0 && ticked < list.length;
}

function showBar(skipped, elsewhere) {
  const used = selecting();
  bar.classList.toggle("idle", !used);
  find("[data-bulk-idle]", bar).hidden = used;
  find("[data-bulk-used]", bar).hidden = !used || every;
  find("[data-bulk-every]", bar).hidden = !every;
  setText(find("[data-bulk-count]", bar), `${number(ticks.size)} selected`);
  setText(find("[data-bulk-more]", bar), more(skipped, elsewhere));
  find("[data-bulk-all]", bar)?.classList.toggle("off", every);
  find("[data-bulk-clear]", bar).classList.toggle("off", !used);
  const n = every ? bar.dataset.total ?? "" : used ? number(ticks.size) : "";
  for (const button of kinds) {
    button.disabled = !used;
    setText(find("[data-bulk-n]", button), `${n}…`);
  }
}

function more(skipped, elsewhere) {
  const parts = [];
  if (elsewhere) parts.push(`${number(elsewhere)} on other pages`);
  if (skipped) parts.push(`${number(skipped)} will be skipped`);
  return parts.length ? `, ${parts.join(", ")}` : "";
}

// ---------------------------------------------------------------- sending

// The answer names the operation, which has a page of its own, or the groups that
// were decided about. Until there is one, the ticks stay.
async function send(event) {
  event.preventDefault();
  if (bar.dataset.busy || !event.submitter || !selecting()) return;
  busy(true);
  const { ok, body, problem } = await post(event.submitter.getAttribute("formaction") ?? bar.getAttribute("action"), fields(event.submitter.value));
  busy(false);
  if (!ok) return note(bar, body ? problem : `${problem} Check Operations before you try again.`, true);
  clear();
  if (body.groups) return document.dispatchEvent(new CustomEvent("decided", { detail: body }));
  location.assign(`${bar.getAttribute("action")}/${body.operation.id}`);
}

function fields(kind) {
  const form = new URLSearchParams({ kind, back: find('input[name="back"]', bar).value });
  if (every) form.set("q", find('input[name="q"]', bar).value);
  else for (const [id, run] of ticks) form.append(...(run ? ["item", `${id}:${run}`] : ["group", id]));
  const to = find('input[name="to"]', bar); // when the list of groups was drawn
  if (to) form.set("to", to.value);
  return form;
}

function busy(is) {
  if (is) bar.dataset.busy = "true";
  else delete bar.dataset.busy;
  for (const button of kinds) button.setAttribute("aria-disabled", String(is));
}

// ------------------------------------------------------------------ start

function click(event) {
  const tick = event.target.closest?.("[data-pick]");
  if (tick) return choose(tick.closest("tr"), tick.checked, event.shiftKey);
  if (event.target.closest?.("[data-bulk-clear]")) return clear();
  if (event.target.closest?.("[data-bulk-all]")) {
    every = true;
    changed();
  }
}

function tickShown(event) {
  const is = event.target.checked;
  every = false;
  for (const row of rows()) if (!is || !row.classList.contains("gone")) set(row, is);
  changed();
}

function restore() {
  busy(false);
  recall();
  show();
}

export function start() {
  if (!bar) return;
  restore();
  document.addEventListener("click", click);
  bar.addEventListener("submit", send);
  find("[data-pick-all]").addEventListener("change", tickShown);
  addEventListener("pageshow", (event) => event.persisted && restore());
  document.addEventListener("refreshed", show);
  // What becomes of a row is patched into it; a tick may then mean nothing more.
  new MutationObserver(() => selecting() && show()).observe(find("table:has([data-pick])"),
    { subtree: true, attributes: true, attributeFilter: ["data-run"] });
}
