// Forms marked data-send stay on the page until the server responds, so that no input is lost if the server is unreachable.
// Without scripts they are sent as usual.
import htmx from "htmx.org";
import { setUpForm } from "./form.js";
import { refreshPeek } from "./peek.js";
import { showTimes } from "./times.js";
import { showToast } from "./toast.js";

// The timeout of a request.
const ANSWER_MS = 60000;

const ask = (url, options) => fetch(url, { ...options, headers: { accept: "text/html" }, signal: AbortSignal.timeout(ANSWER_MS) });
const leadsToSignIn = (answer) => answer.redirected && new URL(answer.url).pathname === "/login";
// A form without a sign-in is led to the sign-in alone. One that was accepted leads to a page, and if that needs a sign-in again,
// as after the own key was revoked, the sign-in leads back to it.
const wasAccepted = (answer) => new URL(answer.url).searchParams.has("to");

// Somebody may have signed in again in another tab, and the tokens of this page belong to the sign-in before: its forms get the
// present one. Returns the new token, if there is one, and whether there is no sign-in any more.
async function renewToken() {
  const answer = await ask(location.href);
  if (leadsToSignIn(answer)) return { signedOut: true };
  const now = document.querySelector("meta[name='csrf']");
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("meta[name='csrf']");
  if (!next || next.content === now.content) return {};
  for (const each of document.querySelectorAll("input[name='csrf']")) each.value = next.content;
  now.content = next.content;
  return { token: next.content };
}

async function send(form, submitter) {
  const url = form.getAttribute("action");
  const body = new URLSearchParams(new FormData(form, submitter));
  for (const notice of document.querySelectorAll("[data-notice]")) notice.remove();
  if (submitter) submitter.disabled = true;
  let answer;
  let text;
  let signedOut = false;
  try {
    answer = await ask(url, { method: "POST", body });
    if (answer.status === 403) {
      // A refused request has changed nothing, even if there is no answer to this one.
      const renewed = await renewToken().catch(() => ({}));
      signedOut = renewed.signedOut;
      if (renewed.token) {
        body.set("csrf", renewed.token);
        answer = await ask(url, { method: "POST", body });
      }
    }
    text = answer.redirected ? "" : await answer.text();
  } catch {
    const kept = form.querySelector(".submit") ? " Your input is kept." : "";
    notify(form, submitter, `The server can’t be reached. It is unknown whether the request was processed.${kept}`);
    return;
  } finally {
    if (submitter) submitter.disabled = false;
  }
  if (signedOut || leadsToSignIn(answer) && !wasAccepted(answer)) {
    notify(form, submitter, "You are no longer signed in. Nothing was changed. Sign in in another tab, then try again here.", "/login");
  } else if (answer.redirected) {
    location.assign(answer.url);
  } else {
    show(form, submitter, answer, new DOMParser().parseFromString(text, "text/html"));
  }
}

// Replaces the page with the response; an error is shown beside the input.
function show(form, submitter, answer, page) {
  const next = page.getElementById("main");
  const reason = next?.querySelector("[role='alert']")?.textContent.trim() || `The server refused the request (${answer.status}).`;
  if (form.closest("#peek")) {
    // The answer is the page of what the panel shows; this one remains that of the list.
    showToast(reason, "failed");
    refreshPeek();
    return;
  }
  if (!next || "refused" in next.dataset) {
    notify(form, submitter, reason);
    return;
  }
  document.getElementById("dialog").close();
  document.getElementById("dialog-body").replaceChildren();
  const main = document.getElementById("main");
  main.replaceChildren(...document.importNode(next, true).childNodes);
  document.title = page.title;
  htmx.process(main);
  showTimes(main);
  setUpForm();
  const first = main.querySelector("[autofocus]");
  if (first) focusOn(first);
  else scrollTo(0, 0);
}

// Focuses the editor instead of the field that it hides.
function focusOn(element) {
  const editor = element.hidden && element.nextElementSibling?.shadowRoot?.querySelector(".cm-content");
  (editor || element).focus();
  (editor || element).scrollIntoView({ block: "center" });
}

function notify(form, submitter, words, link) {
  const notice = document.createElement("div");
  notice.className = "notice failed";
  notice.dataset.notice = "";
  notice.setAttribute("role", "alert");
  const text = document.createElement("span");
  text.textContent = words;
  const retry = document.createElement("button");
  retry.type = "button";
  retry.className = "button";
  retry.textContent = "Try again";
  retry.addEventListener("click", () => send(form, submitter));
  notice.append(text, retry);
  if (link) {
    const leads = document.createElement("a");
    Object.assign(leads, { href: link, target: "_blank", className: "button", textContent: "Sign in" });
    notice.append(leads);
  }
  const row = form.querySelector(".submit");
  if (row) row.before(notice);
  else (form.closest("dialog") ? form : document.querySelector("main .head") ?? form).after(notice);
  notice.scrollIntoView({ block: "nearest" });
  retry.focus({ preventScroll: true });
}

export function startSend() {
  const handle = (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    send(event.target, event.submitter);
  };
  // At the form itself, after the editor has written its text there: the forms of the panel are within that of the list, and
  // Chromium stops a submit event at the outer form.
  document.addEventListener("submit", ({ target }) => {
    if ("send" in target.dataset) target.addEventListener("submit", handle, { once: true });
  }, true);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#field-']");
    const field = link && document.getElementById(link.hash.slice(1));
    if (!field) return;
    event.preventDefault();
    for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    focusOn(field);
  });
}
