// The feed, live: whatever is new fetches the rows again, at most every second, and only what differs is changed.

import { live } from "./live.js";
import { morph } from "./morph.js";
import { ask } from "./server.js";
import { tick } from "./words.js";

const GAP = 1000; // ms between two looks
const feed = document.getElementById("feed");
let waiting = 0;

async function look() {
  waiting = 0;
  try {
    const answer = await ask(`/feed/rows${location.search}`, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    morph(feed, new DOMParser().parseFromString(await answer.text(), "text/html").body);
    tick(feed);
  } catch {
    // The top bar says when the server is gone; the next item looks again.
  }
}

function soon() {
  if (!waiting) waiting = setTimeout(look, GAP);
}

for (const type of ["event", "commit", "attention", "open", "reset"]) live.on(type, soon);
