// The stream of one page: once a second the server says whether anything has changed, and what is shown of it is fetched.
// Nothing moves: rows change where they stand, new ones gather behind a button.
import { showTimes } from "./times.js";
import { above, head, isShown, known, left, rowsInView } from "./rows.js";
import { post } from "./say.js";

const LOST_AFTER_MS = 3000;
const POLL_MS = 2000;
const LOOK_AGAIN_MS = 1000;
let source = null;
let lostTimer = 0;

function show(state, words) {
  const output = document.getElementById("link-state");
  if (!output) return;
  output.dataset.state = state;
  const text = output.lastElementChild;
  if (text.textContent !== words) text.textContent = words;
}

function lost() {
  lostTimer ||= setTimeout(() => show("lost", "Reconnecting…"), source?.readyState === EventSource.CLOSED ? 0 : LOST_AFTER_MS);
}

function found() {
  clearTimeout(lostTimer);
  lostTimer = 0;
  show("live", "Live");
}

function open() {
  const url = document.body.dataset.live;
  if (!url || source || document.hidden) return;
  source = new EventSource(url);
  source.onopen = found;
  source.onmessage = (event) => { found(); heard(JSON.parse(event.data)); };
  source.addEventListener("bye", () => { close(); show("lost", "Signed out"); });
  source.onerror = () => {
    lost();
    // A refusal closes for good; the server may be another one by the next try.
    if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(open, LOST_AFTER_MS); }
  };
}

function close() {
  source?.close();
  source = null;
}

function heard(news) {
  const results = document.getElementById("results");
  const one = document.querySelector("[data-one]");
  if (results) heardInList(results, news);
  else if (one) heardOnPage(one, news);
  else if (news.tiles) heardInOverview(news);
}

// -- the list

const FRESH_EVERY_MS = 2000;
let refreshing = false;
let again = 0;
let asking = 0;
let asked = 0;

async function heardInList(results, news) {
  const said = `${news.created} ${news.changed}`;
  const before = results.dataset.said;
  results.dataset.said = said;
  // Nothing new is said all the same from time to time: then the list looks by itself, for a node tells of its own timers
  // only, and another may have changed some.
  if (before === undefined && said === `${results.dataset.created} ${results.dataset.changed}`) return;
  askFresh(results);
  results.dataset.changed = news.changed;
  await refreshRows(results);
}

// Which rows the list would show by now that this page lacks. It is asked once in a while, however much happens.
function askFresh(results) {
  const wait = FRESH_EVERY_MS - (Date.now() - asked);
  if (wait > 0) { asking ||= setTimeout(() => { asking = 0; askFresh(document.getElementById("results")); }, wait); return; }
  asked = Date.now();
  if (isShown(results) && !document.hidden) findFresh(results);
}

async function findFresh(results) {
  const start = head();
  // The list's own, not the window's: while other filters are on their way, that names them already.
  const url = new URL(results.dataset.link, location);
  if (start.cursor) url.searchParams.set("cursor", start.cursor);
  url.searchParams.set("rows", Math.min(Number(results.dataset.rowsMax), start.ids.size + 50));
  // What lies behind the last row of a list that goes on comes by scrolling, and is not new.
  const until = start.open && results.dataset.order === "asc" && start.last?.dataset.due;
  if (until) url.searchParams.set("until", until);
  try {
    const answer = await fetch(`/ui/fresh${url.pathname}${url.search}`, { headers: { "hx-request": "true" } });
    const found = answer.ok && await answer.json();
    if (found && isShown(results)) showFresh(results, start, found, start.open && !until);
  } catch {
    lost();
  }
}

function showFresh(results, start, { ids, more }, onlyAmong) {
  let end = ids.length;
  if (onlyAmong) {
    // Up to the last row that both have; where there is none, what is latest is before everything that the page has.
    const last = ids.findLastIndex((id) => start.ids.has(id));
    end = last >= 0 ? last : results.dataset.order === "asc" ? 0 : end;
  }
  const count = ids.slice(0, end).filter((id) => !known.has(id) && !above.has(id)).length;
  // Where nothing is shown nothing can jump.
  if (count && !document.getElementById("fresh")) document.getElementById("filters")?.requestSubmit();
  results.dataset.fresh = count ? `${count.toLocaleString("en")} ${more && end === ids.length ? "or more new" : "new"}` : "";
  showNews(results);
}

// What a look at the list anew would bring: rows that it lacks, and the end of those that are not of this tab any more.
function showNews(results) {
  const fresh = document.getElementById("fresh");
  if (!fresh) return;
  const words = [results.dataset.fresh, left.size ? `${left.size.toLocaleString("en")} ${results.dataset.leftWord}` : ""].filter(Boolean).join(", ");
  fresh.hidden = !words;
  if (words && fresh.textContent !== words) fresh.textContent = words;
}

async function refreshRows(results) {
  const rows = rowsInView().slice(0, Number(results.dataset.rowsMax));
  if (refreshing || !rows.length || !isShown(results)) return;
  refreshing = true;
  const { changed } = results.dataset;
  try {
    const body = new URLSearchParams(results.dataset.scope);
    body.append("rows", JSON.stringify(rows.map((row) => [row.dataset.id, row.dataset.v])));
    const answer = await post(results.dataset.rows, body);
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const places = new Map(rows.map((row) => [row.dataset.id, row]));
    if (!isShown(results)) return;
    for (const row of page.querySelectorAll("tr")) replaceRow(places.get(row.dataset.id), row);
    if ("leftWord" in results.dataset) {
      for (const row of rows) markLeft(row, results.dataset.view === "upcoming");
      showNews(results);
    }
    for (const chunk of new Set(rows.map((row) => row.parentElement))) chunk.dataset.changed = changed;
  } catch {
    lost();
  } finally {
    refreshing = false;
  }
  // What has just been answered is written a moment later.
  if (rows.some((row) => row.dataset.due && row.querySelector(".state")?.dataset.tone === "ringing")) {
    again ||= setTimeout(() => { again = 0; if (!document.hidden) refreshRows(results); }, LOOK_AGAIN_MS);
  }
}

// Whether a row still is what the tab shows: it stays where it is until somebody looks anew, and is seen to have left.
function markLeft(row, pendingOnly) {
  // Whose id was searched for is shown on every tab.
  if (row.parentElement.classList.contains("exact")) return;
  const gone = row.classList.contains("gone") || ("due" in row.dataset) !== pendingOnly;
  row.classList.toggle("left", gone);
  if (gone) left.add(row.dataset.id);
  else left.delete(row.dataset.id);
}

function replaceRow(row, changed) {
  if (!row) return;
  if ("gone" in changed.dataset) { row.classList.add("gone"); return; }
  row.dataset.v = changed.dataset.v;
  if (changed.dataset.due) row.dataset.due = changed.dataset.due;
  else delete row.dataset.due;
  if (changed.dataset.dueWord) row.dataset.dueWord = changed.dataset.dueWord;
  // Cell by cell, the id and the box excepted, so that neither the focus nor a selection is lost.
  for (const before of row.querySelectorAll("td:not(.pick)")) {
    const after = changed.querySelector(`.${before.classList[0]}`);
    if (!after || before.innerHTML === after.innerHTML || before.contains(document.activeElement)) continue;
    before.replaceChildren(...document.importNode(after, true).childNodes);
  }
  showTimes(row);
}

// -- one timer, one call

async function heardOnPage(one, news) {
  const ringing = one.querySelector(".lead .state")?.dataset.tone === "ringing";
  if ("over" in one.dataset) return;
  if (news.changed === Number(one.dataset.changed) && news.created === Number(one.dataset.created) && !ringing) return;
  await refreshPart(one, location.pathname + location.search);
  const now = document.getElementById(one.id);
  now.dataset.changed = news.changed;
  now.dataset.created = news.created;
  if (now !== one) document.body.dispatchEvent(new CustomEvent("tocsin:changed"));
  keepLooking(one.id);
  // Nothing more happens to what has finished.
  if ("over" in now.dataset) { close(); document.getElementById("link-state").hidden = true; }
}

// What has just been answered is written a moment later, and nobody says when: while the page shows something under way, it
// looks again by itself.
let looking = null;

function keepLooking(id) {
  clearTimeout(looking);
  const underWay = () => document.getElementById(id)?.querySelector(".lead .state")?.dataset.tone === "ringing";
  if (!underWay()) return;
  looking = setTimeout(async () => {
    const before = document.getElementById(id);
    if (!document.hidden && before) {
      await refreshPart(before, location.pathname + location.search);
      if (document.getElementById(id) !== before) document.body.dispatchEvent(new CustomEvent("tocsin:changed"));
    }
    keepLooking(id);
  }, LOOK_AGAIN_MS);
}

async function refreshPart(part, url) {
  // What somebody is about to use stays as it is.
  if (part.contains(document.activeElement) && part.querySelector("details[open]")) return;
  try {
    const answer = await fetch(url, { headers: { "hx-request": "true" } });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (!next || next.dataset.v === part.dataset.v && next.dataset.v) return;
    const held = part.contains(document.activeElement) ? [...part.querySelectorAll("a, button, summary")].indexOf(document.activeElement) : -1;
    if (next.innerHTML !== part.innerHTML || next.hidden !== part.hidden) part.replaceWith(document.importNode(next, true));
    else part.dataset.v = next.dataset.v ?? "";
    const now = document.getElementById(part.id);
    showTimes(now);
    if (held >= 0) [...now.querySelectorAll("a, button, summary")][held]?.focus();
  } catch {
    lost();
  }
}

// -- the overview

let lastPoints = null;

function heardInOverview(news) {
  const sentence = document.getElementById("sentence");
  if (sentence.textContent !== news.sentence) sentence.textContent = news.sentence;
  sentence.dataset.tone = news.tone;
  for (const [name, [value, note, tone]] of Object.entries(news.tiles)) {
    const tile = document.getElementById(`tile-${name}`);
    if (!tile) continue;
    tile.dataset.tone = tone;
    tile.querySelector("b").textContent = value;
    tile.querySelector("span").textContent = note;
  }
  refreshShown(document.getElementById("gaps"), news.gaps);
  refreshShown(document.getElementById("whose"), news.nodes);
  const points = `${news.buckets} ${news.gaps}`;
  if (lastPoints !== null && lastPoints !== points) document.dispatchEvent(new CustomEvent("tocsin:figures"));
  lastPoints = points;
}

// Whose part is missing, and which nodes there are: words that the server has.
function refreshShown(part, version) {
  if (part.dataset.v === version || part.contains(document.activeElement)) return;
  refreshPart(part, location.pathname + location.search);
}

export function startLive() {
  open();
  const one = document.querySelector("[data-one]");
  if (one) keepLooking(one.id);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  document.addEventListener("tocsin:stale", () => refreshRows(document.getElementById("results")));
  // Another list than before may be another namespace's.
  document.addEventListener("htmx:afterSwap", () => {
    const results = document.getElementById("results");
    if (!results) return;
    const url = `${results.dataset.live}?${results.dataset.scope}`;
    if (url !== document.body.dataset.live) { document.body.dataset.live = url; close(); open(); }
  });
  const polled = document.querySelector("[data-poll]");
  if (polled) {
    show("live", "Live");
    document.getElementById("link-state").hidden = false;
    setInterval(async () => {
      if (document.hidden) return;
      await refreshPart(document.querySelector("[data-poll]"), location.pathname);
      if (!lostTimer) found();
    }, POLL_MS);
  }
}
