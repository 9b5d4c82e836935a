// Toasts: short, out of the way, read out.
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
