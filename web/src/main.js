// What every page has. Each part looks for what it belongs to and does nothing where that is missing; after htmx has put
// new content into the page, the parts that care look again.
import htmx from "htmx.org";
import { startTimes, showTimes } from "./times.js";
import { startLive } from "./live.js";
import { startList } from "./list.js";
import { startForm } from "./form.js";
import { startKeys } from "./keys.js";
import { startRows } from "./rows.js";
import { startSend } from "./send.js";
import { startStars } from "./star.js";
import { say } from "./say.js";

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
    // Without https only an old way is left.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.dataset.copied = "";
  say("Copied.", "done");
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
// A choice that leads to another page. Nothing chosen is the page as it is called without.
document.addEventListener("change", ({ target }) => {
  if (!("go" in target.dataset)) return;
  if (target.value) target.form.requestSubmit();
  else location.assign(target.form.action);
});
document.addEventListener("tocsin:said", (event) => say(event.detail.text, event.detail.tone));
document.addEventListener("htmx:sendError", () => say("The server does not answer. What you see is as it was.", "failed"));
document.addEventListener("htmx:afterSwap", (event) => {
  showTimes(event.target);
  if (event.target.id === "dialog-body") document.getElementById("dialog").showModal();
});

document.addEventListener("htmx:oobAfterSwap", (event) => showTimes(event.target));
// What an action said of a timer or call is so until that changes.
document.body.addEventListener("tocsin:changed", () => { for (const said of document.querySelectorAll("main > [data-said]")) said.remove(); });

// A button that was pressed shall not be pressed twice.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || !button || event.target.method !== "post") return;
  setTimeout(() => (button.disabled = true));
  addEventListener("pageshow", () => (button.disabled = false), { once: true });
});

// What an action said is said once, not again with each reload.
if (new URLSearchParams(location.search).has("did")) {
  const here = new URL(location);
  for (const name of ["did", "of"]) here.searchParams.delete(name);
  history.replaceState(history.state, "", here);
}

startTimes();
startRows();
startList();
startStars();
startForm();
startSend();
startKeys();
startLive();

const charts = document.querySelector("[data-charts]");
if (charts) import(charts.dataset.src).then((part) => part.startCharts(document.getElementById("main")));
