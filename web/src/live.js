// Live updates of a page: the server sends an event when something has changed, and the page fetches what it shows of it.
// Nothing moves: rows change in place, and new rows wait behind a button.
import { clock, nowMs, serverShows, showTimes } from "./times.js";
import { Idiomorph } from "idiomorph";
import { above, anyStale, drop, head, isShown, keyOf, known, left, rowsInView } from "./rows.js";
import { asOf, showOutage } from "./outage.js";
import { peekIsOpen } from "./peek.js";
import { dialogIsOpen, post } from "./toast.js";

const LOST_AFTER_MS = 3000;
const POLL_MS = 2000;
const REPEAT_MS = 1000;
// The states of what is due, which change without an event: an attempt begins, a slot becomes free.
const unsettled = ["firing", "due", "waiting"];
let source = null;
let lostTimer = 0;
let confirmedMs = nowMs();

function show(state, words) {
  const output = document.getElementById("link-state");
  if (!output) return;
  output.dataset.state = state;
  const text = output.lastElementChild;
  if (text.textContent !== words) text.textContent = words;
  // What the overview shows was true when the last event came.
  const sentence = document.getElementById("sentence");
  if (!sentence) return;
  if (state === "live") delete sentence.dataset.asOf;
  else sentence.dataset.asOf ??= `As of ${clock(confirmedMs / 1000, true)}.`;
}

function lost() {
  lostTimer ||= setTimeout(() => show("lost", "Reconnecting…"), source?.readyState === EventSource.CLOSED ? 0 : LOST_AFTER_MS);
}

function found() {
  confirmedMs = nowMs();
  clearTimeout(lostTimer);
  lostTimer = 0;
  show(asOf() ? "lost" : "live", asOf() || "Live");
}

function open() {
  const url = document.body.dataset.live;
  if (!url || source || document.hidden) return;
  source = new EventSource(url);
  source.onopen = found;
  source.onmessage = (event) => { found(); update(JSON.parse(event.data)); };
  source.addEventListener("clock", (event) => serverShows(Number(event.data)));
  source.addEventListener("outage", (event) => { showOutage(JSON.parse(event.data)); found(); });
  source.addEventListener("bye", () => { close(); show("lost", "Signed out"); });
  source.onerror = () => {
    lost();
    // An error response closes the stream permanently, so reconnect: the server may have been replaced meanwhile.
    if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(open, LOST_AFTER_MS); }
  };
}

function close() {
  source?.close();
  source = null;
}

function update(news) {
  const results = document.getElementById("results");
  const one = document.querySelector("[data-one]");
  if (results) updateList(results, news);
  else if (one) updatePage(one, news);
  else if (news.title) updateNow(news);
}

// -- the list

const FRESH_EVERY_MS = 2000;
let refreshing = false;
let repeatTimer = 0;
let freshTimer = 0;
let freshAt = 0;

async function updateList(results, news) {
  const counters = `${news.created} ${news.changed}`;
  const before = results.dataset.counters;
  results.dataset.counters = counters;
  // Events come from time to time even without changes, and refresh the list then: a node only counts the changes made
  // through itself, and another node may have made some.
  if (before === undefined && counters === `${results.dataset.created} ${results.dataset.changed}`) return;
  scheduleFresh(results);
  results.dataset.changed = news.changed;
  await refreshRows(results);
}

// Looks for rows that the list would show now and this page lacks; at most once per interval.
function scheduleFresh(results) {
  const wait = FRESH_EVERY_MS - (Date.now() - freshAt);
  if (wait > 0) { freshTimer ||= setTimeout(() => { freshTimer = 0; scheduleFresh(document.getElementById("results")); }, wait); return; }
  freshAt = Date.now();
  if (isShown(results) && !document.hidden) findFresh(results);
}

async function findFresh(results) {
  const start = head();
  // The list's URL, not the window's, which already names other filters while their results are loading.
  const url = new URL(results.dataset.link, location);
  if (start.cursor) url.searchParams.set("cursor", start.cursor);
  url.searchParams.set("rows", Math.min(Number(results.dataset.rowsMax), start.ids.size + 50));
  // Rows after the last one of an unfinished list come by scrolling and do not count as new.
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
    // Only ids before the last row that both have count; if they share none, all latest-first ids come before the page's rows.
    const last = ids.findLastIndex((id) => start.ids.has(id));
    end = last >= 0 ? last : results.dataset.order === "asc" ? 0 : end;
  }
  const count = ids.slice(0, end).filter((id) => !known.has(id) && !above.has(id)).length;
  // An empty list can reload at once, since no row can move.
  if (count && !document.getElementById("fresh")) document.getElementById("filters")?.requestSubmit();
  results.dataset.fresh = count ? `${count.toLocaleString("en")} ${more && end === ids.length ? "or more new" : "new"}` : "";
  showNews(results);
}

// Shows what reloading the list would change: rows that it lacks, and rows that no longer belong on this tab.
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
    body.append("rows", JSON.stringify(rows.map((row) => [keyOf(row), row.dataset.v])));
    const answer = await post(results.dataset.rows, body);
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const places = new Map(rows.map((row) => [keyOf(row), row]));
    if (!isShown(results)) return;
    for (const row of page.querySelectorAll("tr")) replaceRow(places.get(keyOf(row)), row);
    if ("leftWord" in results.dataset) {
      for (const row of rows) markLeft(row, results.dataset.view);
      showNews(results);
    }
    for (const chunk of new Set(rows.map((row) => row.parentElement))) chunk.dataset.changed = changed;
  } catch {
    lost();
    return;
  } finally {
    refreshing = false;
  }
  // Others may have come into view meanwhile.
  if (anyStale()) refreshRows(results);
  // A timer whose callback has just ended is stored a moment later.
  const isDue = (row) => row.dataset.due || row.querySelector("[data-due]");
  if (rows.some((row) => isDue(row) && unsettled.includes(row.querySelector(".state")?.dataset.tone))) repeatRefresh(results);
}

function repeatRefresh(results) {
  repeatTimer ||= setTimeout(() => { repeatTimer = 0; if (!document.hidden) refreshRows(results); }, REPEAT_MS);
}

// Rows that no longer belong on the tab leave by themselves, unless somebody is at work in the list: then they stay in place, and
// the button counts them.
const LEAVE_MS = 1500;
const COLLAPSE_MS = 150;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
let leaveTimer = 0;

function inUse(results) {
  return results.querySelector(".list:hover") || results.contains(document.activeElement) || document.querySelector("#picked[data-some]") || peekIsOpen() || dialogIsOpen();
}

function leaveSoon() {
  leaveTimer ||= setTimeout(async () => {
    leaveTimer = 0;
    const results = document.getElementById("results");
    const rows = rowsInView().filter((row) => row.classList.contains("left"));
    if (!rows.length) return;
    if (inUse(results)) { leaveSoon(); return; }
    await Promise.all(rows.map((row) => STILL.matches || row.animate([{ maxHeight: `${row.offsetHeight}px`, overflow: "hidden" }, { maxHeight: "0", minHeight: "0", opacity: 0, overflow: "hidden" }], COLLAPSE_MS).finished));
    for (const row of rows) if (row.isConnected) drop(row);
    showNews(results);
  }, LEAVE_MS);
}

// Marks a row that no longer belongs on the tab.
function markLeft(row, tab) {
  // The one whose id was searched for is shown on every tab.
  if (row.parentElement.classList.contains("exact")) return;
  const stays = "tab" in row.dataset ? row.dataset.tab.split(" ").includes(tab) : ("due" in row.dataset) === (tab === "pending");
  const gone = row.classList.contains("gone") || !stays;
  row.classList.toggle("left", gone);
  if (gone) { left.add(keyOf(row)); leaveSoon(); }
  else left.delete(keyOf(row));
}

function replaceRow(row, changed) {
  if (!row) return;
  if ("gone" in changed.dataset) { row.classList.add("gone"); return; }
  row.dataset.v = changed.dataset.v;
  if (changed.dataset.tab) row.dataset.tab = changed.dataset.tab;
  if (changed.dataset.due) row.dataset.due = changed.dataset.due;
  else delete row.dataset.due;
  // Cell by cell, except the id and the checkbox, so that the focus and the selection are kept.
  for (const before of row.querySelectorAll("td:not(.pick)")) {
    const after = changed.querySelector(`.${before.classList[0]}`);
    if (!after || before.innerHTML === after.innerHTML || before.contains(document.activeElement)) continue;
    before.replaceChildren(...document.importNode(after, true).childNodes);
  }
  showTimes(row);
  document.dispatchEvent(new CustomEvent("tocsin:row", { detail: row }));
}

// -- one timer, one call

const isFiring = (one) => unsettled.includes(one.querySelector(".lead .state")?.dataset.tone);
const showChanged = () => document.body.dispatchEvent(new CustomEvent("tocsin:changed"));
const ENDED = ["done", "failed"];
const ENDED_SHOWN_MS = 5000;

// Changes the page of a timer or call; the moment at which it ends swells its mark, and stands in the title for a while.
async function refreshOne(one) {
  const toneOf = () => one.querySelector(".lead .state")?.dataset.tone;
  const before = toneOf();
  const changed = await refreshPart(one, location.pathname + location.search);
  if (changed && before && !ENDED.includes(before) && ENDED.includes(toneOf())) {
    const state = one.querySelector(".lead .state");
    state.dataset.ended = "";
    const { title } = document;
    document.title = `● ${state.textContent.trim()} · ${title}`;
    setTimeout(() => { document.title = title; }, ENDED_SHOWN_MS);
  }
  return changed;
}

async function updatePage(one, news) {
  if ("finished" in one.dataset) return;
  if (news.changed === Number(one.dataset.changed) && news.created === Number(one.dataset.created) && !isFiring(one)) return;
  // Otherwise one of the next events tries again: the last one is sent once more, and from time to time.
  const changed = await refreshOne(one);
  if (changed === null) return;
  one.dataset.changed = news.changed;
  one.dataset.created = news.created;
  if (changed) showChanged();
  pollWhileFiring(one);
  // A finished call does not change any more.
  if ("finished" in one.dataset) { close(); document.getElementById("link-state").hidden = true; }
}

// A timer whose callback has just ended is stored a moment later, without an event. So the page polls while it shows a timer
// or call in flight.
let pollTimer = null;

function pollWhileFiring(one) {
  clearTimeout(pollTimer);
  if (!isFiring(one)) return;
  pollTimer = setTimeout(async () => {
    if (!document.hidden && await refreshOne(one)) showChanged();
    pollWhileFiring(one);
  }, REPEAT_MS);
}

// Changes a part of the page into what the server shows now, in place: the focus, open menus and the scroll position stay.
// Returns whether it was changed; null if it could not be.
async function refreshPart(part, url) {
  // What is being typed into is left alone, also if the typing began during the request.
  const inUse = () => part.contains(document.activeElement) && part.querySelector("details.menu[open]");
  if (inUse()) return null;
  try {
    const answer = await fetch(url, { headers: { "hx-request": "true" } });
    if (!answer.ok) return null;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (inUse()) return null;
    if (!next || next.dataset.v && next.dataset.v === part.dataset.v) return false;
    return morph(part, next);
  } catch {
    lost();
    return null;
  }
}

const keptOpen = { beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details") };

function morph(part, next) {
  // Times are shown as this page shows them before they are compared, so that none flickers.
  showTimes(next);
  const before = part.innerHTML;
  Idiomorph.morph(part, next, { callbacks: keptOpen });
  return part.innerHTML !== before;
}

// -- Now

// The verdict follows at once; the rest is drawn again by the server when its version changes.
async function updateNow(news) {
  const sentence = document.getElementById("sentence");
  const text = document.getElementById("sentence-text");
  if (sentence.textContent !== news.title) sentence.textContent = news.title;
  if (text.textContent !== news.text) text.textContent = news.text;
  sentence.dataset.tone = news.tone;
  const body = document.getElementById("now");
  if (!news.version || body.dataset.seen === news.version) return;
  if (await refreshPart(body, location.pathname + location.search) !== null) body.dataset.seen = news.version;
}

// What has come due fires on the node that owns its shard. If that is another one than this page's, no event follows.
function refreshDue() {
  const one = document.querySelector("[data-one]");
  const results = document.getElementById("results");
  if (one) pollWhileFiring(one);
  else if (results?.querySelector(unsettled.map((tone) => `.state[data-tone='${tone}']`).join())) repeatRefresh(results);
}

export function startLive() {
  open();
  document.addEventListener("tocsin:due", refreshDue);
  refreshDue();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  document.addEventListener("tocsin:stale", () => refreshRows(document.getElementById("results")));
  // The list may be that of another namespace now.
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
