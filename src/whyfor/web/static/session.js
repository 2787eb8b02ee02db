// Session: pages that come as one scrolls, new turns at the end, anchors to any event, what is cut made whole.

import { announce } from "./app.js";
import { bind, step } from "./keys.js";
import { live } from "./live.js";
import { ask } from "./server.js";
import { tick } from "./words.js";

const grid = document.querySelector("[data-path]");
const talk = grid.querySelector("[data-talk]");
const path = grid.dataset.path;
const AHEAD = 2400; // pixels before a gap comes into view that its next page is asked for
const AT_END = 120; // pixels from the end that still count as being there
const CALM = 1000; // ms between two looks at the end, at most; else as long as the last one took
const HANDS_OFF = 2000; // ms after a key or pointer in which nothing under it moves

// -- fragments ---------------------------------------------------------------------------------------

async function fetched(address) {
  const answer = await ask(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  return document.importNode(made.body, true);
}

async function fetchedPart(seq) {
  return (await fetched(`${path}/part?at=${seq}`)).querySelector("[data-part]");
}

// What comes in above the view must not push it down: the thing in the middle of it stays where it is.
function steady(change, anchor = inView()) {
  const before = anchor?.getBoundingClientRect().top;
  change();
  if (anchor?.isConnected) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
}

// Of many pages the browser lays out only what is near the view; the rest keeps the size it had when it was.
function measure() {
  if (talk.querySelectorAll(".stretch").length <= 3) return;
  const turns = [...talk.querySelectorAll(".turn:not(.is-measured)")];
  const heights = turns.map((turn) => turn.getBoundingClientRect().height - parseFloat(getComputedStyle(turn).paddingBottom));
  turns.forEach((turn, at) => {
    turn.style.containIntrinsicSize = `auto ${heights[at]}px`;
    turn.classList.add("is-measured");
  });
  talk.classList.add("is-long");
}

function inView() {
  const { left, width } = talk.getBoundingClientRect();
  for (const part of [0.5, 0.7, 0.3, 0.9]) {
    const found = document.elementFromPoint(left + width / 2, innerHeight * part)?.closest("[data-v], .turn-head");
    if (found && talk.contains(found)) return found;
  }
  return null;
}

// -- gaps --------------------------------------------------------------------------------------------

const loading = new WeakMap();
let upwards = false;
let jumps = 0;
let lastY = scrollY;

// One page of a gap: its first, or its last when one comes from below.
function fill(gap, fromEnd = false) {
  if (!loading.has(gap)) loading.set(gap, filled(gap, fromEnd).finally(() => loading.delete(gap)));
  return loading.get(gap);
}

async function filled(gap, fromEnd) {
  gap.setAttribute("aria-busy", "true");
  const before = jumps;
  try {
    const first = Number(gap.dataset.first);
    const last = Number(gap.dataset.last); // of any event on its last page
    const stretch = (await fetchedPart(fromEnd ? last : first)).querySelector(".stretch");
    const done = fromEnd ? Number(stretch.dataset.first) <= first : Number(stretch.dataset.last) >= last;
    // Who scrolls into a gap reads on; who jumped over it stays where they are.
    const over = gap.getBoundingClientRect().bottom < 0 && jumps > before;
    steady(() => {
      if (fromEnd) gap.after(stretch);
      else gap.before(stretch);
      if (done) gap.remove();
      else if (fromEnd) gap.dataset.last = Number(stretch.dataset.first) - 1;
      else gap.dataset.first = Number(stretch.dataset.last) + 1;
    }, fromEnd || over ? inView() : null);
    measure();
    if (!done) relabel(gap);
    tick(stretch);
    markOutline();
    watch();
    return stretch;
  } finally {
    gap.removeAttribute("aria-busy");
  }
}

function relabel(gap) {
  gap.querySelector("a").textContent = "Show what is between";
  gap.querySelector("a").href = `${path}?at=${gap.dataset.first}#e${gap.dataset.first}`;
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target, boundingClientRect } of entries) {
      const above = boundingClientRect.bottom < 0 || (boundingClientRect.top < innerHeight && upwards);
      if (isIntersecting) fill(target, above).catch(() => near.unobserve(target));
    }
  },
  { rootMargin: `${AHEAD}px 0px` },
);

function watch() {
  for (const gap of talk.querySelectorAll("[data-gap]")) {
    near.unobserve(gap); // observed anew, it says at once whether it is still in view
    near.observe(gap);
  }
}

talk.addEventListener("click", (event) => {
  const gap = event.target.closest("[data-gap]");
  if (!gap || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  fill(gap).catch(() => location.assign(gap.querySelector("a").href));
});

// -- anchors -----------------------------------------------------------------------------------------

// The element of an event: its own, or that of the one before it (a result is told with its call).
function elementOf(seq) {
  const own = document.getElementById(`e${seq}`);
  if (own) return own;
  const stretch = [...talk.querySelectorAll(".stretch")].find(
    ({ dataset }) => Number(dataset.first) <= seq && seq <= Number(dataset.last),
  );
  const before = [...(stretch?.querySelectorAll("[data-v]") ?? [])].filter((one) => Number(one.id.slice(1)) <= seq);
  return before.at(-1) ?? stretch?.querySelector("[data-v]") ?? null;
}

function reveal(element) {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  element.scrollIntoView({ block: "start" });
}

async function goTo(hash) {
  const [, kind, number] = /^#([et])(\d+)$/.exec(hash) ?? [];
  if (!kind) return;
  const known = kind === "e" ? elementOf(Number(number)) : document.getElementById(`t${number}`);
  if (known) return reveal(known);
  if (kind === "e" && Number(number) <= Number(grid.dataset.end)) location.replace(`${path}?at=${number}${hash}`);
}

addEventListener("hashchange", () => goTo(location.hash));

// -- keys --------------------------------------------------------------------------------------------

// The next prompt may be on a page that is not here yet.
async function stepPrompt(by) {
  const from = document.activeElement?.closest("[data-prompt]") ?? inView();
  const later = by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const prompts = [...talk.querySelectorAll("[data-prompt]")].filter((one) => from?.compareDocumentPosition(one) & later);
  const gap = from && gapBetween(from, by > 0 ? prompts[0] : prompts.at(-1), by);
  if (gap) {
    const filled = await fill(gap, by < 0).catch(() => null);
    return filled && stepPrompt(by);
  }
  step("[data-prompt]", by)?.scrollIntoView({ block: "start" });
}

function gapBetween(from, to, by) {
  const later = by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const gaps = [...talk.querySelectorAll("[data-gap]")].filter((gap) => from.compareDocumentPosition(gap) & later);
  const gap = by > 0 ? gaps[0] : gaps.at(-1);
  if (!gap || !to) return gap;
  return to.compareDocumentPosition(gap) & later ? null : gap;
}

bind("n", () => void stepPrompt(1));
bind("p", () => void stepPrompt(-1));
bind("e", () => {
  const folds = [...talk.querySelectorAll("details"), ...document.querySelectorAll(".mem-sum details")];
  const unfold = folds.some((one) => !one.open);
  for (const one of folds) one.open = unfold;
});
bind("Enter", () => {
  const item = document.activeElement;
  if (item?.matches("details[data-item]")) item.open = !item.open;
  else if (item?.matches("a[data-item]")) item.click();
  else return false;
});

// -- the outline follows the view ----------------------------------------------------------------------

function markOutline() {
  const top = innerHeight / 3;
  const turns = [...talk.querySelectorAll(".turn[data-turn]")];
  const here = turns.findLast((turn) => turn.getBoundingClientRect().top <= top) ?? turns[0];
  for (const entry of grid.querySelectorAll("[data-outline] [data-turn]")) {
    const link = entry.querySelector(".outline-link");
    const is = entry.dataset.turn === here?.dataset.turn;
    if (is && !link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const nav = link.closest("nav");
      const spot = entry.offsetTop - nav.offsetTop;
      if (spot < nav.scrollTop || spot > nav.scrollTop + nav.clientHeight - 60) nav.scrollTop = spot - nav.clientHeight / 3;
    } else if (!is) link.removeAttribute("aria-current");
    if (document.getElementById(`t${entry.dataset.turn}`)) link.setAttribute("href", `#t${entry.dataset.turn}`);
  }
  for (const bar of grid.querySelectorAll(".sp")) bar.classList.toggle("is-here", bar.dataset.turn === here?.dataset.turn);
}

let marking = 0;
addEventListener(
  "scroll",
  () => {
    const by = scrollY - lastY;
    upwards = by < 0;
    if (Math.abs(by) > innerHeight * 1.5) jumps += 1;
    lastY = scrollY;
    marking ||= requestAnimationFrame(() => {
      marking = 0;
      markOutline();
      if (atEnd()) grid.querySelector("[data-follow]").hidden = true;
    });
  },
  { passive: true },
);

// -- what is cut, what is not coloured yet -------------------------------------------------------------

let making = Promise.resolve(); // one after the other: `e` may ask for many

function makeWhole(seq, inside) {
  return (making = making.catch(() => null).then(() => madeWhole(seq, inside)));
}

async function madeWhole(seq, inside) {
  if (!inside.isConnected) return;
  const made = (await fetched(`${path}/events/${seq}?bare=true`)).querySelector("[data-v]");
  const old = inside.closest("[data-v]");
  if (!made || !old) return;
  if (old.matches("details")) made.open = old.open;
  steady(() => old.replaceWith(made));
  tick(made);
}

talk.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-whole]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  makeWhole(link.dataset.whole, link).catch(() => location.assign(link.href));
});

talk.addEventListener(
  "toggle",
  (event) => {
    const plain = event.target.open && event.target.querySelector(":scope > .tool-body > [data-colour]");
    if (plain) makeWhole(plain.dataset.colour, plain).catch(() => plain.remove());
  },
  true,
);

// -- live ----------------------------------------------------------------------------------------------

let looking = false;
let again = false;
let calm = 0; // until when what is new waits for more
let heard = 0; // the last event that the stream told of
let otherwise = new Set(); // events that were shown before and are not what they were
let touched = 0;
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => (touched = Date.now()), { passive: true });

function atEnd() {
  return document.documentElement.scrollHeight - innerHeight - scrollY < AT_END;
}

// The first news at once; what follows it, together.
function look() {
  again = true;
  if (looking) return;
  looking = true;
  setTimeout(looked, calm - performance.now());
}

async function looked() {
  again = false;
  const before = heard;
  const begun = performance.now();
  const changed = otherwise;
  otherwise = new Set();
  await lookAtEnd(changed).catch(() => null); // the stream says that the server is gone
  await lookBack(changed).catch(() => null);
  const now = performance.now();
  calm = now + Math.min(CALM, now - begun);
  looking = false;
  if (again || heard > Math.max(before, Number(grid.dataset.end))) look();
}

// The last page anew: what is the same stays as it is, folds and all.
async function lookAtEnd(changed) {
  const shown = [...talk.querySelectorAll(".stretch")].at(-1);
  if (!shown) return location.reload();
  const from = shown.dataset.first;
  const part = await fetchedPart(from);
  const follows = atEnd();
  const news = Number(part.dataset.end) > Number(grid.dataset.end);
  const held = talk.contains(document.activeElement) && Date.now() - touched < HANDS_OFF ? document.activeElement : null;
  steady(() => reconcile(shown, part.querySelector(".stretch"), changed), held ?? inView());
  shown.dataset.last = part.querySelector(".stretch").dataset.last;
  grid.dataset.end = part.dataset.end;
  if (Number(shown.dataset.last) < Number(part.dataset.end)) await append(shown);
  const pending = part.querySelector("[data-pendings]");
  if (pending) talk.querySelector("[data-pendings]").replaceChildren(...pending.childNodes);
  grid.dataset.phase = part.dataset.phase;
  const status = part.querySelector("[data-status]");
  if (status.childElementCount) document.querySelector(".head [data-status]").replaceChildren(...status.childNodes);
  renewOutline(part);
  tick(talk);
  if (follows) scrollTo(0, document.documentElement.scrollHeight);
  else if (news) grid.querySelector("[data-follow]").hidden = false;
}

// Earlier pages of which something is otherwise.
async function lookBack(changed) {
  for (const shown of [...talk.querySelectorAll(".stretch")].slice(0, -1)) {
    const [first, last] = [Number(shown.dataset.first), Number(shown.dataset.last)];
    if (![...changed].some((seq) => first <= seq && seq <= last)) continue;
    const part = await fetchedPart(first);
    steady(() => reconcile(shown, part.querySelector(".stretch"), changed));
    tick(shown);
  }
}

// A page that is full goes on as the next one; far behind, a gap is left.
async function append(shown) {
  const first = Number(shown.dataset.last) + 1;
  const part = await fetchedPart(first);
  const stretch = part.querySelector(".stretch");
  shown.after(stretch);
  grid.dataset.end = part.dataset.end;
  if (Number(stretch.dataset.last) < Number(part.dataset.end)) await append(stretch);
}

function reconcile(shown, fresh, changed) {
  const known = new Map([...shown.children].map((section) => [section.id, section]));
  for (const section of [...fresh.children]) {
    const old = known.get(section.id);
    if (old) renew(old, section, changed);
    else shown.append(section);
  }
}

// A turn that is known: new items come in, changed ones are replaced, the rest is not touched.
function renew(old, fresh, changed) {
  old.querySelector(".turn-head")?.replaceWith(fresh.querySelector(".turn-head"));
  const items = (box) => [...box.querySelectorAll("[data-v], [data-mark]")].filter((one) => !one.parentElement.closest("[data-v]"));
  const name = (one) => one.id || one.dataset.mark;
  const known = new Map(items(old).map((one) => [name(one), one]));
  const coming = items(fresh);
  if (coming.length < known.size || [...known.keys()].some((key, at) => key !== name(coming[at]))) {
    // Another order: calls became a run, or a commit closed the range.
    keepFolds(old, fresh);
    old.replaceChildren(...fresh.childNodes);
    return;
  }
  let at = null;
  for (const item of coming) {
    const was = known.get(name(item));
    if (was && same(was, item, changed)) at = was;
    else if (was) {
      keepFolds(was, item);
      was.replaceWith(item);
      at = item;
    } else if (at) at = place(at, item);
    else old.append((at = item.closest(".answer") ?? item));
  }
}

function same(was, item, changed) {
  if (was.dataset.mark) return was.outerHTML === item.outerHTML;
  const [first, last] = [Number(was.id.slice(1)), Number(was.dataset.v)];
  return was.dataset.v === item.dataset.v && ![...changed].some((seq) => first <= seq && seq <= last);
}

// After the last known one, in the same kind of box.
function place(at, item) {
  const box = item.parentElement.matches(".answer");
  if (box && at.parentElement.matches(".answer")) at.after(item);
  else if (box) {
    const answer = document.createElement("div");
    answer.className = "answer";
    answer.append(item);
    at.after(answer);
  } else (at.parentElement.matches(".answer") ? at.parentElement : at).after(item);
  return item;
}

function keepFolds(old, fresh) {
  for (const fold of [old, ...old.querySelectorAll("details[id]")]) {
    const now = fold.id && (fresh.id === fold.id ? fresh : fresh.querySelector(`#${fold.id}`));
    if (now?.matches("details") && fold.matches("details")) now.open = fold.open;
  }
}

function renewOutline(part) {
  const list = grid.querySelector("[data-outline]");
  const known = new Map([...list.children].map((entry) => [entry.dataset.turn, entry]));
  for (const entry of part.querySelectorAll(".outline-list > li")) {
    const old = known.get(entry.dataset.turn);
    if (old && old.textContent === entry.textContent) continue;
    if (old) old.replaceWith(entry);
    else list.append(entry);
  }
  grid.querySelector("[data-count]").textContent = list.children.length;
  markOutline();
}

live.on("event", (event) => {
  if (event.session !== grid.dataset.name) return look();
  if (event.changed) {
    otherwise.add(event.seq);
    return look();
  }
  heard = Math.max(heard, event.seq);
  if (!looking && heard > Number(grid.dataset.end)) look();
});
// A commit closes a range, which may be far up; one that lost its story may have closed one.
live.on("commit", (commit) => {
  const own = commit.sessions.find((part) => part.session === grid.dataset.name);
  const mark = talk.querySelector(`[data-mark="${CSS.escape(commit.commit)}"]`);
  if (own) otherwise.add(own.to);
  if (mark) otherwise.add(Number(mark.closest(".stretch").dataset.last));
  look();
});
live.on("status", (status) => {
  const phase = status.gone ? "" : `${status.phase} ${status.approval?.asked_at ?? ""}`.trim();
  if (status.session === grid.dataset.name && phase !== grid.dataset.phase.trim()) look();
});

grid.querySelector("[data-follow] button").addEventListener("click", () => {
  scrollTo(0, document.documentElement.scrollHeight);
  grid.querySelector("[data-follow]").hidden = true;
  announce("At the end");
});

// -- beginning -----------------------------------------------------------------------------------------

if (location.hash) goTo(location.hash);
markOutline();
watch();
