// Infinite scrolling. Rows come in chunks, one for each request, and each chunk in parts, one <tbody> each, which the browser lays
// out only in or near the viewport (content-visibility); rows outside it are neither counted down nor refreshed. The URL names the
// topmost chunk; the session storage remembers the chunks before it and the topmost row, so that reloading and going back restore
// the position.
import { count, countOnly, showTimes } from "./times.js";
import { counted, dialogIsOpen, load, number, showToast } from "./toast.js";

const AHEAD = "2400px 0px";
const NEAR = "200px 0px";
const SETTLED_MS = 200;
const DROP_MS = 16;
const STORE = "tocsin.lists";
const KEPT_LISTS_MAX = 12;

export const results = () => document.getElementById("results");
// The rows on the page, by key: in a list of several namespaces an id may occur more than once.
export const rows = new Map();
// Faster than a selector, which the browser would compare with every element of thousands of rows.
export const parts = () => [...(results()?.querySelector("table")?.tBodies ?? [])];
// The rows in their order, one after another: who wants the first ones does not touch thousands.
function* listed() {
  for (const part of parts()) yield* part.rows;
}
export const nextLink = () => document.querySelector("#follow a[rel='next']");
const cursorOf = (part) => part?.dataset.cursor ?? "";
// The rows that have left the tab: they are shown, but are not part of the list any more.
export const gone = new Set();
const staying = () => rows.size - gone.size;
const isFull = () => staying() >= Number(results().dataset.shownMax);
const inView = new Set();
// The cursors of the chunks before the first one on the page, and the key of the list's first row then.
let above = [];
let first = "";
let settling = 0;
let marked = null;

// The parts in the viewport or near it; before the browser has reported any, the first ones.
export function partsInView() {
  const shown = [...inView].filter((part) => part.isConnected);
  return shown.length ? shown : parts().slice(0, 4);
}

// Where to look for new rows: after the cursor of the rows on the page or, if rows above are missing, at the start of the list.
// `known`: the first ones there, at most so many. `whole`: there are no others.
export function start(most) {
  if (above.length) return { cursor: "", known: [first], whole: "no" };
  return { cursor: cursorOf(parts()[0]), known: firstKeys(most), whole: nextLink() || staying() > most ? "no" : "yes" };
}

function firstKeys(most) {
  const keys = [];
  for (const row of listed()) {
    if (keys.length === most) break;
    if (!gone.has(row)) keys.push(row.dataset.key);
  }
  return keys;
}

export function markLeft(row, whether) {
  row.toggleAttribute("data-left", whether);
  if (whether) gone.add(row);
  else gone.delete(row);
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) inView.add(target);
    else inView.delete(target);
    if (isIntersecting) count(target);
  }
  document.dispatchEvent(new CustomEvent("tocsin:view"));
}, { rootMargin: NEAR });

const ahead = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) extend(target);
}, { rootMargin: AHEAD });

// Reports each end of the list that is near now, and later when it comes near.
function watch() {
  ahead.disconnect();
  // A selector for both would be compared with every element.
  for (const id of ["first", "follow"]) {
    const end = document.getElementById(id);
    if (end) ahead.observe(end);
  }
}

// In a list by due time, marks the first row that is not due, unless the list begins with it. A selector would have to look at all
// rows before.
export function markNext() {
  if (!results().querySelector("table")?.matches(".grouped")) return;
  let before = false;
  let next = null;
  for (const row of listed()) {
    if (row.parentElement.matches(".exact")) continue;
    if (row.matches("[data-tab~='next']")) { next = row; break; }
    before = true;
  }
  marked?.classList.remove("first-next");
  marked = before ? next : null;
  marked?.classList.add("first-next");
}

function adopt(part) {
  const list = results().dataset;
  for (const row of [...part.rows]) {
    if (rows.has(row.dataset.key)) row.remove();
    else rows.set(row.dataset.key, row);
  }
  // Of an incomplete list each row is fetched once more when it comes into view.
  part.dataset.news = "incomplete" in list ? "none" : list.news ?? "";
  near.observe(part);
}

export function showCount() {
  const words = document.getElementById("shown");
  if (!words) return;
  if (document.querySelector("#follow[data-searching]")) words.textContent = `${number(staying())} found so far`;
  else words.textContent = nextLink() ? `Showing ${number(staying())}` : counted(staying(), results().dataset.noun);
}

// Loads the rows below, or those above that were shown before a reload.
async function extend(end) {
  const list = results();
  const below = end.id === "follow";
  const link = end.querySelector("a[rel='next']");
  if (list.extending || (below ? !link || isFull() : !above.length)) return;
  list.extending = true;
  // The same attribute on the list would have the browser compare each row with the rules.
  end.setAttribute("aria-busy", "true");
  const url = new URL(below ? link.href : list.dataset.link, location);
  if (!below) url.searchParams.set("cursor", above.at(-1));
  if (below && "searching" in end.dataset) link.textContent = "Searching…";
  try {
    const page = await load(`/ui/more${url.pathname}${url.search}`);
    // The filters may have changed meanwhile.
    if (list !== results()) return;
    // Before the browser lays the rows out.
    showTimes(page);
    add([...page.querySelectorAll("tbody")].filter((part) => part.rows.length), below);
    if (below) end.replaceWith(page.getElementById("follow"));
    else above.pop();
    if (!below && !above.length) end.remove();
    showCount();
    watch();
  } catch {
    if (below) link.textContent = "Try again";
    showToast(`The ${below ? "next rows" : "rows above"} could not be loaded.`, "failed");
  } finally {
    list.extending = false;
    end.removeAttribute("aria-busy");
  }
}

function add(added, below) {
  const [top] = parts();
  const before = top?.getBoundingClientRect().top;
  if (below) results().querySelector("table").append(...added);
  else top.before(...added);
  for (const part of added) adopt(part);
  markNext();
  document.dispatchEvent(new CustomEvent("tocsin:rows"));
  // What is in view stays where it is.
  if (!below) scrollBy({ top: top.getBoundingClientRect().top - before, behavior: "instant" });
}

// -- the scroll position

const kept = () => new Map(JSON.parse(sessionStorage.getItem(STORE)));

// The row at the upper edge, below whatever lies over the list there, such as a message.
function topmost() {
  const top = (document.querySelector("#results thead")?.getBoundingClientRect().bottom ?? 0) + 4;
  const hit = document.elementsFromPoint(innerWidth / 2, top).find((each) => each.closest("#results tr[data-v]"));
  return hit?.closest("#results tr[data-v]");
}

function keep() {
  if (!results() || dialogIsOpen()) return;
  const row = topmost();
  if (!row) return;
  const url = new URL(location);
  if (cursorOf(row.parentElement)) url.searchParams.set("cursor", cursorOf(row.parentElement));
  else url.searchParams.delete("cursor");
  if (url.href !== location.href) history.replaceState(history.state, "", url);
  const lists = kept();
  const { link } = results().dataset;
  lists.delete(link);
  lists.set(link, {
    cursors: [...above, ...new Set(parts().map(cursorOf))],
    first: above.length ? first : firstKeys(1)[0] ?? "",
    row: row.dataset.key,
    offset: row.getBoundingClientRect().top,
  });
  sessionStorage.setItem(STORE, JSON.stringify([...lists].slice(-KEPT_LISTS_MAX)));
}

function restore() {
  const before = kept().get(results().dataset.link);
  const at = before?.cursors.indexOf(new URLSearchParams(location.search).get("cursor") ?? "") ?? -1;
  if (at < 0) return;
  above = before.cursors.slice(0, at);
  first = before.first;
  const row = rows.get(before.row);
  const [navigation] = performance.getEntriesByType("navigation");
  if (row && navigation?.type !== "navigate") scrollBy({ top: row.getBoundingClientRect().top - before.offset, behavior: "instant" });
}

// Without this, htmx, which walks over each element, took 29 s to replace 10,000 rows. So the new results take the place
// first, and the old rows are removed a few at a time, out of sight. Returns the element for the new results.
function putAway(old) {
  const place = document.createElement("div");
  for (const each of [old, ...old.querySelectorAll("[id]")]) each.removeAttribute("id");
  place.id = "results";
  old.classList.add("leaving");
  old.before(place);
  const left = [...(old.querySelector("table")?.tBodies ?? [])];
  const step = () => {
    const until = performance.now() + DROP_MS;
    old.inert = true;
    // From the end: the first rows have submit buttons, and for each one removed a browser walks all that remain.
    while (left.length && performance.now() < until) left.pop().remove();
    if (left.length) setTimeout(step);
    else old.remove();
  };
  setTimeout(step);
  return place;
}

function begin() {
  rows.clear();
  gone.clear();
  inView.clear();
  near.disconnect();
  above = [];
  for (const part of parts()) adopt(part);
  markNext();
  showCount();
  watch();
}

export function startRows() {
  if (!results()) return;
  history.scrollRestoration = "manual";
  countOnly(partsInView);
  begin();
  restore();
  document.addEventListener("htmx:beforeSwap", (event) => {
    // A response may target results that have been replaced since its request.
    if (event.detail.target.matches(".results") && event.detail.shouldSwap) event.detail.target = putAway(results());
  });
  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target?.id === "results") begin(); });
  // Shows truncated text in full on hover.
  document.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest?.("#results :is(a.id, .c-to, .c-tags, .c-what)");
    if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent.trim();
  });
  // Not scrollend: while parts come into view their heights change, and the browser moves the page without such an event.
  addEventListener("scroll", () => { clearTimeout(settling); settling = setTimeout(keep, SETTLED_MS); }, { passive: true });
  // The URL can't be changed while the page unloads, so the position is saved before.
  document.addEventListener("click", (event) => { if (event.target.closest?.("a")) keep(); }, { capture: true });
  addEventListener("pagehide", keep);
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#follow a[rel='next']") || event.ctrlKey || event.metaKey || event.shiftKey || isFull() || !parts().length) return;
    event.preventDefault();
    extend(document.getElementById("follow"));
  });
}
