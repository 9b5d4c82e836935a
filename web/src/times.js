// Instants in the person's own zone, and distances that count down. The server's clock counts, not this machine's.
const root = document.documentElement;
const arrived = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.responseStart ?? performance.now());
const SKEW_MIN_MS = 1500;
// Differences that the way here explains are none.
const skew = Number(root.dataset.now) - arrived;
const skewMs = Math.abs(skew) < SKEW_MIN_MS ? 0 : skew;
const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
let utc = localStorage.getItem("tocsin.zone") === "utc";

export const nowMs = () => Date.now() + skewMs;

const formats = {};
function formatted(ms) {
  const name = utc ? "utc" : "own";
  formats[name] ??= new Intl.DateTimeFormat("sv-SE", {
    timeZone: utc ? "UTC" : undefined,
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
  });
  return formats[name].format(ms);
}

const UNITS = [[31536000, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function span(seconds) {
  for (let i = 0; i < UNITS.length; i += 1) {
    const [size, unit] = UNITS[i];
    if (seconds < size) continue;
    const whole = Math.floor(seconds / size);
    if (i + 1 === UNITS.length) return `${whole} ${unit}`;
    const [nextSize, nextUnit] = UNITS[i + 1];
    const rest = Math.floor((seconds - whole * size) / nextSize);
    return rest && whole < 10 ? `${whole} ${unit} ${rest} ${nextUnit}` : `${whole} ${unit}`;
  }
  return "0 s";
}

function away(ms) {
  const seconds = (ms - nowMs()) / 1000;
  // Rounded up towards the instant: a countdown that says 0 has nothing left to wait for.
  if (seconds > 0) return `in ${span(Math.ceil(seconds))}`;
  return seconds > -1 ? "now" : `${span(-seconds)} ago`;
}

function zoneWords(atMs = nowMs()) {
  if (utc) return "UTC";
  const minutes = -new Date(atMs).getTimezoneOffset();
  const size = Math.abs(minutes);
  const offset = minutes === 0 ? "" : `${minutes > 0 ? "+" : "−"}${Math.floor(size / 60)}${size % 60 ? `:${String(size % 60).padStart(2, "0")}` : ""}`;
  return zoneName === "UTC" ? "UTC" : `${zoneName} (UTC${offset})`;
}

const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

export function showTimes(within = document) {
  for (const element of within.querySelectorAll("time[data-at]")) {
    const ms = Number(element.dataset.at);
    put(element, element.dataset.form === "minute" ? formatted(ms).slice(11, 16) : formatted(ms));
  }
  for (const element of within.querySelectorAll("[data-zone]")) put(element, element.dataset.zone === "name" ? (utc ? "UTC" : zoneName) : zoneWords());
  count(within);
}

// Where instants are counted; a long list names the part that is in view.
let counted = () => [document];
export const countOnly = (places) => { counted = places; };
const countAll = () => { for (const place of counted()) count(place); };

// The exact instant and its zone, for whoever points at a time.
function explain(event) {
  const element = event.target.closest?.("time[data-at], [data-away]");
  if (!element) return;
  const ms = Number(element.dataset.at ?? element.dataset.away);
  const exact = element.dateTime ?? new Date(ms).toISOString();
  element.title = element.dateTime ? `${exact} · ${away(ms)} · shown in ${zoneWords(ms)}` : `${formatted(ms)}, ${zoneWords(ms)} · ${exact}`;
}

function count(within) {
  for (const element of within.querySelectorAll("[data-away]")) {
    const ms = Number(element.dataset.away);
    put(element, away(ms));
  }
  // What has come due rings until the server says what came of it.
  const now = nowMs();
  for (const element of within.querySelectorAll("[data-due]")) {
    const state = element.querySelector(".state");
    if (Number(element.dataset.due) <= now && state && (state.dataset.tone === "pending" || state.dataset.tone === "retrying")) {
      state.dataset.tone = "ringing";
      state.lastElementChild.textContent = element.dataset.dueWord ?? "ringing";
    }
  }
}

// The instants that a date and time as a field gives it may mean in the zone in use, the earliest first: none where clocks
// skip it, two where it comes twice.
function readings(localText) {
  const asUtc = new Date(`${localText}Z`).getTime();
  if (utc || Number.isNaN(asUtc)) return Number.isNaN(asUtc) ? [] : [asUtc];
  const offset = (ms) => -new Date(ms).getTimezoneOffset() * 60000;
  // Whatever changes on that day, these are the offsets before and after.
  const offsets = new Set([offset(asUtc - 86400000), offset(asUtc + 86400000)]);
  return [...offsets].map((each) => asUtc - each).filter((ms) => asUtc - ms === offset(ms)).sort((a, b) => a - b);
}

// The instant that counts: the first, or, where clocks skip the time, as much later as they are put forward.
function localInstant(localText) {
  return readings(localText)[0] ?? new Date(localText).getTime();
}

// Minutes by which such a text is ahead of UTC.
export function zoneMinutes(localText) {
  const minutes = (new Date(`${localText}Z`).getTime() - localInstant(localText)) / 60000;
  return Number.isFinite(minutes) ? Math.round(minutes) : 0;
}

// What such a text comes to, in words, and the tone of that.
export function localWords(localText) {
  const ms = localInstant(localText);
  if (!localText || Number.isNaN(ms)) return ["", ""];
  const found = readings(localText).length;
  if (ms < nowMs()) return [`That was ${away(ms)}: it fires at once.`, "retrying"];
  const shown = (each) => formatted(each).slice(11, 16);
  const written = localText.slice(11, 16);
  if (found === 0) return [`${written} does not exist on that day, because clocks go forward: it fires at ${shown(ms)}, ${away(ms)}.`, "retrying"];
  if (found > 1) return [`${written} comes twice on that day, because clocks go back: it fires at the first, ${away(ms)}.`, "retrying"];
  return [`That is ${away(ms)}.`, ""];
}

// The time of day, of seconds since 1970.
export const clock = (seconds, whole = false) => formatted(seconds * 1000).slice(11, whole ? 19 : 16);

// An instant as a field for date and time shows it, and back, in the zone in use.
export const fieldText = (ms) => formatted(ms).replace(" ", "T");
export const fieldInstant = (text) => (text ? localInstant(text) : NaN);

export function startTimes() {
  const button = document.querySelector("[data-act='zone']");
  const show = () => {
    if (button) {
      button.textContent = zoneWords();
      button.title = utc ? `Show them in ${zoneName}` : "Show them in UTC";
    }
    showTimes();
  };
  button?.addEventListener("click", () => {
    utc = !utc;
    localStorage.setItem("tocsin.zone", utc ? "utc" : "own");
    show();
    document.dispatchEvent(new CustomEvent("tocsin:zone"));
  });
  show();
  setInterval(() => { if (!document.hidden) countAll(); }, 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) countAll(); });
  document.addEventListener("pointerover", explain);
  document.addEventListener("focusin", explain);
}
