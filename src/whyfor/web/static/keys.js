// Keys. Single ones do nothing while a text field has focus or a modifier is down, and can be turned off.
// A page adds its own: `bind("n", next)`; the last to bind a key has it.

const bound = new Map();
const CHORD = 1500; // ms between g and the letter after it
let chord = 0;

export function bind(key, act) {
  bound.set(key, act);
}

export function keysWork() {
  return remembered("keys") !== "off";
}

// The item j and k are at: the one that has focus, or holds it.
export function currentItem() {
  return document.activeElement?.closest("[data-item]") ?? null;
}

// The next or previous of what a selector finds, seen from the focus, else from the top of the view.
export function step(selector, by, focus = true) {
  const all = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const at = all.indexOf(document.activeElement?.closest(selector));
  const next = at < 0 ? fromView(all, by) : all[at + by];
  if (!next) return null;
  if (focus) {
    if (next.tabIndex < 0 && !next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.focus({ preventScroll: true });
  }
  next.scrollIntoView({ block: "nearest" });
  return next;
}

function fromView(all, by) {
  const top = document.querySelector(".topbar")?.offsetHeight ?? 0;
  const below = all.findIndex((one) => one.getBoundingClientRect().top >= top - 1);
  return by > 0 ? all[below] : all[(below < 0 ? all.length : below) - 1];
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function search() {
  const field = [...document.querySelectorAll("[data-search], #q-top")].find((one) => one.checkVisibility());
  if (!field) return location.assign(`${document.body.dataset.base ?? ""}/search`);
  field.focus();
  field.select();
}

function open() {
  const item = currentItem();
  if (!item || document.activeElement !== item) return false;
  (item.querySelector("a[data-open]") ?? item.querySelector("a[href]"))?.click();
}

function fold() {
  const folds = [...document.querySelectorAll("main details")].filter((one) => one.checkVisibility());
  const unfold = folds.some((one) => !one.open);
  for (const one of folds) one.open = unfold;
}

async function copyLink() {
  const item = currentItem();
  const link = item?.querySelector("a[data-open]") ?? item?.querySelector("a[href]");
  const path = item?.dataset.link ?? link?.getAttribute("href") ?? location.pathname + location.search + location.hash;
  const done = await copy(new URL(path, location.href).href);
  document.dispatchEvent(new CustomEvent("announce", { detail: done ? "Link copied" : "The link could not be copied" }));
}

function copyCommand() {
  (currentItem()?.querySelector("[data-copy]") ?? document.querySelector("main [data-copy]"))?.click();
}

export function sheet() {
  const dialog = document.getElementById("sheet");
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

function leave() {
  const field = document.activeElement;
  const menu = document.querySelector("details[data-menu][open]");
  if (menu) return closeMenu(menu);
  if (field?.matches("input[type=search]") && field.value) field.value = "";
  else field?.blur?.();
}

function closeMenu(menu) {
  const within = menu.contains(document.activeElement);
  menu.open = false;
  if (within) menu.querySelector("summary").focus();
}

const OWN = {
  "/": search,
  "?": sheet,
  j: () => step("[data-item]", 1),
  k: () => step("[data-item]", -1),
  n: () => step("[data-prompt]", 1),
  p: () => step("[data-prompt]", -1),
  "[": () => step("[data-file]", -1),
  "]": () => step("[data-file]", 1),
  e: fold,
  y: copyLink,
  c: copyCommand,
  Enter: open,
};

function writes(target) {
  return target instanceof Element && target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) return leave();
  if (writes(event.target) || !keysWork()) return;
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  const within = Date.now() - chord < CHORD;
  chord = 0;
  const place = within && document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  if (place) return location.assign(place.getAttribute("href"));
  if (event.key === "g") {
    chord = Date.now();
    return;
  }
  const act = bound.get(event.key) ?? OWN[event.key];
  if (act && act(event) !== false) event.preventDefault();
}

export function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a browser that keeps nothing
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It holds until the page is left.
  }
}

document.addEventListener("keydown", pressed);
