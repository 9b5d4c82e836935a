// Toasts: short, out of the way, read out. And requests whose answers are said.
const SHOWN_MS = 5000;

export function say(text, tone) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.dataset.tone = tone;
  toast.textContent = text;
  const toasts = document.getElementById("toasts");
  while (toasts.children.length > 2) toasts.firstChild.remove();
  toasts.append(toast);
  setTimeout(() => toast.remove(), tone === "failed" ? 2 * SHOWN_MS : SHOWN_MS);
}

// Asked by id: to find out that no dialog has the attribute, a browser looks at every element of a long list.
export const dialogIsOpen = () => ["dialog", "help"].some((id) => document.getElementById(id)?.open);

// A form's fields, sent as one of our own pages sends them.
export function post(url, body) {
  const token = document.querySelector("meta[name='csrf']").content;
  return fetch(url, { method: "POST", body, headers: { "x-csrf-token": token, "hx-request": "true" } });
}

// The reason that a refusal brings; null is no answer at all.
export function sayAnswer(answer) {
  if (answer === null) { say("The server does not answer. Nothing was done.", "failed"); return; }
  if (answer.status === 401) { location.reload(); return; }
  const said = JSON.parse(answer.headers.get("hx-trigger") ?? "{}")["tocsin:said"];
  say(said?.text ?? `The server refused it (${answer.status}).`, "failed");
}
