// The panel beside a list: it shows the row that was clicked, or that the keys lead to, without leaving the list.
import { Idiomorph } from "idiomorph";
import htmx from "htmx.org";
import { keyOf } from "./rows.js";
import { showTimes } from "./times.js";
import { showToast } from "./toast.js";

const PHONE = matchMedia("(max-width: 719px)");
let turn = 0;
let shownId = null;

const panel = () => document.getElementById("peek");
const rows = () => [...document.querySelectorAll("#results tbody tr[data-id]")];
const shownRow = () => (shownId === null ? null : rows().find((row) => keyOf(row) === shownId));

export const peekIsOpen = () => shownId !== null && !panel()?.hidden;

async function load(row) {
  const mine = (turn += 1);
  const link = new URL(row.querySelector("a.id").href);
  link.searchParams.set("peek", "");
  try {
    const answer = await fetch(link, { headers: { "hx-request": "true" } });
    const place = panel();
    if (mine !== turn || !place) return;
    if (!answer.ok) { showToast("The timer could not be loaded.", "failed"); return; }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("peeked");
    if (!next || mine !== turn) return;
    showTimes(next);
    const now = place.firstElementChild;
    // Another timer comes in as a whole; the same one changes in place.
    if (now && place.dataset.of === keyOf(row)) Idiomorph.morph(now, next, { callbacks: { beforeAttributeUpdated: (name) => name !== "open" } });
    else place.replaceChildren(document.importNode(next, true));
    place.dataset.of = keyOf(row);
    place.hidden = false;
    htmx.process(place);
  } catch {
    showToast("The server does not respond.", "failed");
  }
}

export function peek(row) {
  if (!panel() || PHONE.matches) return;
  shownRow()?.removeAttribute("aria-current");
  shownId = keyOf(row);
  row.setAttribute("aria-current", "true");
  load(row);
}

function close() {
  shownRow()?.removeAttribute("aria-current");
  shownId = null;
  turn += 1;
  const place = panel();
  if (!place) return;
  place.hidden = true;
  place.replaceChildren();
}

function step(by) {
  const all = rows();
  const next = all[all.findIndex((row) => keyOf(row) === shownId) + by];
  if (!next) return;
  peek(next);
  next.scrollIntoView({ block: "nearest" });
}

const acts = { "peek-next": () => step(1), "peek-previous": () => step(-1), "peek-close": close };

export function startPeek() {
  document.addEventListener("click", (event) => {
    const act = acts[event.target.closest?.("[data-act]")?.dataset.act];
    if (act) { act(); return; }
    const row = event.target.closest?.("#results tbody tr[data-id]");
    if (row && panel() && !event.target.closest("a, button, input, label, summary") && !getSelection().toString()) peek(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && peekIsOpen() && !document.querySelector("dialog[open], details.menu[open]")) close();
  });
  // The list's live updates, and its replacement by other rows.
  document.addEventListener("tocsin:row", ({ detail }) => { if (keyOf(detail) === shownId) load(detail); });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "results" && event.detail.target?.id !== "results") return;
    const row = shownRow();
    if (row) peek(row);
    else shownId = null;
  });
}
