// Memory: j and k choose a note and the panel follows; a dot pins it; what was done can be undone for ten seconds.

import { announce } from "./app.js";
import { bind, step } from "./keys.js";
import { ask } from "./server.js";

const SLOW = 300; // ms until it is shown that something is being fetched
const UNDO = 10_000; // ms for which what was done stays said
const panel = document.getElementById("note");
let asked = 0;

function beside() {
  return panel && matchMedia("(min-width: 1081px)").matches;
}

function mark(row) {
  for (const other of document.querySelectorAll(".ob.is-selected")) {
    if (other === row) continue;
    other.classList.remove("is-selected");
    other.removeAttribute("aria-current");
  }
  row.classList.add("is-selected");
  row.setAttribute("aria-current", "true");
}

async function choose(row) {
  const mine = ++asked;
  mark(row);
  history.replaceState(null, "", row.querySelector("a[data-open]").getAttribute("href").replace(/#.*/, ""));
  const slow = setTimeout(() => panel.setAttribute("aria-busy", "true"), SLOW);
  try {
    const answer = await ask(row.dataset.note, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    panel.replaceChildren(...found.body.childNodes);
    panel.scrollTop = 0;
  } catch {
    if (mine === asked) announce("The note could not be read");
  } finally {
    clearTimeout(slow);
    panel.removeAttribute("aria-busy");
  }
}

function move(by) {
  const row = step(".ob", by);
  if (row && beside()) choose(row);
}

bind("j", () => move(1));
bind("k", () => move(-1));
bind(".", () => document.querySelector("#note [data-pin]")?.requestSubmit());

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const row = event.target.closest(".ob[data-note]");
  if (!row || !beside() || event.target.closest("a:not([data-open]), button") || String(getSelection())) return;
  event.preventDefault();
  choose(row);
});

// An address names only the filters that are set.
for (const form of document.querySelectorAll("form[data-lean]")) {
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });
}

const done = document.querySelector("[data-done]");
if (done) {
  const address = new URL(location.href);
  address.searchParams.delete("did");
  history.replaceState(null, "", address.pathname + address.search + address.hash);
  setTimeout(() => done.contains(document.activeElement) || done.remove(), UNDO);
}
