// Keyboard shortcuts: / n j k p x r g ?. They do not apply while a field has the focus.
import { peek, peekIsOpen } from "./peek.js";
import { dialogIsOpen } from "./toast.js";

const PAGES = { o: "/", t: "/timers", d: "/schedules", l: "/calls", c: "/nodes", s: "/namespaces" };
const GO_MS = 1200;
let going = 0;

const typing = (element) => element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) && !/^(checkbox|radio)$/.test(element.type) || element.shadowRoot;
const rows = () => [...document.querySelectorAll("#results tbody tr")];

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  all[at]?.classList.remove("at");
  next.classList.add("at");
  next.querySelector("a.id").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  if (peekIsOpen()) peek(next);
}

const keys = {
  "/": () => {
    const search = document.getElementById("q");
    if (search) { search.focus(); search.select(); } else location.assign("/timers");
  },
  n: () => location.assign(document.querySelector("[data-new]")?.href ?? (location.pathname.startsWith("/schedules") ? "/schedules/new" : "/timers/new")),
  j: () => step(1),
  k: () => step(-1),
  p: () => { const row = document.querySelector("#results tr.at"); if (row) peek(row); },
  x: () => document.querySelector("#results tr.at .pick input")?.click(),
  r: () => { const filters = document.getElementById("filters"); if (filters) filters.requestSubmit(); else location.reload(); },
  g: () => { going = Date.now(); },
  "?": () => document.getElementById("help").showModal(),
};

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || dialogIsOpen()) return;
    if (Date.now() - going < GO_MS && PAGES[event.key]) { location.assign(PAGES[event.key]); return; }
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
