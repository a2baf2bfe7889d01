// Actions: every button that changes something is a form that works alone.
// Here it is sent by fetch and answered where it stands. A second click finds
// the form busy; the server would refuse it anyway.

import { all, announce, find, pattern, setText } from "./page.js";
import { closeMenus } from "./menus.js";
import { refreshNow } from "./refresh.js";
import { answer, forget, patch } from "./rows.js";
import { clock } from "./times.js";

const patience = 2000; // milliseconds for a drawing to come
const names = { replay: "replayed", discard: "discarded", cancel: "cancelled", forward: "forwarded", restore: "restored", reschedule: "rescheduled" };

function submit(event) {
  const form = event.target.closest?.("form[data-act]");
  if (!form || form.method === "dialog") return;
  event.preventDefault();
  if (!form.dataset.busy) act(form);
}

async function act(form) {
  const button = find("button", form);
  busy(form, button, true);
  const { code, ok, body, problem } = await post(form.getAttribute("action"), new URLSearchParams(new FormData(form)));
  busy(form, button, false);
  if (ok) succeed(form, body);
  else if (body) refuse(form, code, body, problem);
  else note(form, `${problem} ${code ? "Reload the page to see what happened." : "Try again: nothing runs twice."}`, true);
}

/**
 * Asks the server to change something. Returns the code and the body of its answer, as
 * far as there are any, and what to say when nothing was changed or that is not known.
 */
export async function post(url, fields) {
  let code = 0;
  try {
    const response = await fetch(url, { method: "POST", headers: { Accept: "application/json" }, body: fields });
    code = response.status;
    const body = await response.json();
    if (code === 401) refreshNow(); // says it above, with a way to log in
    const problem = code === 401 ? "Nothing was changed: your login has ended." : body.error?.message ?? `The server answered ${code}.`;
    return { code, ok: response.ok, body, problem };
  } catch {
    return { code, problem: code ? `The server answered ${code} without details.` : "No answer from the server." };
  }
}

function busy(form, button, is) {
  if (is) form.dataset.busy = "true";
  else delete form.dataset.busy;
  button.setAttribute("aria-disabled", String(is));
}

// What is said of an act stays, so it is what was done and not the state to which that
// led, which is next to come.
function succeed(form, body) {
  refreshNow();
  const [text] = (body.text ?? "Done").split(" · ");
  if (form.dataset.act === "flip") return noteLater(form, text);
  if (form.dataset.act === "reset") return location.reload();
  if (body.job) acted(form, body.job, text);
  const groups = body.groups ?? (body.group && [body.group]);
  if (groups || body.job && !answers(form)) unsay(form, text);
  else note(form, text, false);
  if (groups) document.dispatchEvent(new CustomEvent("decided", { detail: { groups, text } }));
  if (body.job && form.dataset.act === "discard" && !hasSource(body.job)) offerUndo(form, body.job);
}

// The queue of a job of a source names the source behind an at sign. Its discard cannot be
// taken back: the source deletes the job, or was never told.
const hasSource = (job) => job.queue.includes("@");

// What is on or off is drawn again, with another line for notes. If no drawing comes, the
// line that is there has to do.
function noteLater(form, text) {
  announce(text);
  const show = () => {
    clearTimeout(timer);
    document.removeEventListener("refreshed", show);
    write(form, text, false);
  };
  const timer = setTimeout(show, patience);
  document.addEventListener("refreshed", show);
}

// A row says what was done in the place of its buttons, and follows what comes of it. A
// toast says what was done. The page of a job is drawn again.
function acted(form, job, text) {
  const { act } = form.dataset, state = job.status ?? job.state;
  closeMenus();
  if (act === "restore") forget(job.id); // it is what it was, with its old time
  const toast = form.closest("[data-toast]");
  if (toast) undone(toast, text);
  else if (act === "forward" && answers(form)) spent(form);
  else if (act !== "replay" && answers(form)) answer(place(form), "answer", text, form.closest("tr") && { status: state });
  patch({ ...job, status: state });
}

/** Reports whether an act is answered where its button was. */
const answers = (form) => !form.closest("[data-job]:not(tr)");

// The way back stands at the foot of the screen, where it moves nothing, until
// the next one takes its place.
function offerUndo(form, job) {
  const toast = pattern("undo"), undo = find("form", toast);
  setText(find("[data-words]", toast), job.type);
  undo.setAttribute("action", form.getAttribute("action").replace(/discard$/, "restore"));
  find('input[name="run"]', undo).value = String(job.run);
  find("[data-toast]")?.remove();
  find("main").append(toast);
  announce("Discarded. Undo is the last button on the page.");
}

// What a toast has taken back is no longer said to be done. It stays where it was.
function undone(toast, text) {
  find("p", toast).firstChild.data = `${text} `;
  toast.tabIndex = -1;
  if (toast.contains(document.activeElement)) toast.focus({ preventScroll: true });
  find("form", toast).hidden = true;
}

// A button that has done its work gives way to the others: a dead letter that
// was accepted can still be replayed.
function spent(form) {
  const focused = form.contains(document.activeElement);
  form.hidden = true;
  if (focused) find("form:not([hidden]) button", place(form))?.focus({ preventScroll: true });
}

// 409 means that another user was first: it says who, and when. Anything else keeps
// the button, and so does a dead letter that was refused again.
function refuse(form, code, body, problem) {
  if (code !== 409 || body.error?.code === "dead_letter_refused") return note(form, problem, true);
  refreshNow(); // the page did not know
  const who = body.replayed_by, when = body.replayed_at ? ` at ${clock(Date.parse(body.replayed_at))}` : "";
  if (answers(form)) answer(place(form), "answer-refused", who ? `By ${who}` : `Not ${names[form.dataset.act] ?? "done"}`);
  note(form, who ? `Not ${names[form.dataset.act]}: ${who} did${when}. Nothing was run twice.` : problem, true);
}

const place = (form) => form.closest('[data-cell="acts"]') ?? form.parentElement;

/** Says a sentence in the nearest line that is kept free for it, and to who listens. */
export function note(form, text, bad) {
  announce(text);
  write(form, text, bad);
}

function write(form, text, bad) {
  const line = lineOf(form);
  if (!line) return;
  line.dataset.said = "";
  line.classList.toggle("warn", bad);
  setText(line, text);
}

// The page of a job, drawn again, shows what was done, and so does an error group in its
// row or on its page. Only what an earlier act has left in its line is out of date.
function unsay(form, text) {
  announce(text);
  delete lineOf(form)?.dataset.said;
}

// The demo's panel is on every page; its lines are for its own switches.
function lineOf(form) {
  const shown = `[data-note]:not([hidden] *)${form.closest(".demo") ? "" : ":not(.demo *)"}`;
  return find(shown, form.closest(`:has(${shown})`) ?? document);
}

// Coming back through the history shows the page as it was left, with its
// forms: none of them may be stuck.
function restore() {
  for (const form of all("form[data-busy]")) busy(form, find("button", form), false);
}

export function start() {
  document.addEventListener("submit", submit);
  addEventListener("pageshow", restore);
}
