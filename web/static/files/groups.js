// Error groups: a group that a person resolved, ignored or opened again stays in
// its row, greyed, and says so. A toast takes the last decision back.

import { announce, all, find, pattern, setText } from "./page.js";
import { refreshNow } from "./refresh.js";
import { answer } from "./rows.js";

const table = find("[data-group-state]");

function decided({ detail: { groups, text } }) {
  refreshNow(); // the numbers of the states
  find("[data-toast]")?.remove();
  const away = groups.filter((group) => show(group));
  if (away.length) offerUndo(away, text);
}

/** Shows a group in its row; reports whether it has left the list. */
function show({ fingerprint, state }) {
  const row = find(`tr[data-group="${CSS.escape(fingerprint)}"]`, table);
  const away = state !== table.dataset.groupState;
  if (!row) return away;
  const cell = find('[data-cell="acts"]', row);
  row.classList.toggle("gone", away);
  if (away) {
    answer(cell, "answer", state.charAt(0).toUpperCase() + state.slice(1));
  } else {
    find(".answer", cell)?.remove();
    for (const form of all("form", cell)) form.hidden = false;
  }
  return away;
}

function offerUndo(groups, text) {
  const toast = pattern("undo-groups");
  if (!toast) return;
  setText(find("[data-words]", toast), text);
  for (const { fingerprint } of groups) {
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name: "group", value: fingerprint });
    find("form", toast).append(input);
  }
  find("main").append(toast);
  announce(`${text}. Undo is the last button on the page.`);
}

export function start() {
  if (table) document.addEventListener("decided", decided);
}
