// Live updates of a page: the server sends an event when something has changed, and the page asks for what it shows and changes into
// that in place. Nothing moves: the focus, open menus, the selection and rows that have left the tab stay, until a button that counts
// them and the new rows loads the list again. A list whose rows have all left does so itself when nobody is at work in it.
import { morph } from "./morph.js";
import { asOf, showOutage, showReached, showUnreached } from "./outage.js";
import { peekIsOpen } from "./peek.js";
import { gone, markLeft, markNext, partsInView, results, rows, showCount, start } from "./rows.js";
import { clock, nowMs, put, serverShows } from "./times.js";
import { ask, dialogIsOpen, load, number } from "./toast.js";

const TICK_MS = 1000;
const FRESH_EVERY_MS = 2000;
const LOST_AFTER_MS = 3000;
const ENDED_SHOWN_MS = 5000;
const NUMBERS_EVERY_TICKS = 10;
// Rows change for so long in each frame.
const SLICE_MS = 8;
const nextFrame = () => new Promise(requestAnimationFrame);
// What is due changes without an event: an attempt begins, a slot becomes free, a result is stored a moment after it came, and
// another node may own the shard.
const UNSETTLED = ".state:is([data-tone='firing'], [data-tone='due'], [data-tone='waiting'])";
const ENDED = ".lead .state:is([data-tone='done'], [data-tone='failed'])";
let source = null;
let lostTimer = 0;
let confirmedMs = nowMs();
let readMs = nowMs();
// Whether the server can't read what this page shows.
let unread = false;
// Counts the events that have news for this page; `shown` is the last one that it shows.
let news = 0;
let shown = 0;
let busy = false;
let version = "";
let freshAt = 0;
let freshFor = 0;
let freshWords = "";
let tabsFor = 0;
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
  else if (sentence) sentence.dataset.asOf ??= `As of ${clock(confirmedMs / 1000, true)}.`;
}

function lost() {
  lostTimer ||= setTimeout(() => {
    show("lost", asOf() || `As of ${clock(confirmedMs / 1000, true)}`);
    showUnreached(confirmedMs);
  }, source?.readyState === EventSource.CLOSED ? 0 : LOST_AFTER_MS);
}

function found() {
  confirmedMs = nowMs();
  clearTimeout(lostTimer);
  lostTimer = 0;
  showReached();
  show(asOf() ? "lost" : "live", asOf() || "Live");
}

function open() {
  const url = results()?.dataset.live ?? document.body.dataset.live;
  // A finished call does not change any more.
  const ended = part()?.matches("[data-finished]");
  if (ended) document.getElementById("link-state").hidden = true;
  if (source?.url === new URL(url ?? "", location).href && !ended) return;
  close();
  if (!url || ended || document.hidden) return;
  source = new EventSource(url);
  // What is out is sent before the first event; without that, what was out before this stream is over.
  let stated = false;
  source.onopen = found;
  source.onmessage = (event) => {
    if (!stated) showOutage("");
    stated = true;
    found();
    receive(JSON.parse(event.data));
  };
  source.addEventListener("clock", (event) => serverShows(Number(event.data)));
  source.addEventListener("outage", (event) => { stated = true; showOutage(JSON.parse(event.data)); found(); });
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

// The verdict on Now follows at once; the rest is drawn again when its version changes. Other events come from time to time even
// without changes: a node only counts those made through itself.
function receive(event) {
  if ("title" in event) {
    const sentence = document.getElementById("sentence");
    put(sentence, event.title);
    put(document.getElementById("sentence-text"), event.text);
    sentence.dataset.tone = event.tone;
    if (event.version === version) return;
    version = event.version;
  }
  news += 1;
  if (results()) results().dataset.news = news;
  refresh();
}

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    if (part()) await refreshPart(part());
    if (results()) await refreshRows(results());
    if (results()) reloadLeft();
    if (results()) await findFresh(results());
    readMs = nowMs();
    if (unread) {
      unread = false;
      showOutage("");
      delete document.getElementById("main").dataset.asOf;
      found();
    }
  } catch (error) {
    // An error response comes from a server that can be reached.
    if (!(error instanceof Response)) lost();
    else if (error.status === 503) outOfDate(await error.text());
  } finally {
    busy = false;
  }
}

// The server can't read what this page shows, with the words of the outage; of most a stream has told already.
function outOfDate(html) {
  if (!unread && document.querySelector("#outage > *")) return;
  unread = true;
  showOutage(html);
  document.getElementById("main").dataset.asOf ??= `As of ${clock(readMs / 1000, true)}`;
  found();
}

// The numbers beside other pages, and on the tabs of a list: of all its rows, while what follows is about those that it shows.
async function refreshNumbers() {
  for (const badge of document.querySelectorAll(".rail-nav .badge")) badge.dispatchEvent(new Event("again"));
  const list = results();
  if (!list || tabsFor === news) return;
  tabsFor = news;
  try {
    const { pathname, search } = new URL(list.dataset.link, location);
    const next = (await load(`/ui/tabs${pathname}${search}`)).getElementById("tabs");
    const tabs = document.getElementById("tabs");
    // Without numbers, they are not known at present. What somebody is about to click stays in its place.
    if (list === results() && next?.querySelector("i") && !tabs.matches(":hover, :focus-within")) morph(tabs, next);
  } catch {
    // The next try is soon.
  }
}

// -- a part of a page

async function refreshPart(one) {
  const now = news;
  if (now === shown && !one.querySelector(`.lead ${UNSETTLED}`) && !(polled() && ticks % 2)) return;
  // What is being typed into is left alone, also if the typing began during the request.
  const inUse = () => one.contains(document.activeElement) && one.querySelector("details.menu[open]");
  if (inUse()) return;
  // What the server doesn't answer soon is not the present either.
  if (polled()) lost();
  const next = (await load(location.pathname + location.search)).getElementById(one.id);
  if (polled()) found();
  if (inUse()) return;
  shown = now;
  if (!next || next.dataset.v && next.dataset.v === one.dataset.v) return;
  const [before, hadEnded] = [one.innerHTML, one.querySelector(ENDED)];
  morph(one, next);
  if (one.innerHTML === before) return;
  if (!hadEnded && one.querySelector(ENDED)) showEnded(one.querySelector(ENDED));
  document.body.dispatchEvent(new CustomEvent("tocsin:changed"));
  if ("finished" in one.dataset) open();
}

// The moment at which a timer or call ends swells its mark, and stands in the title for a while.
function showEnded(state) {
  const { title } = document;
  state.dataset.ended = "";
  document.title = `● ${state.textContent.trim()} · ${title}`;
  setTimeout(() => { document.title = title; }, ENDED_SHOWN_MS);
}

// -- the list

async function refreshRows(list) {
  const now = list.dataset.news ?? "";
  const places = partsInView().filter((each) => each.dataset.news !== now || each.querySelector(`[data-due]:not([data-left], [data-left] *) ${UNSETTLED}`));
  const wanted = places.flatMap((each) => [...each.rows]).filter((row) => "v" in row.dataset).slice(0, Number(list.dataset.rowsMax));
  if (!wanted.length) return;
  const body = new URLSearchParams(list.dataset.scope);
  body.append("rows", JSON.stringify(wanted.map((row) => [row.dataset.key, row.dataset.v])));
  const page = await load(list.dataset.rows, body);
  let until = performance.now() + SLICE_MS;
  for (const next of page.querySelectorAll("tr")) {
    if (performance.now() > until) {
      await nextFrame();
      until = performance.now() + SLICE_MS;
    }
    if (list !== results()) return;
    const row = rows.get(next.dataset.key);
    if (!row) continue;
    // What no longer exists has no cells.
    const deleted = !next.cells.length;
    if (deleted) showGone(row);
    else morph(row, next);
    // The row whose id was searched for is shown on every tab.
    const leaves = deleted || "left" in next.parentElement.dataset && !row.parentElement.matches(".exact");
    if (leaves && !gone.has(row)) leftAt = Date.now();
    markLeft(row, leaves);
    document.dispatchEvent(new CustomEvent("tocsin:row", { detail: row }));
  }
  for (const each of places) each.dataset.news = now;
  markNext();
  showCount();
  showNews();
  document.dispatchEvent(new CustomEvent("tocsin:rows"));
}

// Without its version, the row is not asked for again.
function showGone(row) {
  for (const each of [row, ...row.querySelectorAll("[data-due]")]) delete each.dataset.due;
  delete row.dataset.v;
  row.dataset.tab = "";
  const state = row.querySelector(".state");
  state.dataset.tone = "soft";
  state.removeAttribute("title");
  put(state.lastElementChild, "gone");
  const box = row.querySelector(".pick input");
  if (box) Object.assign(box, { checked: false, disabled: true });
}

const inUse = () => results().querySelector(".list:hover") || results().contains(document.activeElement) || document.querySelector("#picked[data-some]") || peekIsOpen() || dialogIsOpen();

// After a moment, in which the outcomes can be read.
function reloadLeft() {
  if (Date.now() - leftAt < FRESH_EVERY_MS || !rows.size || gone.size < rows.size || inUse()) return;
  leftAt = Date.now();
  document.getElementById("filters").requestSubmit();
}

// Looks for rows that the list would show now and this page lacks.
async function findFresh(list) {
  if (list !== results() || freshFor === news || Date.now() - freshAt < FRESH_EVERY_MS) return;
  freshAt = Date.now();
  freshFor = news;
  // The list's URL, not the window's, which already names other filters while their results are loading.
  const url = new URL(list.dataset.link, location);
  const most = Number(list.dataset.rowsMax);
  const { cursor, known, whole } = start(most);
  url.searchParams.set("cursor", cursor);
  url.searchParams.set("rows", Math.min(most, rows.size + 50));
  const body = new URLSearchParams({ known: JSON.stringify(known), whole });
  const words = await (await ask(`/ui/fresh${url.pathname}${url.search}`, body)).text();
  if (list !== results()) return;
  // An empty list can reload at once, since no row can move.
  if (words && !document.getElementById("fresh")) document.getElementById("filters").requestSubmit();
  freshWords = words;
  showNews();
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
    refresh();
    if (ticks % NUMBERS_EVERY_TICKS === 0 && !document.hidden) refreshNumbers();
  }, TICK_MS);
  document.addEventListener("tocsin:view", refresh);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  // The list may be that of another tenant now.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "results") return;
    freshWords = "";
    freshFor = news;
    open();
  });
}
