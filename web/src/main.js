// The script of every page. Each module looks for its elements and does nothing where they are missing; modules that must
// follow content swapped in by htmx listen for its events.
import htmx from "htmx.org";
import { startTimes, showTimes, shownZone } from "./times.js";
import { startLive } from "./live.js";
import { startList } from "./list.js";
import { startForm } from "./form.js";
import { startKeys } from "./keys.js";
import { openPalette, startPalette } from "./palette.js";
import { startOutage } from "./outage.js";
import { startPeek } from "./peek.js";
import { startRows } from "./rows.js";
import { startSend } from "./send.js";
import { startStars } from "./star.js";
import { showToast, startNotice } from "./toast.js";

htmx.config.allowEval = false;

function nextTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("tocsin.theme", root.dataset.theme);
  document.dispatchEvent(new CustomEvent("tocsin:theme"));
}

async function copy(button) {
  const text = button.dataset.copy ?? button.closest("[data-id]").dataset.id;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard API requires HTTPS.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.dataset.copied = "";
  showToast("Copied.", "done");
  setTimeout(() => delete button.dataset.copied, 1500);
}

function nextRows(button) {
  const compact = document.documentElement.dataset.rows !== "compact";
  if (compact) document.documentElement.dataset.rows = "compact";
  else delete document.documentElement.dataset.rows;
  localStorage.setItem("tocsin.rows", compact ? "compact" : "");
  button.setAttribute("aria-pressed", String(compact));
}

const acts = {
  rows: nextRows,
  theme: nextTheme,
  palette: openPalette,
  help: () => document.getElementById("help").showModal(),
  close: (button) => button.closest("dialog").close(),
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act], [data-copy], [data-copy-id]");
  if (button && !button.dataset.act) copy(button);
  else if (button) acts[button.dataset.act]?.(button);
  // A menu closes when something else is clicked.
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
// A select that leads to another page; the empty choice leads to the page without a query.
document.addEventListener("change", ({ target }) => {
  if (!("go" in target.dataset)) return;
  if (target.value) target.form.requestSubmit();
  else location.assign(target.form.action);
});
document.addEventListener("tocsin:toast", (event) => showToast(event.detail.text, event.detail.tone));
document.addEventListener("htmx:sendError", ({ detail }) => {
  // Nobody has asked for a number beside another page.
  if (detail.elt.matches(".badge")) return;
  const means = detail.elt.closest("dialog") ? "It may have done what was asked for: look at the list before you ask again." : "The page shows earlier data.";
  showToast(`The server does not respond. ${means}`, "failed");
});
document.addEventListener("htmx:afterSwap", (event) => {
  showTimes(event.target);
  if (event.target.id === "dialog-body" && !event.target.parentElement.open) event.target.parentElement.showModal();
});

document.addEventListener("htmx:oobAfterSwap", (event) => showTimes(event.target));

// Disables a submit button while its form is being sent.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || !button || event.target.method !== "post") return;
  setTimeout(() => (button.disabled = true));
  addEventListener("pageshow", () => (button.disabled = false), { once: true });
});

// Removes the notice from the URL, so that a reload does not repeat it.
if (new URLSearchParams(location.search).has("notice")) {
  const here = new URL(location);
  for (const name of ["notice", "of"]) here.searchParams.delete(name);
  history.replaceState(history.state, "", here);
}

// A page whose address has no scope, such as that of one timer, leads back to the scope that its tab came from.
const scoped = [...document.querySelectorAll(".rail-nav a[data-scoped]")];
const isScoped = scoped.some((link) => link.pathname === location.pathname);
if (isScoped) sessionStorage.setItem("tocsin.scope", new URLSearchParams(location.search).get("namespace") ?? "");
const scope = sessionStorage.getItem("tocsin.scope");
if (scope && !isScoped) {
  for (const link of scoped) link.search = new URLSearchParams({ namespace: scope });
  document.querySelector("#scope > summary span").textContent = scope;
  document.querySelector("#scope > summary").setAttribute("aria-label", `Scope: ${scope}`);
}

// A day is one of the reader's zone, unless another is chosen.
if (document.querySelector("[data-own-zone]") && shownZone() !== "UTC") {
  const here = new URL(location);
  here.searchParams.set("zone", shownZone());
  location.replace(here);
}

// Shows the value of a range beside it.
document.addEventListener("input", ({ target }) => {
  if (target.dataset?.shownBy) document.getElementById(target.dataset.shownBy).value = target.value;
});

startTimes();
startNotice();
startRows();
startList();
startStars();
startForm();
startSend();
startKeys();
startPalette();
startPeek();
startLive();
startOutage();
