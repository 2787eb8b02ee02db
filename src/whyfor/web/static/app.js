// What every page does: theme, copying, ages that count on, keys, the stream. Pages read fully without it.

import { copy, keysWork, remember, sheet } from "./keys.js";
import "./live.js";
import { ask, formsAreOld } from "./server.js";
import { tick } from "./words.js";

const root = document.documentElement;
const announcer = document.getElementById("announcer");
const COPIED = 2000;

// Says something to those who do not see it, politely.
export function announce(text) {
  announcer.textContent = "";
  requestAnimationFrame(() => (announcer.textContent = text));
}

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember("theme", root.dataset.theme);
}

async function copyFrom(button) {
  const label = button.querySelector(".btn-label");
  const done = await copy(button.dataset.copy);
  if (!label) return announce(done ? "Copied" : "It could not be copied");
  const before = (label.dataset.before ??= label.textContent);
  label.textContent = done ? "Copied" : "Select it";
  setTimeout(() => (label.textContent = before), COPIED);
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  if (event.target.closest("[data-theme-toggle]")) toggleTheme();
  if (event.target.closest("[data-sheet]")) sheet();
  const button = event.target.closest("[data-copy]");
  if (button) copyFrom(button);
  if (event.target.id === "sheet") event.target.close(); // beside the sheet
});

// Filters apply at once; without a script their form has a button.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form) form.requestSubmit();
  if (event.target.matches("[data-single-keys]")) remember("keys", event.target.checked ? "on" : "off");
});

// A form goes only to our own server, with a token of the start that answers now. What was typed stays.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post" || !formsAreOld()) return;
  event.preventDefault();
  sendAgain(event.target);
});

async function sendAgain(form) {
  const answer = await ask(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  const token = page && page.querySelector("input[name=form]");
  if (!token) return announce("Nothing was sent: the server does not answer");
  form.elements.form.value = token.value;
  form.submit();
}

document.addEventListener("announce", (event) => announce(event.detail));
document.querySelector("[data-single-keys]").checked = keysWork();

// On narrow screens the side parts start folded.
if (matchMedia("(max-width: 1080px)").matches) {
  for (const part of document.querySelectorAll("details[data-side]")) part.removeAttribute("open");
}

setInterval(() => document.hidden || tick(), 1000);
tick();
