// The list: selection, bulk actions and filters.
import { fieldInstant, fieldText } from "./times.js";

const boxes = () => [...document.querySelectorAll("#results tbody .pick input")];

function showPicked() {
  const every = boxes();
  const picked = every.filter((box) => box.checked);
  const bar = document.getElementById("picked");
  if (!bar) return;
  bar.toggleAttribute("data-some", picked.length > 0);
  // A call that runs is due at 0: it neither waits nor has finished.
  const due = picked.map((box) => box.closest("tr").dataset.due);
  const finished = due.filter((at) => at === undefined).length;
  const waits = due.some((at) => Number(at) > 0);
  const { noun } = document.getElementById("results").dataset;
  const words = `${picked.length} ${noun}${picked.length === 1 ? "" : "s"} selected${finished ? `, ${finished === picked.length ? "finished" : `${finished} finished`}` : ""}`;
  const count = document.getElementById("picked-count");
  if (picked.length && count.textContent !== words) count.textContent = words;
  const cancel = document.getElementById("cancel-picked");
  cancel.disabled = !waits;
  cancel.title = waits ? "" : `None of the selected ${noun}s waits`;
  document.getElementById("again-picked").hidden = !finished;
  const whole = document.getElementById("pick-all");
  whole.checked = picked.length > 0 && picked.length === every.length;
  whole.indeterminate = picked.length > 0 && picked.length < every.length;
  const { view } = document.getElementById("results").dataset;
  const matching = document.getElementById("pick-matching");
  matching.hidden = !(whole.checked && document.querySelector("#follow a") && matching.dataset.views.split(" ").includes(view));
}

function unpick() {
  for (const box of boxes()) box.checked = false;
  showPicked();
}

let lastPicked = null;

function pick(event) {
  const box = event.target;
  if (box.id === "pick-all") for (const each of boxes()) each.checked = box.checked;
  else if (box.matches(".pick input")) lastPicked = box;
  else return;
  showPicked();
}

// Shift-click selects all rows between two checkboxes.
function pickRange(event) {
  const box = event.target.closest?.(".pick input");
  if (!box || !event.shiftKey || !lastPicked || box.id === "pick-all") return;
  const all = boxes();
  const [from, to] = [all.indexOf(lastPicked), all.indexOf(box)].sort((a, b) => a - b);
  if (from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
  showPicked();
}

// A time range is shown and entered in the user's time zone. The request and the URL have UTC, so that the URL can be shared.
function startBounds() {
  for (const field of document.querySelectorAll("#between [data-utc]")) field.value = field.value && fieldText(new Date(`${field.value}Z`).getTime());
  document.addEventListener("htmx:configRequest", ({ detail: { formData } }) => {
    for (const name of ["from", "to"]) if (formData.get(name)) formData.set(name, `${new Date(fieldInstant(formData.get(name))).toISOString().slice(0, 19)}Z`);
  });
  document.addEventListener("tocsin:zone", () => { if (document.querySelector("#due")?.value === "custom") location.reload(); });
}

// Words such as `tag:eu` in the search field become chips, each with a hidden field of its own.
const PARAMETERS = { tag: "tag", to: "destination", error: "error", ns: "namespace" };

function chip(word, value) {
  const made = document.createElement("span");
  made.className = "filter-chip";
  const name = document.createElement("em");
  name.textContent = word;
  const field = Object.assign(document.createElement("input"), { type: "hidden", name: PARAMETERS[word], value });
  const remove = Object.assign(document.createElement("a"), { href: "#" });
  remove.dataset.act = "unfilter";
  remove.setAttribute("aria-label", `Remove ${word} ${value}`);
  remove.append(document.querySelector("#search > .icon").cloneNode());
  remove.firstChild.innerHTML = "<path d='m4 4 8 8M12 4l-8 8'/>";
  made.append(name, value, field, remove);
  return made;
}

// Whether a word was taken out of the field: after a space, at the end of typing, or as one of those that are offered.
function takeWord(field, whole) {
  const found = /(?:^|\s)(tag|to|error|ns):(\S.*?)(\s+)?$/.exec(field.value);
  const offered = found && [...field.list.options].some((option) => option.value === found[0].trim());
  if (!found || !(whole || found[3] || offered)) return false;
  const [text, word, value] = found;
  if (word === "ns") {
    const here = new URL(location);
    here.searchParams.set("namespace", value);
    here.searchParams.delete("cursor");
    location.assign(here);
    return true;
  }
  field.value = field.value.slice(0, found.index);
  if (word !== "tag") document.querySelector(`#search input[name="${PARAMETERS[word]}"]`)?.parentElement.remove();
  document.querySelector("#search > label").before(chip(word, value));
  return text !== "";
}

function startChips() {
  const field = document.getElementById("q");
  if (!field) return;
  const form = field.form;
  // In the capture phase, before the form is sent because of the input.
  field.addEventListener("input", (event) => {
    if (!takeWord(field, false)) return;
    event.stopImmediatePropagation();
    form.requestSubmit();
  }, { capture: true });
  form.addEventListener("submit", () => takeWord(field, true), { capture: true });
  field.addEventListener("keydown", (event) => {
    const last = [...document.querySelectorAll(".filter-chip")].at(-1);
    if (event.key !== "Backspace" || field.value || !last) return;
    last.remove();
    form.requestSubmit();
  });
  document.getElementById("search").addEventListener("click", (event) => {
    const remove = event.target.closest("[data-act='unfilter']");
    if (!remove) return;
    event.preventDefault();
    remove.parentElement.remove();
    field.focus();
    form.requestSubmit();
  });
}

export function startList() {
  if (!document.getElementById("results")) return;
  startBounds();
  startChips();
  document.addEventListener("change", pick);
  document.addEventListener("click", pickRange);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-act='unpick']")) unpick();
  });
  document.addEventListener("tocsin:many", unpick);
  // A filter that is changed while a tab is loading applies to that tab.
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.(".tabs a");
    if (tab && !event.ctrlKey && !event.metaKey && !event.shiftKey) document.getElementById("view").value = new URL(tab.href).searchParams.get("view");
  });
  showPicked();
  document.addEventListener("htmx:afterSwap", (event) => {
    const results = document.getElementById("results");
    document.getElementById("view").value = results.dataset.view;
    if (event.target.id !== "dialog-body") showPicked();
  });
  document.addEventListener("tocsin:rows", () => { if (document.querySelector("#picked[data-some]")) showPicked(); });
  // Going back in the browser's history reloads the page of that URL.
  addEventListener("popstate", () => location.reload());
}
