// Toasts, which screen readers announce, requests whose errors they show, and the notice of an action.
const SHOWN_MS = 5000;
const UNDO_MS = 10000;

function put(toast, ms) {
  const toasts = document.getElementById("toasts");
  while (toasts.children.length > 2) toasts.firstChild.remove();
  toasts.append(toast);
  // It stays while somebody is about to use it.
  const end = () => (toast.matches(":hover, :focus-within") ? setTimeout(end, SHOWN_MS) : toast.remove());
  setTimeout(end, ms);
}

export function showToast(text, tone) {
  // Behind an open dialog it would not be seen.
  const status = document.querySelector("#dialog[open] [role='status']");
  if (status) { status.textContent = text; return; }
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.dataset.tone = tone;
  toast.textContent = text;
  put(toast, tone === "failed" ? 2 * SHOWN_MS : SHOWN_MS);
}

// What can be undone is a toast. Any other notice of an action disappears when the timer or call changes, but not before it could be read: many a call succeeds
// before the page that reports its submission is drawn.
export function startNotice() {
  for (const notice of document.querySelectorAll("main [data-undo]")) {
    notice.className = "toast";
    put(notice, UNDO_MS);
  }
  const readable = new Promise((done) => setTimeout(done, SHOWN_MS));
  document.body.addEventListener("tocsin:changed", async () => {
    await readable;
    for (const notice of document.querySelectorAll("main > [data-action-notice]")) notice.remove();
  });
}

// By id: a selector for open dialogs would be compared with every element of a long list.
export const dialogIsOpen = () => ["dialog", "help", "palette"].some((id) => document.getElementById(id)?.open);

// A request that nobody asked for counts as no use of the sign-in, and is given up once the server takes longer than it lets any
// page wait.
const BACKGROUND_MS = 30000;

// Posts form fields with the CSRF token.
export function post(url, body, options = {}) {
  const token = document.querySelector("meta[name='csrf']").content;
  return fetch(url, { ...options, method: "POST", body, headers: { "x-csrf-token": token, "hx-request": "true", ...options.headers } });
}

// The answer to a request for a part of a page. Throws an error response, and what fetch() throws without a response.
// `background`: the page asks by itself, and stays where it is without a sign-in.
export async function ask(url, { body, background = false } = {}) {
  const options = background ? { headers: { "tocsin-background": "true" }, signal: AbortSignal.timeout(BACKGROUND_MS) } : {};
  const answer = await (body ? post(url, body, options) : fetch(url, { ...options, headers: { "hx-request": "true", ...options.headers } }));
  if (answer.status === 401 && !background) location.reload();
  if (!answer.ok) throw answer;
  return answer;
}

export const load = async (url, options) => new DOMParser().parseFromString(await (await ask(url, options)).text(), "text/html");

export const number = (value) => value.toLocaleString("en");
export const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

// Shows the reason of an error response; null means that there was no response; the server may have acted all the same.
export function showError(answer) {
  if (answer === null) { showToast("The server does not respond. It may have been changed: reload the page to see.", "failed"); return; }
  if (answer.status === 401) { location.reload(); return; }
  const toast = JSON.parse(answer.headers.get("hx-trigger") ?? "{}")["tocsin:toast"];
  showToast(toast?.text ?? `The server refused the request (${answer.status}).`, "failed");
}
