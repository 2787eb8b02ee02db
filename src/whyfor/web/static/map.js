// Map: j and k follow the next or previous session; what does not differ stays as it is.

import { announce } from "./app.js";
import { bind } from "./keys.js";
import { morph } from "./morph.js";
import { ask } from "./server.js";

const main = document.querySelector("main");
let asked = 0;

async function follow(link) {
  const mine = ++asked;
  const answer = await ask(link, { headers: { Accept: "text/html" } }).catch(() => null);
  if (mine !== asked) return;
  if (!answer?.ok) return announce("The map could not be read");
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== asked) return;
  morph(main, fresh.querySelector("main"));
  history.replaceState(null, "", link);
  const here = main.querySelector(".node-s[aria-current]");
  here?.focus({ preventScroll: true });
  here?.scrollIntoView({ block: "nearest" });
  announce(main.querySelector("#h-trail")?.textContent ?? "");
}

function move(by) {
  const all = [...main.querySelectorAll(".node-s:not(.node-none)")];
  const at = all.findIndex((one) => one.hasAttribute("aria-current"));
  const next = all[at + by];
  if (next) follow(next.getAttribute("href"));
}

bind("j", () => move(1));
bind("k", () => move(-1));
document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const node = event.target.closest(".node-s:not(.node-none)");
  if (!node) return;
  event.preventDefault();
  follow(node.getAttribute("href"));
});
