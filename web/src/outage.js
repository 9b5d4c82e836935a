// What is out: the server reports it to open pages, which keep what they show, paler and with the time from which it is.
import { clock, put, showTimes } from "./times.js";
import { ask } from "./toast.js";

const AGAIN_MS = 5000;
let shown = "";
// What Now stated before the server stopped answering.
let verdict = null;
const main = () => document.getElementById("main");

// Shows what is out, as HTML; empty: nothing is. On Now the verdict states it.
export function showOutage(html) {
  const place = document.getElementById("outage");
  if (document.getElementById("sentence") || !place) return;
  // What is shown already is not announced once more.
  if (!html || html !== shown || !place.firstElementChild?.matches(":not([data-unreached])")) {
    place.innerHTML = html;
    showTimes(place);
    shown = html;
  }
  const asOf = place.querySelector("[data-as-of]")?.dataset.asOf;
  if (asOf) main().dataset.asOf = `As of ${clock(asOf / 1000, true)}`;
  else delete main().dataset.asOf;
  if (!html) readAgain();
}

// Shows that the server has not answered since an instant (ms): on Now as the verdict, elsewhere above the page.
export function showUnreached(sinceMs) {
  const title = `No answer from ${location.host} since ${clock(sinceMs / 1000, true)}.`;
  const sentence = document.getElementById("sentence");
  if (sentence) {
    if ("unreached" in sentence.dataset) return;
    const text = document.getElementById("sentence-text");
    verdict = { title: sentence.textContent, text: text.textContent, tone: sentence.dataset.tone };
    put(text, `Whether timers fire is not known here. All below is from then, when the verdict was: “${sentence.textContent}”`);
    put(sentence, title);
    Object.assign(sentence.dataset, { unreached: "", tone: "alarm" });
    return;
  }
  if (document.querySelector("#outage [data-unreached]")) return;
  const notice = document.getElementById("unreached").content.cloneNode(true);
  notice.querySelector("b").textContent = title;
  document.getElementById("outage").replaceChildren(notice);
}

const STOPPED = {
  401: ["You are signed out.", "Sign in"],
  403: ["The server no longer lets this page read what it shows.", "Reload"],
  404: ["What this page shows no longer exists.", "Reload"],
};

// Shows after which refusal (an HTTP status, and the server's words if it gave any) the page asks for nothing more, and from which
// instant (ms) is what it shows; 0: it goes on.
export function showStopped(status, asOfMs, words) {
  const place = document.getElementById("outage");
  if (!status) place?.querySelector("[data-stopped]")?.remove();
  if (!status || !place) return;
  const notice = document.getElementById("stopped").content.cloneNode(true);
  const here = location.pathname + location.search;
  const [title, action] = STOPPED[status];
  notice.querySelector("b").textContent = words || title;
  notice.querySelector("span").textContent = clock(asOfMs / 1000, true);
  Object.assign(notice.querySelector("a"), { textContent: action, href: status === 401 ? `/login?to=${encodeURIComponent(here)}` : here });
  place.replaceChildren(notice);
}

// The server answers again. On Now the verdict is the former one, as of then, until the next event.
export function showReached() {
  const sentence = document.getElementById("sentence");
  if (sentence && "unreached" in sentence.dataset) {
    put(sentence, verdict.title);
    put(document.getElementById("sentence-text"), verdict.text);
    sentence.dataset.tone = verdict.tone;
    delete sentence.dataset.unreached;
  }
  document.querySelector("#outage [data-unreached]")?.remove();
}

// What stands in place of “Live” while the page may be out of date; empty while it is not.
export const asOf = () => main().dataset.asOf ?? "";

// Loads a list that could not be read once it can be, unless a filter is being typed.
async function readAgain() {
  const results = document.querySelector("#results[data-unread]");
  if (!results || document.hidden || document.querySelector("#outage [data-stopped]")) return;
  try {
    const list = await (await ask(results.dataset.link, { background: true })).text();
    const typing = document.activeElement?.closest("#filters");
    if (!list.includes("data-unread") && !typing) location.reload();
  } catch {
    // The next try is soon.
  }
}

export function startOutage() {
  if (document.getElementById("results")) setInterval(readAgain, AGAIN_MS);
}
