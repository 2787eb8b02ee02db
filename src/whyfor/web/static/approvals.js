// Approvals, live: when a status changes, what waits is fetched anew and put in place. Buttons of a request do nothing in
// the first half second after it appears or moves, and no key allows or denies.

import { live } from "./live.js";
import { ask } from "./server.js";
import { touchedAt } from "./touch.js";
import { tick } from "./words.js";

const STILL = 2000;
const INERT = 500;
const GONE = 3000;

const waiting = document.getElementById("waiting");
let looking = false;
let timer = 0;

function hold() {
  for (const form of waiting.querySelectorAll(".req-answer")) form.inert = true;
  setTimeout(() => {
    for (const form of waiting.querySelectorAll(".req-answer")) form.inert = false;
  }, INERT);
}

function busy() {
  const there = waiting.matches(":hover") || waiting.contains(document.activeElement);
  return there ? Math.max(0, touchedAt() + STILL - Date.now()) : 0;
}

async function look() {
  clearTimeout(timer);
  const wait = busy();
  if (looking || wait) {
    timer = setTimeout(look, wait || 150);
    return;
  }
  looking = true;
  try {
    const answer = await ask(`/approvals${location.search}`, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("waiting");
    if (answer.ok && fresh && shape(fresh) !== shape(waiting)) {
      const gone = leaving(fresh);
      waiting.replaceChildren(...fresh.childNodes);
      keep(gone);
      document.title = page.title;
      hold();
      tick(waiting);
    }
  } catch {
    // The top bar says when the server is gone; the next status looks again.
  }
  looking = false;
}

// What was answered elsewhere stays a moment and says so, so that nobody wonders where it went.
function leaving(fresh) {
  const still = new Set([...fresh.querySelectorAll(".req")].map((one) => one.dataset.shape));
  const shown = [...waiting.querySelectorAll(".req:not(.req-gone)")];
  return shown.map((card, place) => ({ card, place })).filter(({ card }) => !still.has(card.dataset.shape));
}

function keep(gone) {
  for (const { card, place } of gone) {
    card.classList.add("req-gone");
    for (const form of card.querySelectorAll("form, .req-note")) form.remove();
    const word = document.createElement("p");
    word.className = "quiet req-note";
    word.setAttribute("role", "status");
    word.textContent = "Answered elsewhere: it does not wait any more.";
    card.querySelector(".req-right").append(word);
    const cards = waiting.querySelectorAll(".req");
    if (cards[place]) cards[place].before(card);
    else waiting.append(card);
    setTimeout(() => card.remove(), GONE);
  }
}

const shape = (part) => [...part.querySelectorAll(".req:not(.req-gone)")].map((one) => one.dataset.key + one.dataset.shape).join();

hold();
live.on("status", look);
live.on("open", look);
live.on("reset", look);
