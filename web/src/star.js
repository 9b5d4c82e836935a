// Favourites: the star changes at once, and back with the reason when the server refuses.
import { post, sayAnswer } from "./say.js";

const under = new Set();

function show(button, starred) {
  button.setAttribute("aria-pressed", String(starred));
  button.name = starred ? "unstar" : "star";
}

async function change(button) {
  if (under.has(button.value)) return;
  under.add(button.value);
  const starred = button.getAttribute("aria-pressed") !== "true";
  const body = new URLSearchParams([["tenant", button.form.elements.tenant.value], [button.name, button.value]]);
  show(button, starred);
  try {
    const answer = await post(button.form.getAttribute("action"), body);
    if (!answer.ok) show(button, !starred);
    if (!answer.ok) sayAnswer(answer);
  } catch {
    show(button, !starred);
    sayAnswer(null);
  } finally {
    under.delete(button.value);
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
