// The panel beside a list: it shows the row that was clicked, or that the keys lead to, without leaving the list.
import htmx from "htmx.org";
import { morph } from "./morph.js";
import { showTimes } from "./times.js";
import { load, showToast } from "./toast.js";

const PHONE = matchMedia("(max-width: 719px)");
let turn = 0;
let shownId = null;

const panel = () => document.getElementById("peek");
const rows = () => [...document.querySelectorAll("#results tbody tr[data-id]")];
const shownRow = () => (shownId === null ? null : rows().find((row) => row.dataset.key === shownId));

export const peekIsOpen = () => shownId !== null && !panel()?.hidden;

async function show(row, background = false) {
  const mine = (turn += 1);
  const { href } = row.querySelector("a.id");
  const link = new URL(href);
  link.searchParams.set("peek", "");
  try {
    const next = (await load(link, { background })).getElementById("peeked");
    const place = panel();
    if (!next || mine !== turn || !place) return;
    showTimes(next);
    const now = place.firstElementChild;
    // Another timer comes in as a whole; the same one changes in place.
    if (now && place.dataset.of === href) morph(now, next);
    else place.replaceChildren(document.importNode(next, true));
    place.dataset.of = href;
    place.hidden = false;
    htmx.process(place);
  } catch (answer) {
    if (mine === turn) showToast(answer instanceof Response ? "The timer could not be loaded." : "The server does not respond.", "failed");
  }
}

// Shows what became of the row in the panel.
export function refreshPeek() {
  const row = shownRow();
  if (row) show(row);
}

export function peek(row) {
  if (!panel() || PHONE.matches) return;
  shownRow()?.removeAttribute("aria-current");
  shownId = row.dataset.key;
  row.setAttribute("aria-current", "true");
  show(row);
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
  const next = all[all.findIndex((row) => row.dataset.key === shownId) + by];
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
  document.addEventListener("tocsin:row", ({ detail }) => {
    if (!detail.hasAttribute("aria-current")) return;
    // A run that has ended is known by another key.
    shownId = detail.dataset.key;
    show(detail, true);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "results" && event.detail.target?.id !== "results") return;
    const row = shownRow();
    if (row) peek(row);
    else shownId = null;
  });
}
