// Timeline: rows are chosen as one moves, groups fold, new commits appear.

import { announce } from "./app.js";
import { live } from "./live.js";
import { ask } from "./server.js";
import { touchedAt } from "./touch.js";

const QUIET = 2000; // ms after the last pointer or key before anything may move
const LATER = 3000; // ms after an event before the list is asked for again
const SOON = 150; // the same after a commit got its story; often several do
const LOOK = 20_000; // ms between looks for commits that no agent made
let due = 0;
let dueAt = Infinity;
let asked = 0;
let looked = Date.now();

// -- which commit the panel tells of -----------------------------------------------------------------

async function choose(row) {
  if (!row || row.classList.contains("is-selected")) return;
  for (const other of document.querySelectorAll(".tl-row.is-selected")) {
    other.classList.remove("is-selected");
    other.removeAttribute("aria-current");
  }
  row.classList.add("is-selected");
  row.setAttribute("aria-current", "true");
  if (await tell(row)) document.getElementById("tl-related").closest(".tl-side").scrollTop = 0;
}

async function tell(row) {
  const mine = ++asked;
  const panel = document.getElementById("tl-related");
  const answer = await ask(`${document.body.dataset.base ?? ""}/timeline/related/${row.dataset.sha}`).catch(() => null);
  if (mine !== asked || !answer?.ok) return false;
  panel.replaceChildren(...parsed(await answer.text()).body.childNodes);
  return true;
}

function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

document.addEventListener("focusin", (event) => choose(event.target.closest(".tl-row[data-sha]")));
document.addEventListener("click", (event) => {
  const fold = event.target.closest("button[data-fold]");
  if (fold) return toggle(fold);
  const row = event.target.closest(".tl-row[data-sha]");
  const link = event.target.closest("a");
  if (row && (!link || (link.classList.contains("tl-nums") && !event.ctrlKey && !event.metaKey && !event.shiftKey))) {
    event.preventDefault();
    choose(row);
  }
});

// -- groups ------------------------------------------------------------------------------------------

function children(root) {
  const found = [];
  for (let row = root.nextElementSibling; row?.classList.contains("tl-child"); row = row.nextElementSibling) found.push(row);
  return found;
}

function toggle(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", open);
  for (const row of children(button.closest(".tl-row"))) row.hidden = !open;
}

// The count of a group becomes a button where there is something to fold.
function arm() {
  for (const count of document.querySelectorAll("span[data-fold]")) {
    if (!children(count.closest(".tl-row")).length) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    button.dataset.fold = "";
    button.setAttribute("aria-expanded", "true");
    button.append(...count.childNodes);
    count.replaceWith(button);
  }
}

// -- what is new -------------------------------------------------------------------------------------

async function renew() {
  dueAt = Infinity;
  if (document.hidden || new URLSearchParams(location.search).has("after")) return;
  const wait = touchedAt() + QUIET - Date.now();
  if (wait > 0) return later(wait);
  looked = Date.now();
  const answer = await ask(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = parsed(await answer.text());
  if (touchedAt() + QUIET > Date.now()) return later(QUIET);
  const before = document.querySelectorAll(".tl-row[data-item]").length;
  for (const id of ["tl-lede", "tl-share"]) swap(id, fresh);
  if (!swapList(fresh)) return;
  const more = document.querySelectorAll(".tl-row[data-item]").length - before;
  if (more > 0) announce(more === 1 ? "One new commit" : `${more} new commits`);
}

function swap(id, fresh) {
  const [old, made] = [document.getElementById(id), fresh.getElementById(id)];
  if (old && made && old.innerHTML !== made.innerHTML) old.replaceChildren(...made.childNodes);
}

// Only if something changed; the chosen row, the focus and the folds stay.
let shown = document.querySelector(".tl")?.innerHTML;
function swapList(fresh) {
  const [old, made] = [document.querySelector(".tl"), fresh.querySelector(".tl")];
  if (!made || made.innerHTML === shown) return false;
  shown = made.innerHTML;
  if (!old) {
    location.reload();
    return false;
  }
  const chosen = old.querySelector(".is-selected")?.id;
  const focused = document.activeElement.closest(".tl-row")?.id;
  const folded = [...old.querySelectorAll('[data-fold][aria-expanded="false"]')].map((one) => one.closest(".tl-row").id);
  old.replaceChildren(...made.childNodes);
  arm();
  for (const id of folded) document.getElementById(id)?.querySelector("button[data-fold]")?.click();
  const row = chosen && document.getElementById(chosen);
  for (const other of old.querySelectorAll(".is-selected")) {
    if (row && other !== row) other.classList.remove("is-selected");
    if (row && other !== row) other.removeAttribute("aria-current");
  }
  row?.classList.add("is-selected");
  row?.setAttribute("aria-current", "true");
  const again = focused && document.getElementById(focused);
  if (again) {
    again.tabIndex = -1;
    again.focus({ preventScroll: true });
  }
  return true;
}

// The earliest that was asked for: a session that goes on and on puts nothing off.
function later(wait) {
  if (Date.now() + wait >= dueAt) return;
  clearTimeout(due);
  dueAt = Date.now() + wait;
  due = setTimeout(renew, wait);
}

live.on("commit", ({ commit }) => {
  later(SOON);
  const chosen = document.querySelector(".tl-row.is-selected");
  if (chosen?.dataset.sha === commit) tell(chosen);
});
live.on("event", () => later(LATER));
live.on("open", () => later(LATER));
setInterval(() => document.hidden || Date.now() - looked < LOOK || renew(), 5000);
arm();
