// The list: selecting many, and filters that keep their URL.
const boxes = () => [...document.querySelectorAll("#results tbody .pick input")];

function showPicked() {
  const all = boxes();
  const picked = all.filter((box) => box.checked);
  const bar = document.getElementById("picked");
  if (!bar) return;
  bar.toggleAttribute("data-some", picked.length > 0);
  const words = picked.length === 1 ? "1 timer selected" : `${picked.length} timers selected`;
  const count = document.getElementById("picked-count");
  if (picked.length && count.textContent !== words) count.textContent = words;
  const whole = document.getElementById("pick-all");
  whole.checked = picked.length > 0 && picked.length === all.length;
  whole.indeterminate = picked.length > 0 && picked.length < all.length;
  const { view } = document.getElementById("results").dataset;
  document.getElementById("pick-matching").hidden = !(whole.checked && document.querySelector("#follow a") && (view === "upcoming" || view === "all"));
}

function unpick() {
  for (const box of boxes()) box.checked = false;
  showPicked();
}

// More than the server cancels at once, or all that match, rows that are not here included: a dialog of its own counts them
// and goes on slice by slice.
async function cancelMany(event) {
  const button = event.target.closest?.("#picked .danger, #pick-matching");
  if (!button) return;
  const every = button.id === "pick-matching";
  const ids = every ? null : boxes().filter((box) => box.checked).map((box) => box.value);
  if (ids && ids.length <= Number(document.getElementById("picked").dataset.max)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const bulk = await import("./bulk.js");
  await bulk.cancelMany(button.dataset.bulk, ids, unpick);
}

let lastPicked = null;

function pick(event) {
  const box = event.target;
  if (box.id === "pick-all") for (const each of boxes()) each.checked = box.checked;
  else if (box.matches(".pick input")) lastPicked = box;
  else return;
  showPicked();
}

// With the shift key everything between two boxes.
function pickRange(event) {
  const box = event.target.closest?.(".pick input");
  if (!box || !event.shiftKey || !lastPicked || box.id === "pick-all") return;
  const all = boxes();
  const [from, to] = [all.indexOf(lastPicked), all.indexOf(box)].sort((a, b) => a - b);
  if (from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
  showPicked();
}

function showRange() {
  const due = document.getElementById("due");
  if (!due) return;
  const between = document.getElementById("between");
  const custom = due.value === "custom";
  between.hidden = !custom;
  for (const input of between.querySelectorAll("input")) input.disabled = !custom;
}

export function startList() {
  if (!document.getElementById("results")) return;
  document.addEventListener("change", pick);
  document.addEventListener("click", pickRange);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-act='unpick']")) unpick();
  });
  document.addEventListener("click", cancelMany, { capture: true });
  document.getElementById("due").addEventListener("change", showRange);
  // Filters that are chosen before a tab has come apply to that tab.
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.(".tabs a");
    if (tab && !event.ctrlKey && !event.metaKey && !event.shiftKey) document.getElementById("view").value = new URL(tab.href).searchParams.get("view");
  });
  showRange();
  showPicked();
  document.addEventListener("htmx:afterSwap", (event) => {
    const results = document.getElementById("results");
    document.getElementById("view").value = results.dataset.view;
    if (event.target.id !== "dialog-body") showPicked();
  });
  document.addEventListener("tocsin:rows", () => { if (document.querySelector("#picked[data-some]")) showPicked(); });
  // A browser's way back shows the page as it was then.
  addEventListener("popstate", () => location.reload());
}
