// Menus: a menu closes when the user clicks elsewhere, presses Escape or has chosen.

import { all, find } from "./page.js";

const open = () => all("details[data-menu][open]");

/** Closes the menus that are open, but for one. */
export function closeMenus(but) {
  for (const menu of open()) if (menu !== but) menu.open = false;
}

function click(event) {
  closeMenus(event.target.closest?.("details[data-menu]"));
}

function escape(event) {
  const [menu] = event.key === "Escape" ? open() : [];
  if (!menu) return;
  closeMenus();
  find("summary", menu).focus();
}

export function start() {
  document.addEventListener("click", click);
  document.addEventListener("keydown", escape);
}
