// Favourites: the star changes at once, and changes back with a toast if the server refuses.
import { post, showError } from "./toast.js";

const pending = new Set();

function show(button, starred) {
  button.setAttribute("aria-pressed", String(starred));
  button.name = starred ? "unstar" : "star";
}

async function change(button) {
  if (pending.has(button.value)) return;
  pending.add(button.value);
  const starred = button.getAttribute("aria-pressed") !== "true";
  const body = new URLSearchParams([[button.name, button.value]]);
  show(button, starred);
  try {
    const answer = await post(button.form.getAttribute("action"), body);
    if (!answer.ok) show(button, !starred);
    if (!answer.ok) showError(answer);
  } catch {
    show(button, !starred);
    showError(null);
  } finally {
    pending.delete(button.value);
  }
}

export function startStars() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.star");
    if (!button) return;
    event.preventDefault();
    change(button);
  });
}
