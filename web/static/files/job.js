// The page of one job: it says in its bar when the job has moved on, and it
// copies its link.

import { copied } from "./copy.js";
import { all, announce, find } from "./page.js";

// rows.js keeps the run and the time of the newest change in the attributes of
// everything that shows a job. What is on this page stays as it is; the bar has
// its place from the beginning.
function watch(head) {
  const stand = () => `${head.dataset.run} ${Date.parse(head.dataset.changed)}`;
  const drawn = stand();
  const observer = new MutationObserver(() => {
    if (stand() === drawn) return;
    observer.disconnect();
    const link = find("[data-moved]");
    link.hidden = false;
    link.parentElement.classList.remove("idle");
    announce(link.textContent.trim());
  });
  observer.observe(head, { attributes: true, attributeFilter: ["data-run", "data-changed"] });
}

async function copyLink(event) {
  event.preventDefault();
  const link = event.currentTarget;
  if (!(await copied(link, link.href))) location.assign(link.href);
}

/** Starts when the page shows a job. */
export function start() {
  const head = find("[data-moves]");
  if (head) watch(head);
  for (const link of all("[data-copy-link]")) link.addEventListener("click", copyLink);
}
