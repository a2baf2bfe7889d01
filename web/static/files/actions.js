// Actions: every button that changes something is a form that works alone.
// Here it is sent by fetch and answered where it stands. A second click finds
// the form busy; the server would refuse it anyway.

import { all, announce, find, flip, pattern, setText } from "./page.js";
import { closeMenus } from "./menus.js";
import { refreshNow } from "./refresh.js";
import { answer, forget, patch } from "./rows.js";
import { clock } from "./times.js";

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
  let response, body;
  try {
    response = await fetch(form.getAttribute("action"), {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams(new FormData(form)),
    });
    body = await response.json();
  } catch {
    busy(form, button, false);
    return note(form, response
      ? `The server answered ${response.status} without details. Reload the page to see what happened.`
      : "No answer from the server. Try again: nothing runs twice.", true);
  }
  busy(form, button, false);
  if (response.ok) succeed(form, body);
  else refuse(form, response.status, body);
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
  if (form.dataset.act === "flip") return flipped(form, text);
  if (form.dataset.act === "reset") return location.reload();
  if (body.job) acted(form, body.job, text);
  const groups = body.groups ?? (body.group && [body.group]);
  if (groups) document.dispatchEvent(new CustomEvent("decided", { detail: { groups, text } }));
  note(form, text, false);
  if (body.job && form.dataset.act === "discard") offerUndo(form, body.job);
}

// A row says what was done in the place of its buttons, and follows what comes of it. A
// toast says what was done. The page of a job is drawn again.
function acted(form, job, text) {
  const { act } = form.dataset, state = job.status ?? job.state;
  closeMenus();
  if (act === "restore") forget(job.id); // it is what it was, with its old time
  if (act === "forward" && answers(form)) spent(form);
  else if (act !== "replay" && answers(form)) answer(place(form), "answer", text, form.closest("tr") && state);
  patch({ ...job, status: state, max_attempts: job.max_attempts ?? job.policy?.max_attempts });
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

// A button that has done its work gives way to the others: a dead letter that
// was accepted can still be replayed.
function spent(form) {
  const focused = form.contains(document.activeElement);
  form.hidden = true;
  if (focused) find("form:not([hidden]) button", place(form))?.focus({ preventScroll: true });
}

/** What to say of a request that was refused. That a login has ended is said above as well, with a way to log in. */
export function refusal(code, body) {
  if (code === 401) refreshNow();
  return code === 401 ? "Nothing was changed: your login has ended." : body.error?.message ?? `The server answered ${code}.`;
}

// 409 means that somebody was first: who, and when. Anything else keeps the
// button, and so does a dead letter that was refused again.
function refuse(form, code, body) {
  const message = refusal(code, body);
  if (code !== 409 || body.error?.code === "dead_letter_refused") return note(form, message, true);
  refreshNow(); // the page did not know
  const who = body.replayed_by, when = body.replayed_at ? ` at ${clock(Date.parse(body.replayed_at))}` : "";
  if (answers(form)) answer(place(form), "answer-refused", who ? `By ${who}` : `Not ${names[form.dataset.act] ?? "done"}`);
  note(form, who ? `Not ${names[form.dataset.act]}: ${who} did${when}. Nothing was run twice.` : message, true);
}

// The note comes last: it stands in the part that is shown then.
function flipped(form, text) {
  const around = form.closest("[data-flips]");
  if (around.matches("tr, li")) turn(around, form); // else the page is about it, and drawn again
  note(form, text, false);
}

function turn(around, form) {
  const state = around.dataset.flips === "on" ? "off" : "on";
  around.dataset.ahead = "";
  flip(around, state);
  const target = new URL(form.dataset[state], location.href);
  form.setAttribute("action", target.pathname);
  for (const [name, value] of target.searchParams) {
    const input = find(`input[name="${CSS.escape(name)}"]`, form);
    if (input) input.value = value;
  }
}

const place = (form) => form.closest('[data-cell="acts"]') ?? form.parentElement;

/** Says a sentence in the nearest line that is kept free for it, and to who listens. */
export function note(form, text, bad) {
  announce(text);
  const shown = "[data-note]:not([hidden] *)";
  const line = find(shown, form.closest(`:has(${shown})`) ?? document);
  if (!line) return;
  line.dataset.said = "";
  line.classList.toggle("warn", bad);
  setText(line, text);
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
