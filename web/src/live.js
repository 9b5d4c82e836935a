// Live updates of a page: the server sends an event when something has changed, and the page asks for what it shows and changes into
// that in place. Nothing moves: the focus, open menus, the selection and rows that have left the tab stay, until a button that counts
// them and the new rows loads the list again. A list whose rows have all left does so itself when nobody is at work in it.
import { morph } from "./morph.js";
import { asOf, showOutage, showReached, showStopped, showUnreached } from "./outage.js";
import { peekIsOpen } from "./peek.js";
import { gone, markLeft, markNext, partsInView, results, rows, showCount, start } from "./rows.js";
import { clock, nowMs, put, serverShows } from "./times.js";
import { ask, dialogIsOpen, load, number } from "./toast.js";

const TICK_MS = 1000;
const FRESH_EVERY_MS = 2000;
const LOST_AFTER_MS = 3000;
// A stream that has ended is opened again after a time between half of this and all of it, which doubles up to the longest.
const RETRY_MS = 2000;
const RETRY_MS_MAX = 30000;
// The server sends an event at least every 10 s. A stream without one for so long has lost its server, or the line to it, without
// an error: a stopped process keeps its connections.
const SILENT_AFTER_MS = 22000;
// Refusals that asking again does not change: without a sign-in, without access, of what no longer exists.
const FINAL = [401, 403, 404];
// Longer than the server lets a page wait for a database that does not answer.
const POLL_LOST_AFTER_MS = 5000;
const ENDED_SHOWN_MS = 5000;
const NUMBERS_EVERY_TICKS = 10;
// A node counts only the changes made through itself, so the tabs are also counted when it knows of none.
const TABS_EVERY_TICKS = 60;
// Rows change for so long in each frame.
const SLICE_MS = 8;
const nextFrame = () => new Promise(requestAnimationFrame);
// What is due changes without an event: an attempt begins, a slot becomes free, a result is stored a moment after it came, and
// another node may own the shard.
const UNSETTLED = ".state:is([data-tone='firing'], [data-tone='due'], [data-tone='waiting'])";
const ENDED = ".lead .state:is([data-tone='done'], [data-tone='failed'])";
let source = null;
let retryTimer = 0;
// Since the last event.
let retries = 0;
let doubtTimer = 0;
// When the stream was opened or had its last event, by the clock of this computer: that of the server may be moved.
let eventAt = 0;
// The last answer of the server, and the instant from which is what the page shows.
let answeredMs = nowMs();
let readMs = nowMs();
// Whether the last request got no answer.
let silent = false;
// Whether the page asks for nothing more, until it is opened again.
let stopped = false;
let signedOut = false;
// The read of this page that the server refused.
let failing = null;
// Counts the events that have news for this page; `shown` is the last one that it shows.
let news = 0;
let shown = 0;
let busy = false;
let version = "";
let freshAt = 0;
let freshFor = 0;
let freshWords = "";
// The counters in the last event, and those that the tabs show.
let counters = "";
let tabsFor = "";
let leftAt = 0;
let ticks = 0;

// The part of a page that the server draws again. A page with a list has none, and many elements to search.
const part = () => (results() ? null : document.querySelector("[data-one], [data-poll], #now"));
// A page that asks again and again, and has no stream.
const polled = () => part() && "poll" in part().dataset;

function show(state, words) {
  const output = document.getElementById("link-state");
  if (!output) return;
  output.dataset.state = state;
  put(output.lastElementChild, words);
  document.getElementById("main").toggleAttribute("data-lost", state === "lost");
  // What the overview shows was true when the last event came.
  const sentence = document.getElementById("sentence");
  if (state === "live") delete sentence?.dataset.asOf;
  else if (sentence) sentence.dataset.asOf ??= `As of ${clock(readMs / 1000, true)}.`;
}

const showLost = () => show("lost", asOf() || `As of ${clock(readMs / 1000, true)}`);

// Unless something soon confirms what the page shows, it states from when that is.
function doubt(ms = LOST_AFTER_MS) {
  doubtTimer ||= setTimeout(() => {
    doubtTimer = 0;
    showLost();
    if (silent) showUnreached(answeredMs);
  }, ms);
}

function unanswered() {
  silent = true;
  doubt();
}

function reached() {
  answeredMs = nowMs();
  silent = false;
  showReached();
}

// What the page shows is the present, or from an instant that it states.
function found() {
  if (signedOut) {
    // Somebody has signed in again, and the page's CSRF token is that of the former sign-in.
    close();
    stopped = true;
    location.reload();
    return;
  }
  reached();
  showStopped(0);
  clearTimeout(doubtTimer);
  doubtTimer = 0;
  if (!failing) readMs = nowMs();
  show(asOf() ? "lost" : "live", asOf() || "Live");
}

// An answer is about a part of what a page with a stream shows.
function answered() {
  if (polled() || source?.readyState === EventSource.OPEN) found();
  else reached();
}

// The status of the refusal after which nothing more is asked, and the server's words.
function stop(status, words = "") {
  close();
  clearTimeout(doubtTimer);
  doubtTimer = 0;
  stopped = true;
  signedOut = status === 401;
  show("lost", status === 401 ? "Signed out" : "Not updated");
  showStopped(status, readMs, words);
}

function open() {
  // A page that was signed out asks for nothing else before its stream is accepted.
  stopped = signedOut && !polled();
  const url = results()?.dataset.live ?? document.body.dataset.live;
  // A finished call does not change any more.
  const ended = part()?.matches("[data-finished]");
  if (ended) document.getElementById("link-state").hidden = true;
  if (source?.url === new URL(url ?? "", location).href && !ended) return;
  close();
  if (!url || ended || document.hidden) return;
  const stream = new EventSource(url);
  source = stream;
  eventAt = Date.now();
  // What is out is sent before the first event; without that, what was out before this stream is over.
  let stated = false;
  source.onopen = () => { if (signedOut) found(); };
  source.onmessage = (event) => {
    eventAt = Date.now();
    if (!stated) showOutage("");
    stated = true;
    retries = 0;
    found();
    receive(JSON.parse(event.data));
  };
  source.addEventListener("clock", (event) => serverShows(Number(event.data)));
  source.addEventListener("outage", (event) => {
    eventAt = Date.now();
    stated = true;
    failing = null;
    showOutage(JSON.parse(event.data));
    // The verdict on Now comes after it.
    if (document.getElementById("sentence")) reached();
    else found();
  });
  source.addEventListener("bye", () => stop(401));
  source.onerror = async () => {
    if (source !== stream) return;
    const refused = stream.readyState === EventSource.CLOSED;
    stream.close();
    if (refused) {
      reached();
      showLost();
    } else unanswered();
    const answer = refused ? await refusal(url) : null;
    const words = await wordsOf(answer);
    if (source !== stream) return;
    if (FINAL.includes(answer?.status)) stop(answer.status, words);
    else openLater();
  };
}

// How the server refuses a stream, which an EventSource does not report; null: it does not refuse it now.
async function refusal(url) {
  try {
    const answer = await ask(url, { background: true });
    answer.body?.cancel();
    return null;
  } catch (error) {
    return error instanceof Response ? error : null;
  }
}

// Why the server denies access; empty if it gave no reason, or a proxy denies it.
async function wordsOf(answer) {
  if (answer?.status !== 403 || answer.headers.get("content-type") !== "application/json") return "";
  const { message } = await answer.json().catch(() => ({}));
  return message;
}

function openLater() {
  close();
  const ms = Math.min(RETRY_MS * 2 ** retries, RETRY_MS_MAX);
  retries += 1;
  retryTimer = setTimeout(open, ms / 2 + Math.random() * ms / 2);
}

// A stream that is open or being opened, and brings nothing, is opened again.
function checkStream() {
  if (!source || Date.now() - eventAt < SILENT_AFTER_MS) return;
  unanswered();
  openLater();
}

function openNow() {
  retries = 0;
  open();
}

function close() {
  clearTimeout(retryTimer);
  source?.close();
  source = null;
}

// The verdict on Now follows at once; the rest is drawn again when its version changes. Other events come from time to time even
// without changes: a node only counts those made through itself.
function receive(event) {
  if ("title" in event) {
    const sentence = document.getElementById("sentence");
    put(sentence, event.title);
    put(document.getElementById("sentence-text"), event.text);
    sentence.dataset.tone = event.tone;
    // It gets no shorter, or what is below would move up now, and down again with the next longer sentence.
    const verdict = sentence.parentElement;
    verdict.style.minHeight = `${verdict.offsetHeight}px`;
    if (event.version === version) return;
    version = event.version;
  }
  news += 1;
  counters = JSON.stringify(event);
  if (results()) results().dataset.news = news;
  refresh();
}

async function refresh() {
  if (busy || document.hidden || stopped) return;
  busy = true;
  let read;
  try {
    for (read of [refreshPart, refreshRows, reloadLeft, findFresh]) {
      const asked = await read();
      if (stopped) break;
      if (asked) succeeded(read);
    }
  } catch (error) {
    // What the page stated when it stopped stays.
    if (stopped) return;
    // An error response comes from a server that can be reached.
    if (error instanceof Response) await refused(read, error);
    else unanswered();
  } finally {
    busy = false;
  }
}

function succeeded(read) {
  if (failing === read) {
    failing = null;
    showOutage("");
    delete document.getElementById("main").dataset.asOf;
  }
  answered();
}

// The page stays as it is, with the words of an outage; a stream has brought most already.
async function refused(read, answer) {
  if (FINAL.includes(answer.status)) {
    const why = await wordsOf(answer);
    if (!stopped) stop(answer.status, why);
    return;
  }
  const words = answer.headers.has("tocsin-outage") ? await answer.text() : "";
  if (failing || !document.querySelector("#outage > :not([data-unreached])")) {
    failing = read;
    if (words) showOutage(words);
    document.getElementById("main").dataset.asOf ??= `As of ${clock(readMs / 1000, true)}`;
  }
  answered();
}

// The numbers beside other pages, and on the tabs of a list: of all its rows, while what follows is about those that it shows.
async function refreshNumbers() {
  const list = results();
  // Who fills in a form asks for nothing else.
  if (document.hidden || stopped || !list && document.querySelector("main [data-form]")) return;
  for (const badge of document.querySelectorAll(".rail-nav .badge")) badge.dispatchEvent(new Event("again"));
  if (!list || tabsFor === counters && ticks % TABS_EVERY_TICKS) return;
  const now = counters;
  try {
    const { pathname, search } = new URL(list.dataset.link, location);
    const next = (await load(`/ui/tabs${pathname}${search}`, { background: true })).getElementById("tabs");
    const tabs = document.getElementById("tabs");
    // What somebody is about to click stays in its place.
    if (list !== results() || tabs.matches(":hover, :focus-within")) return;
    tabsFor = now;
    // Without numbers, they are not known at present.
    if (next?.querySelector("i")) morph(tabs, next);
  } catch {
    // The next try is soon.
  }
}

// -- a part of a page

// Each read returns whether it asked the server.
async function refreshPart() {
  const one = part();
  const now = news;
  if (!one || now === shown && !one.querySelector(`.lead ${UNSETTLED}`) && !(polled() && ticks % 2)) return false;
  // What is being typed into is left alone, also if the typing began during the request.
  const inUse = () => one.contains(document.activeElement) && one.querySelector("details.menu[open]");
  if (inUse()) return false;
  // What the server doesn't answer soon is not the present either.
  if (polled()) doubt(POLL_LOST_AFTER_MS);
  const next = (await load(location.pathname + location.search, { background: true })).getElementById(one.id);
  if (inUse()) return true;
  shown = now;
  if (!next || next.dataset.v && next.dataset.v === one.dataset.v) return true;
  const [before, hadEnded] = [one.innerHTML, one.querySelector(ENDED)];
  morph(one, next);
  if (one.innerHTML === before) return true;
  if (!hadEnded && one.querySelector(ENDED)) showEnded(one.querySelector(ENDED));
  document.body.dispatchEvent(new CustomEvent("tocsin:changed"));
  if ("finished" in one.dataset) open();
  return true;
}

// The moment at which a timer or call ends swells its mark, and stands in the title for a while.
function showEnded(state) {
  const { title } = document;
  state.dataset.ended = "";
  document.title = `● ${state.textContent.trim()} · ${title}`;
  setTimeout(() => { document.title = title; }, ENDED_SHOWN_MS);
}

// -- the list

async function refreshRows() {
  const list = results();
  if (!list) return false;
  const now = list.dataset.news ?? "";
  const unsettled = `[data-due]:not([data-left], [data-left] *) ${UNSETTLED}, .since ${UNSETTLED}`;
  const places = partsInView().filter((each) => each.dataset.news !== now || each.querySelector(unsettled));
  const wanted = places.flatMap((each) => [...each.rows]).filter((row) => "v" in row.dataset).slice(0, Number(list.dataset.rowsMax));
  if (!wanted.length) return false;
  const body = new URLSearchParams(list.dataset.scope);
  body.append("rows", JSON.stringify(wanted.map((row) => [row.dataset.key, row.dataset.v])));
  const page = await load(list.dataset.rows, { body, background: true });
  let until = performance.now() + SLICE_MS;
  for (const change of page.querySelectorAll("tbody")) {
    if (performance.now() > until) {
      await nextFrame();
      until = performance.now() + SLICE_MS;
    }
    if (list !== results()) return true;
    const row = rows.get(change.dataset.of);
    if (!row) continue;
    if ("since" in change.dataset) showSince(row, change);
    else showChanged(row, change);
    document.dispatchEvent(new CustomEvent("tocsin:row", { detail: row }));
  }
  for (const each of places) each.dataset.news = now;
  markNext();
  showCount();
  showNews();
  document.dispatchEvent(new CustomEvent("tocsin:rows"));
  return true;
}

function showChanged(row, change) {
  const [next] = change.rows;
  const { key } = row.dataset;
  const other = rows.get(next?.dataset.key);
  if (other && other !== row) {
    // Scrolling has brought the run that this row would become.
    rows.delete(key);
    markLeft(row, false);
    row.remove();
    return;
  }
  // What no longer exists has no row.
  if (next) morph(row, next);
  else showGone(row);
  // A run that has ended is known by another key.
  rows.delete(key);
  rows.set(row.dataset.key, row);
  // The row whose id was searched for is shown on every tab.
  const leaves = !next || "left" in change.dataset && !row.parentElement.matches(".exact");
  if (leaves && !gone.has(row)) leftAt = Date.now();
  markLeft(row, leaves);
}

// A run that has ended stays as it was. Beside it stands what its timer does now.
function showSince(row, change) {
  row.dataset.v = change.dataset.since;
  row.querySelector(".since")?.remove();
  const since = change.querySelector(".since");
  if (since) row.querySelector(".c-state").append(" ", since);
}

// Without its version, the row is not asked for again.
function showGone(row) {
  for (const each of [row, ...row.querySelectorAll("[data-due]")]) delete each.dataset.due;
  delete row.dataset.v;
  row.dataset.tab = "";
  row.querySelector(".since")?.remove();
  const state = row.querySelector(".state");
  state.dataset.tone = "soft";
  state.removeAttribute("title");
  put(state.lastElementChild, "gone");
  const box = row.querySelector(".pick input");
  if (box) Object.assign(box, { checked: false, disabled: true });
}

const inUse = () => results().querySelector(".list:hover") || results().contains(document.activeElement) || document.querySelector("#picked[data-some]") || peekIsOpen() || dialogIsOpen();

// Loads the list, which nobody asked for.
function reload() {
  const filters = document.getElementById("filters");
  const mark = ({ detail }) => { detail.headers["tocsin-background"] = "true"; };
  filters.addEventListener("htmx:configRequest", mark);
  filters.requestSubmit();
  filters.removeEventListener("htmx:configRequest", mark);
}

// After a moment, in which the outcomes can be read.
function reloadLeft() {
  if (!results() || Date.now() - leftAt < FRESH_EVERY_MS || !rows.size || gone.size < rows.size || inUse()) return;
  leftAt = Date.now();
  reload();
}

// Looks for rows that the list would show now and this page lacks.
async function findFresh() {
  const list = results();
  const now = news;
  if (!list || freshFor === now || Date.now() - freshAt < FRESH_EVERY_MS) return false;
  freshAt = Date.now();
  // The list's URL, not the window's, which already names other filters while their results are loading.
  const url = new URL(list.dataset.link, location);
  const most = Number(list.dataset.rowsMax);
  const { cursor, known, whole } = start(most);
  url.searchParams.set("cursor", cursor);
  url.searchParams.set("rows", Math.min(most, rows.size + 50));
  const body = new URLSearchParams({ known: JSON.stringify(known), whole });
  const words = await (await ask(`/ui/fresh${url.pathname}${url.search}`, { body, background: true })).text();
  if (list !== results()) return true;
  freshFor = now;
  // An empty list can reload at once, since no row can move.
  if (words && !document.getElementById("fresh")) reload();
  freshWords = words;
  showNews();
  return true;
}

// Shows what reloading the list would change: rows that it lacks, and rows that no longer belong on this tab.
function showNews() {
  const fresh = document.getElementById("fresh");
  if (!fresh) return;
  const words = [freshWords, gone.size ? `${number(gone.size)} ${results().dataset.leftWord}` : ""].filter(Boolean).join(", ");
  put(fresh, words);
}

export function startLive() {
  if (polled()) found();
  const state = document.getElementById("link-state");
  if (state?.hidden && !document.querySelector("[data-finished], [data-refused], main [data-form]")) {
    // What is not read again was true when the page came.
    state.hidden = false;
    show("none", `As of ${clock(nowMs() / 1000, true)}`);
  }
  open();
  setInterval(() => {
    ticks += 1;
    checkStream();
    refresh();
    if (ticks % NUMBERS_EVERY_TICKS === 0) refreshNumbers();
  }, TICK_MS);
  document.addEventListener("tocsin:view", refresh);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : openNow()));
  addEventListener("pagehide", close);
  addEventListener("resize", () => document.querySelector(".verdict")?.style.removeProperty("min-height"));
  addEventListener("pageshow", (event) => { if (event.persisted) openNow(); });
  // The list may be that of another tenant now.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "results") return;
    freshWords = "";
    freshFor = news;
    open();
  });
}
