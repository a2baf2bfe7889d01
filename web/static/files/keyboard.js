// Keys: j and k walk the rows, the rest are shortcuts to what the page offers.
// They never fire while the user types, and never together with a modifier.

import { all, find } from "./page.js";
import { note } from "./actions.js";
import { toggleFreeze } from "./live.js";
import { toggle } from "./selection.js";

const pages = {
  o: "overview", f: "failures", d: "dead-letters", m: "operations", t: "trash",
  j: "jobs", q: "queues", s: "sources", w: "workers", p: "policies", r: "retention", a: "audit",
};
const goWindow = 1500; // milliseconds between g and its second key, as they were pressed: a busy page sees them late

let goUntil = 0;
let before = null; // what had the focus before the search field

const row = "tr:is([data-job], [data-group], [data-operation])";
const rows = () => all(row).filter((row) => row.checkVisibility());
const current = () => document.activeElement?.closest?.(row) ?? null;

function step(by) {
  const list = rows();
  if (!list.length) return;
  const at = list.indexOf(current());
  const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1);
  find("a", list[next])?.focus();
}

// An action means the row that one is on, or the page when it has only one.
function act(name) {
  const scope = current() ?? (all(`form[data-act="${name}"]`).length === 1 ? document : null);
  const form = scope && find(`form:is([data-act="${name}"], [data-key="${name}"]):not([hidden])`, scope);
  if (form && !find("button", form).disabled) form.requestSubmit();
}

function edit() {
  if (current()?.dataset.group) return act("resolve"); // what is done with a group most
  if (current()?.dataset.operation) return;
  const link = current() ? find("[data-edit]", current()) ?? find("th a", current()) : find("main a[data-edit]");
  if (!link) return;
  location.assign("edit" in link.dataset ? link.href : `${link.href}/replay`);
}

function tick(range) {
  const row = current();
  if (!row || toggle(row, range)) return;
  note(row, row.closest("[data-tickless]")?.dataset.tickless ?? "Rows of this list cannot be selected.", true);
}

function search() {
  before = document.activeElement;
  find('.search input[type="search"]')?.focus();
}

// A user who leaves a field with Escape keeps what is in it, and goes on where they came from.
function leave(field) {
  field.blur();
  if (field.type === "search") before?.focus();
  before = null;
}

function go(key) {
  const link = find(`.side a[data-section="${pages[key]}"]`);
  if (link) location.assign(link.href);
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  x: () => tick(false),
  X: () => tick(true),
  r: () => act("replay"),
  d: () => act("discard"),
  e: edit,
  "/": search,
  g: (event) => { goUntil = event.timeStamp + goWindow; },
  ".": toggleFreeze,
  "?": () => find("dialog[data-keys]")?.showModal(),
};

const typing = (target) => target.closest?.('input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable]');

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && "rdex".includes(event.key)) return;
  if (typing(event.target)) {
    if (event.key === "Escape" && !find(":popover-open")) {
      event.preventDefault();
      leave(event.target);
    }
    return;
  }
  if (find("dialog[open], :popover-open")) return;
  const going = event.timeStamp < goUntil;
  goUntil = 0;
  if (going && event.key in pages) {
    event.preventDefault();
    go(event.key);
  } else if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key](event);
  }
}

export function start() {
  document.addEventListener("keydown", press);
}
