// What is out: the server reports it to open pages, which keep what they show, paler and with the time from which it is.
import { clock, showTimes } from "./times.js";
import { ask } from "./toast.js";

const AGAIN_MS = 5000;
const main = () => document.getElementById("main");

// Shows what is out, as HTML; empty: nothing is. On Now the verdict states it.
export function showOutage(html) {
  const place = document.getElementById("outage");
  if (document.getElementById("sentence") || !place) return;
  place.innerHTML = html;
  showTimes(place);
  const asOf = place.querySelector("[data-as-of]")?.dataset.asOf;
  if (asOf) main().dataset.asOf = `As of ${clock(asOf / 1000, true)}`;
  else delete main().dataset.asOf;
  if (!html) readAgain();
}

// What stands in place of “Live” while the page may be out of date; empty while it is not.
export const asOf = () => main().dataset.asOf ?? "";

// Loads a list that could not be read once it can be, unless a filter is being typed.
async function readAgain() {
  const results = document.querySelector("#results[data-unread]");
  if (!results || document.hidden) return;
  try {
    const list = await (await ask(results.dataset.link)).text();
    const typing = document.activeElement?.closest("#filters");
    if (!list.includes("data-unread") && !typing) location.reload();
  } catch {
    // The next try is soon.
  }
}

export function startOutage() {
  if (document.getElementById("results")) setInterval(readAgain, AGAIN_MS);
}
