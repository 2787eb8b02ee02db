// Now, live: a change of status fetches the board anew, and what differs is put in place. A card moves to its group at
// once, but nothing under the pointer or the focus moves for two seconds after the last touch of either.

import { announce } from "./app.js";
import { bind, currentItem } from "./keys.js";
import { live } from "./live.js";
import { morph } from "./morph.js";
import { ask } from "./server.js";
import { onPointer, touchedAt } from "./touch.js";
import { tick } from "./words.js";

const STILL = 2000;
const GAP = 150; // ms between two looks
const AGAIN = 15_000; // what no status tells of: capture, commits
const WORDS = {
  waiting_approval: "needs approval",
  waiting: "waits for you",
  running: "is running",
  exited: "has ended",
};

const board = document.getElementById("board");
const phases = new Map([...board.querySelectorAll("[data-phase]")].map((one) => [one.dataset.key, one.dataset.phase]));
let focused = 0;
let looking = false;
let stale = false;
let pending = null;
let timer = 0;
let news = [];

function held() {
  const there = board.matches(":hover") || board.contains(document.activeElement);
  return there ? Math.max(0, Math.max(touchedAt(), focused) + STILL - Date.now()) : 0;
}

async function look() {
  if (looking) {
    stale = true;
    return;
  }
  looking = true;
  stale = false;
  try {
    const answer = await ask(`/now/board${location.search}`, { headers: { accept: "text/html" } });
    if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html").body);
  } catch {
    // The top bar says when the server is gone; the next status or reconnection looks again.
  }
  setTimeout(() => {
    looking = false;
    if (stale) look();
  }, GAP);
}

function show(fresh) {
  pending = fresh;
  soften(fresh);
  settle();
}

function settle() {
  clearTimeout(timer);
  if (!pending) return;
  const wait = held();
  if (wait) {
    timer = setTimeout(settle, wait);
    return;
  }
  const fresh = pending;
  pending = null;
  morph(board, fresh);
  tick(board);
  const asking = board.querySelectorAll("[data-phase=waiting_approval]").length;
  document.title = `${asking ? `(${asking}) ` : ""}Now · Whyfor`;
}

// What cannot move anything is shown at once, held or not: one line that stays one line.
function soften(fresh) {
  for (const card of board.querySelectorAll("[data-phase]")) {
    const like = fresh.querySelector(`[data-key="${CSS.escape(card.dataset.key)}"]`);
    if (like?.dataset.phase !== card.dataset.phase) continue;
    for (const part of card.querySelectorAll("[data-soft]")) {
      const wanted = like.querySelector(`[data-soft="${part.dataset.soft}"]`);
      if (wanted) morph(part, wanted.cloneNode(true));
    }
  }
  tick(board);
}

// Once, politely, approvals first.
function changed(status) {
  const before = phases.get(status.session);
  phases.set(status.session, status.gone ? undefined : status.phase);
  if (status.gone || status.parent_session_id || before === status.phase || !WORDS[status.phase]) return;
  if (before === undefined && status.phase === "exited") return;
  news.push(status);
  if (news.length === 1) setTimeout(say, 300);
}

function say() {
  const rank = Object.keys(WORDS);
  news.sort((one, other) => rank.indexOf(one.phase) - rank.indexOf(other.phase));
  const said = news.slice(0, 3).map((one) => `${one.title || "A session"} ${WORDS[one.phase]}`);
  if (news.length > 3) said.push(`and ${news.length - 3} more changes`);
  announce(said.join(". "));
  news = [];
}

// A tooltip in the way goes with Escape, until the pointer or the focus goes elsewhere.
const tips = () => board.classList.remove("no-tips");
addEventListener("keydown", (event) => event.key === "Escape" && board.classList.add("no-tips"));
onPointer(tips);
addEventListener("focusin", () => {
  focused = Date.now();
  tips();
});

// m mutes the row that has focus; the form does it, and the page comes back with it.
bind("m", () => currentItem()?.querySelector("[data-mute]")?.click());

live.on("status", (status) => {
  changed(status);
  look();
});
live.on("attention", look);
live.on("open", look);
live.on("reset", look);
setInterval(() => document.hidden || look(), AGAIN);
