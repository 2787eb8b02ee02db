// Commit: a file that is gone to, by its link or its key, opens; a story that is new or otherwise is shown.

import { announce } from "./app.js";
import { bind, step } from "./keys.js";
import { live } from "./live.js";
import { morph } from "./morph.js";
import { ask } from "./server.js";
import { touchedAt } from "./touch.js";

const STILL = 2000; // ms after the last pointer or key before anything may move
const main = document.querySelector("main");
let due = 0;

function show(id) {
  const file = document.getElementById(id);
  if (file?.matches("details.filediff")) file.open = true;
}

function go(by) {
  const head = step("[data-file]", by);
  if (head) {
    head.closest("details").open = true;
    head.scrollIntoView({ block: "start" });
  }
}

bind("[", () => go(-1));
bind("]", () => go(1));
addEventListener("hashchange", () => show(location.hash.slice(1)));
document.addEventListener("click", (event) => {
  const link = event.target.closest(".file-link");
  if (link) show(link.hash.slice(1));
});
show(location.hash.slice(1));

// -- live ----------------------------------------------------------------------------------------------

// What does not differ stays as it is, folds and focus too.
async function renew() {
  const wait = touchedAt() + STILL - Date.now();
  if (wait > 0) return later(wait);
  const answer = await ask(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (touchedAt() + STILL > Date.now()) return later(STILL);
  morph(main, fresh.querySelector("main"));
  document.title = fresh.title;
  announce("The story of this commit has changed");
}

function later(wait) {
  clearTimeout(due);
  due = setTimeout(renew, wait);
}

live.on("commit", (told) => told.commit === main.querySelector("[data-sha]").dataset.sha && later(0));
live.on("reset", () => later(0));
