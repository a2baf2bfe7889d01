// Morph: makes a part of the page equal to what the server draws now, by changing
// only what differs. What did not change keeps its focus, its scroll position and
// the text that is selected in it.
//
// Some things on a page are not the server's to change:
// - rows of lists: those that are shown are redrawn, but none is added, removed
//   or moved while the user reads (a list that was empty is drawn whole);
// - what is marked data-keep, and what a script has put there: answers and notes;
// - what a script has shown since the server was asked (data-ahead): the answer is older;
// - what the user has opened, and typed.

import { all, find } from "./page.js";

const scripted = ".answer, [data-skipped], [data-toast]";
const kept = '[data-keep], [data-said], [data-ahead], [data-busy="true"], form.bulk:not(.idle)';
const own = new Set(["open", "data-changed"]); // attributes that the reader and the scripts add

/** Makes `old` equal to `fresh`, an element of another document. */
export function redraw(old, fresh) {
  if (old.isEqualNode(fresh) || old.matches(kept)) return;
  if (!("list" in old.dataset)) attributes(old, fresh); // a list says which rows it shows
  if (old.localName === "tbody" && [...old.rows].some(key)) rows(old, fresh);
  else children(old, fresh);
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !own.has(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
}

/** What a row is about: a job, or whatever its first link leads to. */
const key = (row) => row.dataset.job ?? find("a[href]", row)?.getAttribute("href");

function rows(old, fresh) {
  const drawn = new Map([...fresh.rows].map((row) => [key(row), row]));
  for (const row of old.rows) if (drawn.has(key(row))) redraw(row, drawn.get(key(row)));
}

function children(old, fresh) {
  const mine = [...old.childNodes].filter((node) => !node.matches?.(scripted)), theirs = [...fresh.childNodes];
  const pairs = match(mine, theirs);
  const paired = new Set(pairs.values());
  // A list that has become empty stays, with its rows greyed and all that belongs to it.
  const stays = theirs.some((node) => !pairs.has(node) && empty(node)) && mine.some((node) => !paired.has(node) && listed(node));
  for (const node of mine) if (!paired.has(node) && !stays) node.remove();
  let place = old.firstChild;
  for (const node of theirs) {
    const partner = pairs.get(node);
    if (partner) {
      place = partner.nextSibling;
      change(partner, node);
    } else if (!stays || !empty(node)) {
      old.insertBefore(document.importNode(node, true), place);
    }
  }
}

const empty = (node) => Boolean(node.matches?.(".empty"));
const listed = (node) => node.nodeType === Node.ELEMENT_NODE && [...all("tbody tr", node)].some(key);

function change(old, fresh) {
  if (old.nodeType === Node.ELEMENT_NODE) redraw(old, fresh);
  else if (old.data !== fresh.data) old.replaceWith(document.importNode(fresh, true)); // another text has not moved
}

/** Pairs children that are the same thing before and after, in their order: from node of `theirs` to node of `mine`. */
function match(mine, theirs) {
  const a = mine.map(name), b = theirs.map(name), pairs = new Map();
  let from = 0, end = 0;
  while (from < Math.min(a.length, b.length) && a[from] === b[from]) from++;
  while (end < Math.min(a.length, b.length) - from && a.at(-1 - end) === b.at(-1 - end)) end++;
  for (let i = 0; i < from; i++) pairs.set(theirs[i], mine[i]);
  for (let i = 1; i <= end; i++) pairs.set(theirs.at(-i), mine.at(-i));
  for (const [i, j] of longest(a.slice(from, a.length - end), b.slice(from, b.length - end))) pairs.set(theirs[from + j], mine[from + i]);
  return pairs;
}

/** The longest common subsequence of two lists of names, as pairs of indexes. */
function longest(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) found.push([i++, j++]);
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return found;
}

// What a node is, as far as it says so: two of one name are the same thing. A line for
// notes is the same line in whichever class: what it said would go with it. A cell is
// what its column is, also when a number in it becomes zero and its class changes.
const names = ["id", "data-job", "data-keep", "data-key", "data-note", "data-when", "aria-labelledby", "aria-label", "action", "href", "for", "name"];

function name(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
  if ("cellIndex" in node) return `${node.localName} ${node.cellIndex}`;
  const said = node.namespaceURI.endsWith("svg") ? null : names.find((attribute) => node.hasAttribute(attribute));
  return `${node.localName} ${said ? node.getAttribute(said) : node.getAttribute("class")}`;
}
