// A list that goes on as one scrolls. Rows come in chunks, and each chunk in parts, one <tbody> each, that the browser lays
// out only where somebody looks (content-visibility); what is off the screen is neither counted down nor asked for. The URL
// follows the rows on top, and how far the list had gone is kept for this tab, so that a reload and the way back lead to the
// same place.
import { showTimes, countOnly } from "./times.js";
import { dialogIsOpen, say } from "./say.js";

const AHEAD = "1600px 0px";
const NEAR = "200px 0px";
const SETTLED_MS = 200;
const ROW_PX = 37;
const DROP_MS = 16;
const STORE = "tocsin.lists";
const KEPT_LISTS_MAX = 12;

const results = () => document.getElementById("results");
// Results that others have replaced stay in the document for a while; what was asked for on their behalf is nobody's then.
export const isShown = (list) => list === results();
// A selector would be compared with every element of thousands of rows.
export const parts = () => [...(results()?.querySelector("table")?.tBodies ?? [])];
// A chunk is what one request has brought. Its first part has its cursor, the others follow.
const heads = () => parts().filter((part) => "cursor" in part.dataset);
function partsOf(chunk) {
  const all = [chunk];
  for (let next = chunk.nextElementSibling; next && "part" in next.dataset; next = next.nextElementSibling) all.push(next);
  return all;
}
const rowCount = (chunk) => partsOf(chunk).reduce((sum, part) => sum + part.rows.length, 0);
const rowsOf = (chunk) => partsOf(chunk).flatMap((part) => [...part.rows]);
function chunkOf(row) {
  let part = row.parentElement;
  while ("part" in part.dataset) part = part.previousElementSibling;
  return part;
}
// Ids of the rows that are here, and of those that the list began with before a reload and that aren't fetched again yet.
export const known = new Set();
export const above = new Set();
// Those of them that this tab would not show any more.
export const left = new Set();
const inView = new Set();
let loading = null;
let shown = 0;
let height = 0;
let settling = 0;

// The rows that somebody sees, or is about to.
export function rowsInView() {
  const places = [...inView].filter((chunk) => chunk.isConnected);
  return (places.length ? places : parts().slice(0, 4)).flatMap((chunk) => [...chunk.rows]).filter((row) => row.dataset.v);
}

// The beginning of the list as far as nothing is missing, for finding what is new: where it starts, its ids, and whether
// rows that the list had follow.
export function head() {
  const all = heads();
  const gap = all.findIndex((chunk) => "rows" in chunk.dataset);
  if (gap === 0) return { cursor: "", ids: above, open: true, last: null };
  const cursor = all[0]?.dataset.cursor ?? "";
  if (gap < 0) {
    // Every row that is here: their ids are known, and no row has to be asked for its.
    const rows = all.length ? partsOf(all.at(-1)).at(-1).rows : [];
    return { cursor, ids: new Set(known), open: "follows" in results().dataset, last: rows[rows.length - 1] };
  }
  const rows = all.slice(0, gap).flatMap(rowsOf);
  return { cursor, ids: new Set(rows.map((row) => row.dataset.id)), open: true, last: rows.at(-1) };
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) { inView.delete(target); continue; }
    inView.add(target);
    showTimes(target);
    if (target.dataset.changed !== results()?.dataset.changed) document.dispatchEvent(new CustomEvent("tocsin:stale"));
  }
}, { rootMargin: NEAR });

const ahead = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    if (target.matches("tbody")) fill(target);
    else goOn();
  }
}, { rootMargin: AHEAD });

// Measured once for a list: asking again would have the browser lay out what it need not yet.
function rowHeight() {
  height ||= document.querySelector("#results tbody tr[data-v]")?.getBoundingClientRect().height;
  return height || ROW_PX;
}

// A chunk takes its place at once, also while the browser does not lay it out.
function reserve(chunk, rows) {
  chunk.style.containIntrinsicBlockSize = `auto ${Math.round(rows * rowHeight())}px`;
}

function adopt(chunk) {
  for (const part of partsOf(chunk)) {
    part.setAttribute("role", "rowgroup");
    for (const row of [...part.rows]) {
      const id = row.getAttribute("data-id");
      if (known.has(id)) row.remove();
      else known.add(id);
    }
    part.dataset.changed = results().dataset.changed;
    reserve(part, part.rows.length);
    shown += part.rows.length;
    near.observe(part);
  }
}

async function fetchRows(link) {
  const answer = await fetch(`/ui/more${link}`, { headers: { "hx-request": "true" } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { parts: [...page.querySelectorAll("tbody")].map((part) => document.adoptNode(part)), follow: document.adoptNode(page.getElementById("follow")) };
}

const count = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");

function showCount() {
  const here = results();
  const words = document.getElementById("shown");
  if (!words) return;
  here.toggleAttribute("data-nothing", !shown);
  const follows = "follows" in here.dataset;
  const text = document.querySelector("#follow[data-searching]") ? `${count(shown)} found so far` : follows ? `Showing ${count(shown)}` : `${count(shown)} ${here.dataset.noun}${shown === 1 ? "" : "s"}`;
  if (words.textContent !== text) words.textContent = text;
}

const isNear = (element) => element.getBoundingClientRect().top < innerHeight + parseInt(AHEAD, 10);

async function goOn() {
  const here = results();
  const table = here?.querySelector("table");
  if (loading === here || !table) return;
  loading = here;
  try {
    for (;;) {
      const link = here.querySelector("#follow a[rel='next']");
      if (!link || shown >= Number(here.dataset.shownMax) || !isNear(link)) break;
      here.setAttribute("aria-busy", "true");
      link.dataset.busy = "";
      if (link.closest("[data-searching]")) link.textContent = "Searching…";
      const { parts, follow } = await fetchRows(link.getAttribute("href"));
      // Other filters may have been chosen meanwhile.
      if (!isShown(here)) break;
      // A search that goes on may have found nothing yet.
      if (parts[0].rows.length) {
        table.append(...parts);
        adopt(parts[0]);
      }
      showTimes(follow);
      here.querySelector("#follow").replaceWith(follow);
      here.toggleAttribute("data-follows", follow.querySelector("a") !== null);
      showCount();
      if (!shown && !follow.querySelector("a")) return nothing(here);
      document.dispatchEvent(new CustomEvent("tocsin:rows"));
      await new Promise(requestAnimationFrame);
    }
    const follow = isShown(here) && here.querySelector("#follow");
    if (follow) ahead.observe(follow);
  } catch {
    const link = isShown(here) && here.querySelector("#follow a");
    if (link) { link.textContent = "Try again"; delete link.dataset.busy; }
    say("The rows that follow could not be fetched.", "failed");
  } finally {
    here.removeAttribute("aria-busy");
    if (loading === here) loading = null;
  }
}

// A search that went on has come to its end without a match.
function nothing(here) {
  here.querySelector("#many").remove();
  here.querySelector("#none").hidden = false;
}

// A chunk above that was shown before the reload: its rows come back when somebody goes there.
async function fill(place) {
  const here = results();
  ahead.unobserve(place);
  try {
    const link = new URL(location);
    link.searchParams.set("rows", place.dataset.rows);
    link.searchParams.delete("cursor");
    if (place.dataset.cursor) link.searchParams.set("cursor", place.dataset.cursor);
    const { parts } = await fetchRows(link.pathname + link.search);
    if (!isShown(here)) return;
    shown -= Number(place.dataset.rows);
    place.replaceWith(...parts);
    adopt(parts[0]);
    showCount();
    settle();
  } catch {
    say("The rows above could not be fetched.", "failed");
    setTimeout(() => { if (isShown(here)) ahead.observe(place); }, 2000);
  }
}

// -- where somebody was

const kept = () => {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(STORE) ?? "[]"));
  } catch {
    return new Map();
  }
};

function name() {
  const here = new URLSearchParams(location.search);
  here.delete("cursor");
  here.delete("did");
  return `${location.pathname}?${here}`;
}

function keep() {
  const here = results();
  if (!here || dialogIsOpen()) return;
  const top = (document.querySelector("#results thead")?.getBoundingClientRect().bottom ?? 0) + 4;
  const all = heads();
  const row = all.length && document.elementFromPoint(innerWidth / 2, top)?.closest("#results tr[data-v]");
  if (!row) return;
  const chunk = chunkOf(row);
  const cursor = chunk.dataset.cursor ?? "";
  const url = new URL(location);
  if ((url.searchParams.get("cursor") ?? "") !== cursor) {
    if (cursor) url.searchParams.set("cursor", cursor);
    else url.searchParams.delete("cursor");
    history.replaceState(history.state, "", url);
  }
  const lists = kept();
  lists.delete(name());
  lists.set(name(), {
    chunks: all.map((each) => [each.dataset.cursor, "rows" in each.dataset ? Number(each.dataset.rows) : rowCount(each)]),
    head: "rows" in all[0].dataset ? [...above] : rowsOf(all[0]).map((each) => each.dataset.id),
    row: row.dataset.id,
    offset: row.getBoundingClientRect().top,
  });
  try {
    sessionStorage.setItem(STORE, JSON.stringify([...lists].slice(-KEPT_LISTS_MAX)));
  } catch {
    // Without room, a reload begins at the rows that the URL names.
  }
}

function settle() {
  clearTimeout(settling);
  settling = setTimeout(keep, SETTLED_MS);
}

function restore(first) {
  const before = kept().get(name());
  const cursor = new URLSearchParams(location.search).get("cursor") ?? "";
  const at = before?.chunks.findIndex(([each]) => each === cursor) ?? -1;
  if (at < 0) return;
  for (const [each, rows] of before.chunks.slice(0, at)) {
    const place = document.createElement("tbody");
    Object.assign(place.dataset, { cursor: each, rows });
    place.style.blockSize = `${Math.round(rows * rowHeight())}px`;
    first.before(place);
    shown += rows;
    ahead.observe(place);
  }
  for (const id of at > 0 ? before.head : []) above.add(id);
  if (at > 0) document.getElementById("first")?.remove();
  const row = rowsOf(first).find((each) => each.dataset.id === before.row);
  const [navigation] = performance.getEntriesByType("navigation");
  if (at > 0 || navigation?.type !== "navigate") {
    scrollBy({ top: row ? row.getBoundingClientRect().top - before.offset : first.getBoundingClientRect().top - 120, behavior: "instant" });
  }
}

// Thousands of rows take a browser too long to drop at once: other results take their place first, and what was there goes a
// few rows at a time, unseen. Returns the place for the others.
function putAway(old) {
  const place = document.createElement("div");
  old.removeAttribute("id");
  // Rows have none, and to look among them takes its time.
  const walk = document.createTreeWalker(old, NodeFilter.SHOW_ELEMENT, (each) => (each.localName === "tbody" ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walk.nextNode()) walk.currentNode.removeAttribute("id");
  place.id = "results";
  // Nothing that the rows inherit changes, or their styles would all be made anew.
  old.classList.add("leaving");
  old.before(place);
  const left = old.querySelector("table")?.tBodies;
  const step = () => {
    const until = performance.now() + DROP_MS;
    // From the end: the rows that came with the page have buttons that submit its form, and for each of those that goes, a
    // browser looks through all that are left.
    while (left?.length && performance.now() < until) left[left.length - 1].remove();
    if (left?.length) requestAnimationFrame(() => setTimeout(step));
    else old.remove();
  };
  setTimeout(() => { old.inert = true; requestAnimationFrame(() => setTimeout(step)); });
  return place;
}

function begin() {
  known.clear();
  above.clear();
  left.clear();
  inView.clear();
  near.disconnect();
  ahead.disconnect();
  shown = height = 0;
  const all = parts().filter((part) => !("part" in part.dataset));
  for (const chunk of all) adopt(chunk);
  if (all.length) restore(all.at(-1));
  showCount();
  const follow = document.getElementById("follow");
  if (follow && all.length) ahead.observe(follow);
}

export function startRows() {
  if (!results()) return;
  history.scrollRestoration = "manual";
  // Never the whole document: what has been put away is still in it.
  countOnly(() => (inView.size ? [...inView] : [results()]));
  begin();
  document.addEventListener("htmx:beforeSwap", (event) => {
    // What was asked for while other results were on their way may aim at those that have gone since.
    if (event.detail.target.matches(".results") && event.detail.shouldSwap) event.detail.target = putAway(results());
  });
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "results" || event.detail.target?.id === "results") begin(); });
  // Of what ends in "…", the whole.
  document.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest?.("#results :is(a.id, .c-to, .c-tags, .c-what)");
    if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent.trim();
  });
  addEventListener("scroll", settle, { passive: true });
  // While a page is being left its URL can't be changed any more, so before.
  document.addEventListener("click", (event) => { if (event.target.closest?.("a")) keep(); }, { capture: true });
  addEventListener("pagehide", keep);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#follow a[rel='next']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || shown >= Number(results().dataset.shownMax) || !results().querySelector("table")) return;
    event.preventDefault();
    goOn();
  });
}
