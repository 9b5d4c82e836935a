// Ctrl-K: go to a page, act, or look up any id in all namespaces.
import { ask, dialogIsOpen } from "./toast.js";

const WAIT_MS = 120;
const SHOWN_MAX = 12;
let dialog, input, list, words;
let entries = [];
let found = [];
let at = 0;
let asked = 0;
let waiting = 0;

// What the page itself knows: the rail's pages, and the actions.
function known() {
  const pages = [...document.querySelectorAll(".rail-nav a")].map((link) => ({ name: link.textContent.trim(), what: "page", href: link.getAttribute("href") }));
  const may = (path) => document.querySelector(`.rail-nav a[href^="${path}"]`);
  const scope = document.querySelector(".rail-nav a[data-scoped]")?.search ?? "";
  const made = [["New timer", "/timers"], ["New schedule", "/schedules"], ["New call", "/calls"], ["New monitor", "/monitors"]].filter(([, path]) => may(path)).map(([name, path]) => ({ name, what: "action", href: `${path}/new${path === "/calls" ? "" : scope}` }));
  const acts = [["Switch between light and dark", "theme"], ["Show keyboard shortcuts", "help"]].map(([name, act]) => ({ name, what: "action", act }));
  return [...pages, ...made, ...acts];
}

// Every word must begin some word of the entry's name.
function matches(entry, text) {
  const name = entry.name.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => name.startsWith(word) || name.includes(` ${word}`));
}

function span(text, kind) {
  const part = document.createElement("span");
  part.textContent = text;
  if (kind) part.className = kind;
  return part;
}

function draw() {
  at = Math.min(at, Math.max(entries.length - 1, 0));
  list.replaceChildren(...entries.map((entry, index) => {
    const item = document.createElement("li");
    Object.assign(item, { id: `palette-${index}` });
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(index === at));
    const link = document.createElement("a");
    link.href = entry.href ?? "#";
    link.tabIndex = -1;
    const name = document.createElement("b");
    name.textContent = entry.name;
    if (entry.state !== undefined) name.className = "mono";
    link.append(name, ...(entry.state ? [span(entry.state)] : []), span([entry.what, entry.where].filter(Boolean).join(", ")));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(entry);
    });
    item.append(link);
    return item;
  }));
  input.setAttribute("aria-activedescendant", entries.length ? `palette-${at}` : "");
  list.children[at]?.scrollIntoView({ block: "nearest" });
}

function go(entry) {
  dialog.close();
  if (entry.href) location.assign(entry.href);
  else document.querySelector(`.rail [data-act="${entry.act}"]`)?.click();
}

function choose() {
  const text = input.value.trim();
  const own = text ? known().filter((each) => matches(each, text)) : known();
  entries = [...found, ...own].slice(0, SHOWN_MAX);
  draw();
}

// Asks the server for what has this id; answers to earlier texts are ignored.
async function find(text) {
  const turn = (asked += 1);
  let left = "";
  try {
    const reply = await (await ask(`/ui/find?q=${encodeURIComponent(text)}`)).json();
    left = reply.found.length ? "" : `Nothing found. ${reply.left_out}`;
    if (turn === asked) found = reply.found;
  } catch (answer) {
    left = answer instanceof Response ? "Ids could not be looked up." : "The server does not respond.";
  }
  if (turn !== asked || !dialog.open) return;
  words.textContent = left;
  choose();
}

function type() {
  const text = input.value.trim();
  found = [];
  at = 0;
  words.textContent = "";
  asked += 1;
  clearTimeout(waiting);
  choose();
  if (text) waiting = setTimeout(() => find(text), WAIT_MS);
}

export function openPalette() {
  if (dialogIsOpen()) return;
  dialog.showModal();
  input.value = "";
  type();
}

export function startPalette() {
  dialog = document.getElementById("palette");
  if (!dialog) return;
  [input, list, words] = ["input", "ul", "p"].map((name) => dialog.querySelector(name));
  input.addEventListener("input", type);
  input.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && entries.length) {
      event.preventDefault();
      at = (at + by + entries.length) % entries.length;
      draw();
    } else if (event.key === "Enter" && entries[at]) {
      event.preventDefault();
      go(entries[at]);
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    openPalette();
  });
}
