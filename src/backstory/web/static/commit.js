// Commit: a file that is gone to, by its link or its key, opens.

import { bind, step } from "./keys.js";

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
