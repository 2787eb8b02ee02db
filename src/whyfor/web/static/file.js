// File: j and k choose a run of lines and its card comes first; [ and ] go to older and newer versions.

import { announce } from "./app.js";
import { bind, step } from "./keys.js";
import { ask } from "./server.js";

const SLOW = 300; // ms until it is shown that something is being fetched
const cards = document.querySelector("[data-cards]");
let asked = 0;

function mark(row) {
  for (const other of document.querySelectorAll(".blame .b-sel")) other.classList.remove("b-sel");
  for (const link of document.querySelectorAll(".b-in[aria-current]")) link.removeAttribute("aria-current");
  row.querySelector(".b-in").setAttribute("aria-current", "true");
  let line = row;
  do {
    line.classList.add("b-sel");
    line = line.nextElementSibling;
  } while (line && !line.dataset.span);
}

async function choose(row) {
  const mine = ++asked;
  const link = row.querySelector("a[data-open]").getAttribute("href");
  mark(row);
  history.replaceState(null, "", link);
  const slow = setTimeout(() => cards.setAttribute("aria-busy", "true"), SLOW);
  try {
    const answer = await ask(link, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    cards.replaceChildren(...found.querySelector("[data-cards]").childNodes);
    announce(cards.querySelector("h2").textContent);
  } catch {
    if (mine === asked) announce("The card could not be read");
  } finally {
    clearTimeout(slow);
    if (mine === asked) cards.removeAttribute("aria-busy");
  }
}

function move(by) {
  const row = step(".blame tr[data-span]", by);
  if (row) choose(row);
}

function version(selector) {
  const link = document.querySelector(selector);
  if (!link) return announce("There is no such version");
  location.assign(link.getAttribute("href"));
}

bind("[", () => version("[data-older]"));
bind("]", () => version("[data-newer]"));
if (cards) {
  bind("j", () => move(1));
  bind("k", () => move(-1));
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const row = event.target.closest(".b-in")?.closest("tr[data-span]");
    if (!row) return;
    event.preventDefault();
    choose(row);
  });
}
