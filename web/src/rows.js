// Infinite scrolling. Rows come in chunks, and each chunk in parts, one <tbody> each, which the browser lays out only in or
// near the viewport (content-visibility); rows outside it are neither counted down nor refreshed. The URL follows the topmost
// rows, and the session storage remembers the loaded chunks, so that reloading and going back restore the position.
import { showTimes, countOnly } from "./times.js";
import { dialogIsOpen, showToast } from "./toast.js";

const AHEAD = "1600px 0px";
const NEAR = "200px 0px";
const SETTLED_MS = 200;
const ROW_PX = 37;
const DROP_MS = 16;
const STORE = "tocsin.lists";
const KEPT_LISTS_MAX = 12;

const results = () => document.getElementById("results");
// What names a row: in a list of several namespaces an id may occur more than once.
export const keyOf = (row) => row.dataset.key ?? row.dataset.id;
// Replaced results stay in the document for a while; responses to their requests are ignored.
export const isShown = (list) => list === results();
// Faster than a selector, which the browser would compare with every element of thousands of rows.
export const parts = () => [...(results()?.querySelector("table")?.tBodies ?? [])];
// A chunk is the result of one request. Its first part has the cursor; the others follow.
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
// `known`: ids of the rows on the page. `above`: ids at the start of the list before a reload that are not fetched again yet.
export const known = new Set();
export const above = new Set();
// Ids of rows that no longer belong on this tab.
export const left = new Set();
const inView = new Set();
let loading = null;
let shown = 0;
let height = 0;
let settling = 0;

// The rows in the viewport or near it.
export function rowsInView() {
  const places = [...inView].filter((chunk) => chunk.isConnected);
  return (places.length ? places : parts().slice(0, 4)).flatMap((chunk) => [...chunk.rows]).filter((row) => row.dataset.v);
}

// Whether something in view was last refreshed before the latest change.
export const anyStale = () => [...inView].some((part) => part.isConnected && part.dataset.changed !== results()?.dataset.changed);

// The start of the list up to the first missing chunk, for finding new rows: its cursor, its ids, and whether more rows
// follow.
export function head() {
  const all = heads();
  const gap = all.findIndex((chunk) => "rows" in chunk.dataset);
  if (gap === 0) return { cursor: "", ids: above, open: true, last: null };
  const cursor = all[0]?.dataset.cursor ?? "";
  if (gap < 0) {
    // All chunks are loaded, so `known` has the ids.
    const rows = all.length ? partsOf(all.at(-1)).at(-1).rows : [];
    return { cursor, ids: new Set(known), open: "follows" in results().dataset, last: rows[rows.length - 1] };
  }
  const rows = all.slice(0, gap).flatMap(rowsOf);
  return { cursor, ids: new Set(rows.map(keyOf)), open: true, last: rows.at(-1) };
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) { inView.delete(target); continue; }
    inView.add(target);
    showTimes(target);
  }
  if (anyStale()) document.dispatchEvent(new CustomEvent("tocsin:stale"));
}, { rootMargin: NEAR });

const ahead = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    if (target.matches("tbody")) fill(target);
    else goOn();
  }
}, { rootMargin: AHEAD });

// Takes a row out of the list.
export function drop(row) {
  const id = keyOf(row);
  known.delete(id);
  left.delete(id);
  row.remove();
  shown -= 1;
  showCount();
}

// Measured once per list: measuring again would force a layout.
function rowHeight() {
  height ||= document.querySelector("#results tbody tr[data-v]")?.getBoundingClientRect().height;
  return height || ROW_PX;
}

// Reserves a chunk's height before the browser lays it out.
function reserve(chunk, rows) {
  chunk.style.containIntrinsicBlockSize = `auto ${Math.round(rows * rowHeight())}px`;
}

function adopt(chunk) {
  for (const part of partsOf(chunk)) {
    part.setAttribute("role", "rowgroup");
    for (const row of [...part.rows]) {
      const id = keyOf(row);
      if (known.has(id)) row.remove();
      else known.add(id);
    }
    // Of an incomplete list each row is fetched once more when it comes into view.
    part.dataset.changed = "incomplete" in results().dataset ? "" : results().dataset.changed;
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
      // The filters may have changed meanwhile.
      if (!isShown(here)) break;
      // An unfinished search may have found nothing yet.
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
    showToast("The next rows could not be loaded.", "failed");
  } finally {
    here.removeAttribute("aria-busy");
    if (loading === here) loading = null;
  }
}

// The search has ended without a match.
function nothing(here) {
  here.querySelector("#many").remove();
  here.querySelector("#none").hidden = false;
}

// Loads a chunk above that was shown before a reload, when the user scrolls there.
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
    showToast("The rows above could not be loaded.", "failed");
    setTimeout(() => { if (isShown(here)) ahead.observe(place); }, 2000);
  }
}

// -- the scroll position

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
    head: "rows" in all[0].dataset ? [...above] : rowsOf(all[0]).map(keyOf),
    row: keyOf(row),
    offset: row.getBoundingClientRect().top,
  });
  try {
    sessionStorage.setItem(STORE, JSON.stringify([...lists].slice(-KEPT_LISTS_MAX)));
  } catch {
    // If the storage is full, a reload starts at the rows that the URL names.
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
  const row = rowsOf(first).find((each) => keyOf(each) === before.row);
  const [navigation] = performance.getEntriesByType("navigation");
  if (at > 0 || navigation?.type !== "navigate") {
    scrollBy({ top: row ? row.getBoundingClientRect().top - before.offset : first.getBoundingClientRect().top - 120, behavior: "instant" });
  }
}

// Removing thousands of rows at once would block the browser: the new results take their place first, and the old rows are
// removed a few at a time, out of sight. Returns the element for the new results.
function putAway(old) {
  const place = document.createElement("div");
  old.removeAttribute("id");
  // Rows have no ids, and searching them takes long.
  const walk = document.createTreeWalker(old, NodeFilter.SHOW_ELEMENT, (each) => (each.localName === "tbody" ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walk.nextNode()) walk.currentNode.removeAttribute("id");
  place.id = "results";
  // The class changes no inherited property, which would recompute the styles of all rows.
  old.classList.add("leaving");
  old.before(place);
  const left = old.querySelector("table")?.tBodies;
  const step = () => {
    const until = performance.now() + DROP_MS;
    // From the end: the first rows have submit buttons, and for each one removed a browser walks all that remain.
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
  // Never the whole document, which still contains old rows.
  countOnly(() => (inView.size ? [...inView] : [results()]));
  begin();
  document.addEventListener("htmx:beforeSwap", (event) => {
    // A response may target results that have been replaced since its request.
    if (event.detail.target.matches(".results") && event.detail.shouldSwap) event.detail.target = putAway(results());
  });
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "results" || event.detail.target?.id === "results") begin(); });
  // Shows truncated text in full on hover.
  document.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest?.("#results :is(a.id, .c-to, .c-tags, .c-what)");
    if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent.trim();
  });
  addEventListener("scroll", settle, { passive: true });
  // The URL can't be changed while the page unloads, so the position is saved before.
  document.addEventListener("click", (event) => { if (event.target.closest?.("a")) keep(); }, { capture: true });
  addEventListener("pagehide", keep);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#follow a[rel='next']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || shown >= Number(results().dataset.shownMax) || !results().querySelector("table")) return;
    event.preventDefault();
    goOn();
  });
}
