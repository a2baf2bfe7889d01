// The theme: light, dark, or as the system. This is no module: it runs at once, in
// the head, so that a page is never drawn in the wrong theme first.
(() => {
  "use strict";
  const root = document.documentElement;
  const order = ["system", "light", "dark"];

  function stored() {
    try {
      const theme = localStorage.getItem("theme");
      return order.includes(theme) ? theme : "system";
    } catch {
      return "system"; // storage is blocked: the system's theme it is
    }
  }

  function apply(theme) {
    if (theme === "system") root.removeAttribute("data-theme");
    else root.dataset.theme = theme;
  }

  function say(button, theme) {
    const text = `Theme: ${theme}`;
    button.title = text;
    button.setAttribute("aria-label", text);
  }

  apply(stored());

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-switch]");
    if (!button) return;
    let theme = stored();
    say(button, theme);
    button.addEventListener("click", () => {
      theme = order[(order.indexOf(theme) + 1) % order.length];
      apply(theme);
      say(button, theme);
      try {
        localStorage.setItem("theme", theme);
      } catch {
        // storage is blocked: the choice lasts for this page
      }
    });
  });
})();
