// Instants in the user's time zone, and relative times that count down, based on the server's clock.
const root = document.documentElement;
// The time since the response with the server's clock began to arrive.
const elapsed = performance.now() - (performance.getEntriesByType("navigation")[0]?.responseStart ?? performance.now());
const SKEW_MIN_MS = 1500;
// A small difference is explained by the network's latency and ignored.
const skew = Number(root.dataset.now) + elapsed - Date.now();
let skewMs = Math.abs(skew) < SKEW_MIN_MS ? 0 : skew;
const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
let utc = localStorage.getItem("tocsin.zone") === "utc";

export const shownZone = () => (utc ? "UTC" : zoneName);
export const nowMs = () => Date.now() + skewMs;

// The server's clock, which can be moved, shows this instant.
export function serverShows(ms) {
  if (Math.abs(ms - nowMs()) < SKEW_MIN_MS) return;
  skewMs = ms - Date.now();
  showTimes();
}

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

export function span(seconds, units = 2) {
  for (let i = 0; i < UNITS.length; i += 1) {
    const [size, unit] = UNITS[i];
    if (seconds < size) continue;
    const whole = Math.floor(seconds / size);
    if (i + 1 === UNITS.length || units === 1) return `${whole} ${unit}`;
    const [nextSize, nextUnit] = UNITS[i + 1];
    const rest = Math.floor((seconds - whole * size) / nextSize);
    return rest && whole < 10 ? `${whole} ${unit} ${rest} ${nextUnit}` : `${whole} ${unit}`;
  }
  return "0 s";
}

function relative(ms, units = 2) {
  const seconds = (ms - nowMs()) / 1000;
  // Rounded up, so that a countdown reaches 0 only when the instant has come.
  if (seconds > 0) return `in ${span(Math.ceil(seconds), units)}`;
  return seconds > -1 ? "now" : `${span(-seconds, units)} ago`;
}

function zoneWords(atMs = nowMs()) {
  if (utc) return "UTC";
  const minutes = -new Date(atMs).getTimezoneOffset();
  const size = Math.abs(minutes);
  const offset = minutes === 0 ? "" : `${minutes > 0 ? "+" : "−"}${Math.floor(size / 60)}${size % 60 ? `:${String(size % 60).padStart(2, "0")}` : ""}`;
  return zoneName === "UTC" ? "UTC" : `${zoneName} (UTC${offset})`;
}

export const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

export function showTimes(within = document) {
  for (const element of within.querySelectorAll(":is(time, text)[data-at]")) {
    const ms = Number(element.dataset.at);
    put(element, element.dataset.form === "minute" ? formatted(ms).slice(11, 16) : formatted(ms));
  }
  for (const element of within.querySelectorAll("[data-zone]")) put(element, element.dataset.zone === "name" ? (utc ? "UTC" : zoneName) : zoneWords());
  // In the reader's own zone both times of an instant are the same.
  for (const table of within.querySelectorAll("table[data-of-zone]")) table.toggleAttribute("data-own", table.dataset.ofZone === shownZone());
  count(within);
}

// The elements whose relative times are updated; a long list limits them to those in view.
let counted = () => [document];
export const countOnly = (places) => { counted = places; };
const countAll = () => { for (const place of counted()) count(place); };

// Shows the exact instant and its zone on hover and focus.
function explain(event) {
  const cell = event.target.closest?.("[data-cell]");
  if (cell) {
    // The server's instant is in UTC; the outcome follows it.
    const title = cell.querySelector("title");
    title.textContent = `${formatted(Number(cell.dataset.cell))}${title.textContent.slice(title.textContent.indexOf(","))}`;
    return;
  }
  const element = event.target.closest?.("time[data-at], [data-relative]");
  if (!element) return;
  const ms = Number(element.dataset.at ?? element.dataset.relative);
  const exact = element.dateTime ?? new Date(ms).toISOString();
  element.title = element.dateTime ? `${exact} · ${relative(ms)} · shown in ${zoneWords(ms)}` : `${formatted(ms)}, ${zoneWords(ms)} · ${exact}`;
}

// Relative times, and what has come due.
export function count(within) {
  for (const element of within.querySelectorAll("[data-relative]")) {
    const at = Number(element.dataset.relative);
    const ms = "past" in element.dataset ? Math.min(at, nowMs()) : at;
    put(element, relative(ms, "short" in element.dataset ? 1 : 2));
  }
  // What has come due keeps this state until the server reports the outcome.
  const now = nowMs();
  for (const element of within.querySelectorAll("[data-due]")) {
    const state = element.querySelector(".state");
    if (Number(element.dataset.due) <= now && state && (state.dataset.tone === "pending" || state.dataset.tone === "retrying")) {
      state.dataset.tone = "due";
      state.lastElementChild.textContent = "due";
      for (const words of element.querySelectorAll("[data-once-due]")) put(words, words.dataset.onceDue);
    }
  }
}

// The instants that a local date and time may mean, the earliest first: none if clocks skip it, two if it occurs twice.
function readings(localText) {
  const asUtc = new Date(`${localText}Z`).getTime();
  if (utc || Number.isNaN(asUtc)) return Number.isNaN(asUtc) ? [] : [asUtc];
  const offset = (ms) => -new Date(ms).getTimezoneOffset() * 60000;
  // The offsets before and after any clock change on that day.
  const offsets = new Set([offset(asUtc - 86400000), offset(asUtc + 86400000)]);
  return [...offsets].map((each) => asUtc - each).filter((ms) => asUtc - ms === offset(ms)).sort((a, b) => a - b);
}

// The instant of a local date and time: the first one, or, if clocks skip the time, later by the skipped interval.
function localInstant(localText) {
  return readings(localText)[0] ?? new Date(localText).getTime();
}

// The offset from UTC of a local date and time, in minutes.
export function zoneMinutes(localText) {
  const minutes = (new Date(`${localText}Z`).getTime() - localInstant(localText)) / 60000;
  return Number.isFinite(minutes) ? Math.round(minutes) : 0;
}

// An explanation of a local date and time, and its tone. `onPast`: what becomes of an instant in the past.
export function localWords(localText, onPast = "It fires at once.") {
  const ms = localInstant(localText);
  if (!localText || Number.isNaN(ms)) return ["", ""];
  const found = readings(localText).length;
  if (ms < nowMs()) return [`That was ${relative(ms)}. ${onPast}`, "retrying"];
  const shown = (each) => formatted(each).slice(11, 16);
  const written = localText.slice(11, 16);
  if (found === 0) return [`${written} does not exist on that day, because clocks go forward. It fires at ${shown(ms)}, ${relative(ms)}.`, "retrying"];
  if (found > 1) return [`${written} occurs twice on that day, because clocks go back. It fires at the first one, ${relative(ms)}.`, "retrying"];
  return [`That is ${relative(ms)}.`, ""];
}

// The time of day of an instant in seconds since 1970.
export const clock = (seconds, whole = false) => formatted(seconds * 1000).slice(11, whole ? 19 : 16);

// Converts between an instant and the value of a date and time field, in the selected zone.
export const fieldText = (ms) => formatted(ms).replace(" ", "T");
export const fieldInstant = (text) => (text ? localInstant(text) : NaN);

export function startTimes() {
  const button = document.querySelector("[data-act='zone']");
  const show = () => {
    if (button) {
      button.textContent = zoneWords();
      button.title = utc ? `Show times in ${zoneName}` : "Show times in UTC";
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
