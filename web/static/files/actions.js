// Actions: every button that changes something is a form that works alone.
// Here it is sent by fetch and answered where it stands. A second click finds
// the form busy; the server would refuse it anyway.

import { all, announce, find, flip, pattern, setText } from "./page.js";
import { closeMenus } from "./menus.js";
import { refreshSoon } from "./refresh.js";
import { answer, forget, patch } from "./rows.js";
import { about, now } from "./times.js";

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

function succeed(form, body) {
  refreshSoon();
  if (form.dataset.act === "flip") return flipped(form, body);
  if (form.dataset.act === "reset") return location.reload();
  const text = body.text ?? "Done";
  if (body.job) {
    const job = body.job;
    if (form.dataset.act === "restore") forget(job.id); // it is what it was, with its old time
    if (form.dataset.act === "forward") spent(form);
    else if (form.dataset.act === "reschedule") closeMenus(); // what can be done is the same
    else if (form.dataset.act !== "replay" || !form.closest("[data-job]")) answer(place(form), "answer", text.split(" · ")[0], job.status ?? job.state);
    patch({ ...job, status: job.status ?? job.state, max_attempts: job.max_attempts ?? job.policy?.max_attempts });
  }
  const groups = body.groups ?? (body.group && [body.group]);
  if (groups) document.dispatchEvent(new CustomEvent("decided", { detail: { groups, text } }));
  note(form, text, false);
  if (body.job && form.dataset.act === "discard") offerUndo(form, body.job);
}

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

// 409 means that somebody was first: who, and when. Anything else keeps the
// button, and so does a dead letter that was refused again.
function refuse(form, code, body) {
  if (code === 401) {
    refreshSoon(); // says it above, with a way to log in
    return note(form, "Nothing was changed: your login has ended.", true);
  }
  const message = body.error?.message ?? `The server answered ${code}.`;
  if (code !== 409 || body.error?.code === "dead_letter_refused") return note(form, message, true);
  const who = body.replayed_by;
  const when = body.replayed_at ? `${about(now() - Date.parse(body.replayed_at))} ago` : "";
  answer(place(form), "answer-refused", who ? `By ${who}` : `Not ${names[form.dataset.act] ?? "done"}`);
  note(form, who ? `Not ${names[form.dataset.act]}: ${who} did, ${when}. Nothing was run twice.` : message, true);
}

function flipped(form, body) {
  const around = form.closest("[data-flips]");
  const state = around.dataset.flips === "on" ? "off" : "on";
  flip(around, state);
  const target = new URL(form.dataset[state], location.href);
  form.setAttribute("action", target.pathname);
  for (const [name, value] of target.searchParams) {
    const input = find(`input[name="${CSS.escape(name)}"]`, form);
    if (input) input.value = value;
  }
  note(form, body.text ?? "Done", false);
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
