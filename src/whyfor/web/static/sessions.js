// Sessions: j and k choose a row and the panel follows; older rows are put below; what is new waits behind a button
// once one has scrolled, and comes in by itself at the top.

import { announce } from "./app.js";
import { bind, copy, step } from "./keys.js";
import { live } from "./live.js";
import { morph } from "./morph.js";
import { ask } from "./server.js";
import { touchedAt } from "./touch.js";
import { tick } from "./words.js";

const MOST = 300; // rows in the page; beyond them, older ones are another page
const STILL = 2000; // ms after the last pointer or key before anything may move
const LATER = 400; // ms after news before the list is asked for again; often there is more
const SLOW = 300; // ms until it is shown that something is being fetched
const grid = document.querySelector(".ses-grid");
const panel = document.getElementById("peek");
let due = 0;
let asked = 0;
let opener = null; // what had the focus before the panel came over the list

function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

async function fetched(path) {
  const answer = await ask(path, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(String(answer.status));
  return parsed(await answer.text());
}

function list() {
  return document.querySelector('[data-part="list"]');
}

// -- the panel -----------------------------------------------------------------------------------------

function covers() {
  return matchMedia("(max-width: 1080px)").matches;
}

function mark(row) {
  for (const other of document.querySelectorAll(".ses-row.is-selected")) {
    if (other === row) continue;
    other.classList.remove("is-selected");
    other.removeAttribute("aria-current");
  }
  row?.classList.add("is-selected");
  row?.setAttribute("aria-current", "true");
}

function address(name) {
  const query = new URLSearchParams(location.search);
  if (name) query.set("at", name);
  else query.delete("at");
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

async function choose(row, showing = true) {
  if (!row) return;
  mark(row);
  address(row.dataset.row);
  if (showing || !panel.hidden) await peek(row);
}

async function peek(row) {
  const mine = ++asked;
  const path = row.querySelector("a[data-open]").getAttribute("href");
  const slow = setTimeout(() => panel.setAttribute("aria-busy", "true"), SLOW);
  try {
    const found = await fetched(`${path}/peek`);
    if (mine !== asked) return;
    panel.replaceChildren(...found.body.childNodes);
    panel.scrollTop = 0;
    if (panel.hidden) opener = document.activeElement;
    panel.hidden = false;
    grid.classList.add("with-peek");
    row.scrollIntoView({ block: "nearest" });
  } catch {
    if (mine === asked) announce("The session could not be read");
  } finally {
    clearTimeout(slow);
    panel.removeAttribute("aria-busy");
  }
}

function close() {
  asked += 1;
  panel.hidden = true;
  grid.classList.remove("with-peek");
  mark(null);
  address("");
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

function move(by) {
  const row = step(".ses-row", by);
  if (row) choose(row, !covers());
}

bind("j", () => move(1));
bind("k", () => move(-1));

// -- several at once -----------------------------------------------------------------------------------

function picked() {
  return document.querySelectorAll(".ses-pick input:checked").length;
}

function tellPicked() {
  announce(`${picked()} selected`);
}

bind("x", () => {
  const box = document.querySelector(".ses-row.is-selected .ses-pick input");
  if (!box) return;
  box.checked = !box.checked;
  tellPicked();
});
document.addEventListener("change", (event) => {
  if (event.target.closest(".ses-pick")) tellPicked();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !picked()) return;
  event.preventDefault();
  event.stopImmediatePropagation(); // the panel stays
  document.querySelector("[data-chosen]").reset();
  announce("Nothing selected");
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || panel?.hidden !== false || document.querySelector("dialog[open], [data-menu][open]")) return;
  if (document.activeElement?.matches("input, select")) return;
  event.preventDefault();
  close();
});

async function copyLink(button) {
  const done = await copy(new URL(button.dataset.copyLink, location.href).href);
  const label = button.querySelector(".btn-label");
  label.textContent = done ? "Copied" : "Not copied";
  setTimeout(() => (label.textContent = "Copy link"), STILL);
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const found = (selector) => event.target.closest(selector);
  if (found("[data-peek-close]")) {
    event.preventDefault();
    close();
  } else if (found("[data-copy-link]")) copyLink(found("[data-copy-link]"));
  else if (found("[data-unfold]")) unfold(found("[data-unfold]"));
  else if (found("[data-older]")) older(event);
  else if (found(".ses-row") && !found("a, button, label") && !String(getSelection())) choose(found(".ses-row"));
});

function unfold(button) {
  const open = button.closest(".ses-row").classList.toggle("is-unfolded");
  button.setAttribute("aria-expanded", open);
}

// -- older rows ----------------------------------------------------------------------------------------

async function older(event) {
  const link = event.target.closest("[data-older]");
  if (document.querySelectorAll(".ses-row").length + 100 > MOST) return; // the link leads on
  event.preventDefault();
  const wait = document.createElement("div");
  wait.className = "ses-wait";
  wait.innerHTML = '<div class="skel"></div><div class="skel"></div><div class="skel"></div>';
  const foot = document.querySelector('[data-part="foot"]');
  const slow = setTimeout(() => foot.before(wait), SLOW);
  try {
    put(await fetched(link.getAttribute("href")), foot);
  } catch {
    stopped(link, foot);
  } finally {
    clearTimeout(slow);
    wait.remove();
  }
}

// The rows of a day that was begun already stand under its heading.
function put(found, foot) {
  const fresh = [];
  for (const rows of found.querySelectorAll(".ses-list")) {
    const known = document.querySelector(`.ses-list[data-key="${CSS.escape(rows.dataset.key)}"]`);
    fresh.push(...rows.children);
    if (known) known.append(...rows.children);
    else {
      const heading = found.getElementById(rows.getAttribute("aria-labelledby"));
      if (heading) foot.before(heading);
      foot.before(rows);
    }
  }
  const first = list().dataset.first;
  const next = found.querySelector('[data-part="foot"]');
  const count = next.querySelector("[data-count]");
  count.textContent = count.textContent.replace(/^[\d,]+/, Number(first).toLocaleString("en"));
  foot.replaceChildren(...next.childNodes);
  tick(list());
  fresh[0]?.querySelector("a[data-open]")?.focus();
  announce(`${fresh.length} more sessions`);
}

function stopped(link, foot) {
  const last = [...document.querySelectorAll(".ses-day > span:first-child")].at(-1)?.textContent ?? "here";
  const told = document.createElement("span");
  told.className = "ses-failed";
  told.textContent = `The list stopped at ${last}. The rows above are complete.`;
  foot.querySelector(".ses-failed")?.remove();
  link.textContent = "Try again";
  link.after(told);
  announce(told.textContent);
}

// -- what is new ---------------------------------------------------------------------------------------

function newest() {
  const query = new URLSearchParams(location.search);
  return !query.has("after") && !query.has("before");
}

async function renew() {
  if (document.hidden || !list() || !newest()) return;
  const wait = touchedAt() + STILL - Date.now();
  if (wait > 0) return later(wait);
  const found = await fetched(location.href).catch(() => null);
  if (!found) return;
  if (touchedAt() + STILL > Date.now()) return later(STILL);
  const fresh = found.querySelector('[data-part="list"]');
  if (!fresh) return;
  const known = new Set([...document.querySelectorAll(".ses-row")].map((row) => row.dataset.row));
  const news = [...fresh.querySelectorAll(".ses-row")].filter((row) => !known.has(row.dataset.row)).length;
  const paged = document.querySelectorAll(".ses-row").length > fresh.querySelectorAll(".ses-row").length;
  if ((news && scrollY > 200) || paged) hold(news, fresh);
  else place(found, fresh);
}

// Rows that are shown say what holds now; new ones wait.
function hold(news, fresh) {
  for (const row of fresh.querySelectorAll(".ses-row")) {
    const known = document.querySelector(`.ses-row[data-row="${CSS.escape(row.dataset.row)}"]`);
    const [old, now] = [known?.querySelector(".ses-l2"), row.querySelector(".ses-l2")];
    if (old && old.innerHTML !== now.innerHTML) old.replaceChildren(...now.childNodes);
  }
  const told = document.querySelector("[data-new]");
  told.hidden = !news;
  told.querySelector("a").textContent = `${news} newer`;
  if (news) announce(`${news} newer`);
}

function place(found, fresh) {
  const unfolded = [...document.querySelectorAll(".ses-row.is-unfolded")].map((row) => row.dataset.row);
  const chosen = document.querySelector(".ses-row.is-selected")?.dataset.row;
  for (const row of fresh.querySelectorAll(".ses-row")) {
    row.classList.toggle("is-selected", row.dataset.row === chosen);
    if (row.dataset.row === chosen) row.setAttribute("aria-current", "true");
    if (!unfolded.includes(row.dataset.row)) continue;
    row.classList.add("is-unfolded");
    row.querySelector("[data-unfold]")?.setAttribute("aria-expanded", "true");
  }
  morph(list(), fresh);
  morph(document.querySelector('[data-part="lede"]'), found.querySelector('[data-part="lede"]'));
  tick(list());
}

function later(wait = LATER) {
  clearTimeout(due);
  due = setTimeout(renew, wait);
}

live.on("status", () => later());
live.on("commit", () => later());
live.on("open", () => later());
live.on("reset", () => later());

// -- beginning -----------------------------------------------------------------------------------------

// An address names only the filters that are set.
document.querySelector("form[data-lean]")?.addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
});
document.querySelector(".ses-row.is-selected")?.scrollIntoView({ block: "nearest" });
