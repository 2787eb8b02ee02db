// Search as one types: the server renders, this puts the parts in place. The latest answer wins.

import { announce } from "./app.js";
import { ask } from "./server.js";

const WAIT = 120; // ms after the last key
const SLOW = 300; // ms until it is shown that something is being looked for
const SAID = 600; // ms without a change until the number of results is announced
const form = document.getElementById("search");
const field = document.getElementById("q");
const results = document.querySelector(".results");
const boxes = [...document.querySelectorAll("input[name=agent]")];
let timer = 0;
let telling = 0;
let asked = null; // what aborts the question that is under way

function address() {
  const given = new URLSearchParams(new FormData(form));
  if (boxes.every((box) => box.checked)) given.delete("agent"); // all of them is no filter
  if (given.get("sort") === "rank") given.delete("sort");
  for (const [name, value] of [...given]) if (!value) given.delete(name);
  const query = given.toString();
  const here = `${document.body.dataset.base ?? ""}/search`;
  return query ? `${here}?${query}` : here;
}

async function fetched(path, signal) {
  const answer = await ask(path, { signal, headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function part(name, from = document) {
  return from.querySelector(`[data-part="${name}"]`);
}

function put(found) {
  for (const name of ["chips", "head", "hits"]) part(name).replaceChildren(...part(name, found).childNodes);
  for (const count of document.querySelectorAll("[data-count]")) {
    const fresh = found.querySelector(`[data-count="${CSS.escape(count.dataset.count)}"]`);
    count.textContent = fresh?.textContent ?? "";
    count.closest("label").classList.toggle("is-zero", count.dataset.count.startsWith("agent:") && count.textContent === "0");
  }
  document.title = found.title;
  clearTimeout(telling);
  telling = setTimeout(() => announce(part("head").textContent.trim() || part("hits").textContent.trim().slice(0, 120)), SAID);
}

async function search() {
  clearTimeout(timer);
  asked?.abort();
  const mine = (asked = new AbortController());
  const path = address();
  const slow = setTimeout(() => results.setAttribute("aria-busy", "true"), SLOW);
  try {
    const found = await fetched(path, mine.signal);
    if (mine !== asked) return;
    put(found);
    history.replaceState(null, "", path);
  } catch (error) {
    if (error.name !== "AbortError" && mine === asked) failed();
  } finally {
    clearTimeout(slow);
    if (mine === asked) results.removeAttribute("aria-busy");
  }
}

function failed() {
  const told = document.createElement("p");
  told.className = "results-failed";
  told.textContent = "The server did not answer. What is shown is from before; it is asked again with the next key.";
  part("head").replaceChildren(told);
  announce(told.textContent);
}

async function more(link) {
  const paragraph = link.closest("[data-more]");
  link.setAttribute("aria-busy", "true");
  try {
    const found = await fetched(link.getAttribute("href"), asked?.signal);
    const fresh = [...(found.querySelector("[data-hits]")?.children ?? [])];
    document.querySelector("[data-hits]").append(...fresh);
    const next = found.querySelector("[data-more]");
    if (next) paragraph.replaceChildren(...next.childNodes);
    else paragraph.remove();
    fresh[0]?.querySelector("a[data-open]")?.focus();
  } catch (error) {
    if (error.name !== "AbortError") location.assign(link.href);
  }
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(search, WAIT);
}

field.addEventListener("input", later);

field.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && field.value) {
    event.preventDefault();
    field.value = "";
    search();
  } else if (event.key === "ArrowDown") {
    const first = document.querySelector("[data-hits] a[data-open]");
    if (first) {
      event.preventDefault();
      first.focus();
    }
  }
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});

document.addEventListener("change", (event) => {
  if (event.target.form === form && event.target !== field) search();
});

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const drop = event.target.closest("[data-drop]");
  const link = event.target.closest("[data-more] a");
  if (drop) {
    event.preventDefault();
    document.querySelector(`select[name="${drop.dataset.drop}"]`).value = "";
    field.focus();
    search();
  } else if (link) {
    event.preventDefault();
    more(link);
  } else if (!event.target.closest("a, pre") && !String(getSelection())) {
    event.target.closest(".hit")?.querySelector("a[data-open]")?.click();
  }
});

// Back from a result: the fields hold what was typed, and so does what is shown.
addEventListener("pageshow", () => {
  if (address() !== location.pathname + location.search && !location.search.includes("after=")) search();
});
