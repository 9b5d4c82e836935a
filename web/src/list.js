// The list: selection, bulk actions and filters.
import { nextLink } from "./rows.js";
import { put } from "./times.js";
import { counted, number } from "./toast.js";

const boxes = () => [...document.querySelectorAll("#results tbody .pick input:enabled")];

function showPicked() {
  const bar = document.getElementById("picked");
  if (!bar) return;
  const every = boxes();
  const picked = every.filter((box) => box.checked);
  bar.toggleAttribute("data-some", picked.length > 0);
  const { noun, view } = document.getElementById("results").dataset;
  // A call that runs is due at 0: it neither waits nor has finished.
  const due = picked.map((box) => box.closest("tr").dataset.due);
  const waits = due.some((at) => Number(at) > 0);
  const finished = due.filter((at) => at === undefined).length;
  const part = finished === picked.length ? "finished" : `${number(finished)} finished`;
  if (picked.length) put(document.getElementById("picked-count"), `${counted(picked.length, noun)} selected${finished ? `, ${part}` : ""}`);
  const cancel = document.getElementById("cancel-picked");
  cancel.disabled = !waits;
  cancel.title = waits ? "" : `None of the selected ${noun}s waits`;
  document.getElementById("again-picked").hidden = !finished;
  const whole = document.getElementById("pick-all");
  whole.checked = picked.length > 0 && picked.length === every.length;
  whole.indeterminate = picked.length > 0 && !whole.checked;
  const matching = document.getElementById("pick-matching");
  matching.hidden = !(whole.checked && nextLink() && matching.dataset.views.split(" ").includes(view));
}

function unpick() {
  for (const box of boxes()) box.checked = false;
  showPicked();
}

let lastPicked = null;

// Shift-click selects all rows between two checkboxes.
function pick({ target, shiftKey }) {
  const box = target.closest(".pick input");
  if (!box) return;
  const every = boxes();
  const [from, to] = [every.indexOf(lastPicked), every.indexOf(box)].sort((a, b) => a - b);
  if (box.id === "pick-all") for (const each of every) each.checked = box.checked;
  else if (shiftKey && from >= 0) for (const each of every.slice(from, to + 1)) each.checked = box.checked;
  if (box.id !== "pick-all") lastPicked = box;
  showPicked();
}

function unfilter(chip) {
  chip.remove();
  document.getElementById("q").focus();
  document.getElementById("filters").requestSubmit();
}

// The server makes chips of words in the search field such as `tag:eu`. Meanwhile more may have been typed.
function startChips() {
  const field = document.getElementById("q");
  document.addEventListener("tocsin:taken", ({ detail: { sent, left } }) => {
    if (field.value.startsWith(sent)) field.value = [left, field.value.slice(sent.length)].filter(Boolean).join(" ");
  });
  // What was typed is known already: to leave the field changes nothing, and the rows that are about to be selected stay.
  field.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("keydown", (event) => {
    const last = [...document.querySelectorAll(".filter-chip")].at(-1);
    if (event.key === "Backspace" && !field.value && last) unfilter(last);
  });
  // The pause after the last key may end while the list that Enter asked for is loading; it would take that one's place.
  let entered = false;
  field.form.addEventListener("submit", () => { entered = true; });
  field.addEventListener("input", () => { entered = false; });
  field.addEventListener("htmx:confirm", (event) => { if (entered) event.preventDefault(); });
}

export function startList() {
  if (!document.getElementById("results")) return;
  startChips();
  document.addEventListener("click", pick);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act='unpick'], [data-act='unfilter']");
    if (!button) return;
    event.preventDefault();
    if (button.dataset.act === "unpick") unpick();
    else unfilter(button.parentElement);
  });
  document.addEventListener("tocsin:many", unpick);
  // A filter that is changed while a tab is loading applies to that tab.
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.(".tabs a");
    if (tab && !event.ctrlKey && !event.metaKey && !event.shiftKey) document.getElementById("view").value = new URL(tab.href).searchParams.get("view");
  });
  showPicked();
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!event.target.matches("#dialog-body, .badge")) showPicked();
  });
  document.addEventListener("tocsin:rows", () => { if (document.querySelector("#picked[data-some]")) showPicked(); });
}
