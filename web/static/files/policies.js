// The what-if form: while the user types, the part below it follows. The answer
// is the page that the form alone would lead to; the browser parses it as it
// parses a page, and its nodes are moved here. The form is never replaced, so
// the focus never moves.

import { all, announce, find, load, setText } from "./page.js";

const pause = 250; // milliseconds after the last key

const form = find("form[data-what-if]");
let timer = 0, asked = null;

const address = () => `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;

async function update() {
  clearTimeout(timer);
  const url = address();
  asked?.abort();
  asked = new AbortController();
  const { page } = await load(url, asked);
  if (url !== address()) return; // the user kept typing
  if (!page || !find("[data-what-if]", page)) return announce("No answer from the server. Press Show to try again.");
  history.replaceState(null, "", url);
  const wrong = showProblems(page);
  find("[data-result]").classList.toggle("stale", wrong !== "");
  if (wrong) return announce(wrong);
  showResult(page);
}

// What is wrong stands below the fields; the result stays as it was, greyed.
function showProblems(page) {
  let first = "";
  for (const hint of all("[data-problem]")) {
    const answer = find(`[data-problem="${CSS.escape(hint.dataset.problem)}"]`, page);
    const input = find(`[aria-describedby="${CSS.escape(hint.id)}"]`, form);
    const wrong = answer.classList.contains("warn");
    setText(hint, answer.textContent);
    hint.className = answer.className;
    hint.closest(".field").className = answer.closest(".field").className;
    input.setAttribute("aria-invalid", String(wrong));
    if (wrong) first ||= `${input.closest("label").textContent.trim()}: ${answer.textContent}`;
  }
  return first;
}

function showResult(page) {
  const result = find("[data-result]"), open = all("details", result).map((d) => d.open);
  result.replaceChildren(...find("[data-result]", page).childNodes);
  all("details", result).forEach((d, i) => { d.open = open[i] ?? false; });
  announce(find("[data-summary]", result)?.textContent ?? "");
}

/** Starts when the page has the form. */
export function start() {
  form?.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, pause);
  });
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
}
