// The one stream of a page. An element with data-stream="CURSOR" says from where on, data-listen="session=…&kind=…" to
// what; pages that have none listen to statuses. A hidden page lets go of its connection (browsers have six per server)
// and takes the stream up again where it was. A stream that broke is taken up only with the server this page came from.

import { ask, distrust, prove, tryAgain, trust } from "./server.js";
import { clock } from "./words.js";

const RETRY = [500, 1000, 2000, 5000];
const PATIENCE = 3000; // ms without a connection before it is said
const SILENCE = 40_000; // ms without a word; a server that lives says so every 15 s
const HIDDEN = 1000;
const LEAVING = 10_000; // ms: a page that was about to go is still there, so it was a download
const COUNT = 15_000; // ms between looks at the number of approvals, where not all statuses are heard

const TYPES = ["event", "commit", "status", "attention", "reset", "open"];
const listeners = Object.fromEntries(TYPES.map((type) => [type, new Set()]));
const base = document.body.dataset.base ?? ""; // of a team's project
const root = document.querySelector("[data-stream]");
const wanted = root?.dataset.listen ?? (root ? "" : "kind=status");
let cursor = root?.dataset.stream ?? "";
let source = null;
let failures = 0;
let timer = 0;
let lostAt = 0;
let saying = 0;
let hiding = 0;
let silence = 0;
const asking = new Set();
let counting = 0;
let heardStatuses = 0;
let attempt = 0; // only the latest to connect does
let isOpen = false;
let leftAt = -Infinity;

export const live = {
  // type: event, commit (its story is new or otherwise), status, attention (something to know), reset (the place was lost: show everything anew), open
  // (the stream stands again)
  on(type, act) {
    listeners[type].add(act);
    return () => listeners[type].delete(act);
  },
  get cursor() {
    return cursor;
  },
};

function tell(type, data) {
  for (const act of listeners[type]) act(data);
}

async function connect() {
  clearTimeout(timer);
  if (source) letGo(); // else this page has only just come: whoever sent it is there
  if (document.hidden) return;
  const mine = ++attempt;
  const who = await prove();
  if (mine !== attempt || document.hidden) return;
  if (who !== "ours") return lost(who);
  const query = new URLSearchParams(wanted);
  if (cursor) query.set("after", cursor);
  isOpen = false;
  source = new EventSource(`/api/v1${base}/stream?${query}`);
  source.onopen = opened;
  source.onerror = () => lost(isOpen ? "gone" : "refused");
  for (const type of ["event", "commit", "status", "attention", "reset", "alive", "change"]) source.addEventListener(type, heard);
  trust();
  listen();
}

function letGo() {
  source?.close();
  distrust();
}

// A connection may stand and nobody be there: a server that hangs, a machine that slept.
function listen() {
  clearTimeout(silence);
  silence = setTimeout(() => lost("gone"), SILENCE);
}

function heard(message) {
  listen();
  if (message.lastEventId) cursor = message.lastEventId;
  if (message.type === "alive") return;
  const data = JSON.parse(message.data);
  if (message.type === "status" && hearsAll()) counted(data);
  if (message.type === "reset" && !listeners.reset.size) loadAgain();
  if (message.type === "change") return tell("commit", shared(data));
  tell(message.type, data);
}

// Unless the next page is on its way: loading this one would stop it, and what a form was told would never be seen.
function loadAgain() {
  const wait = leftAt + LEAVING - performance.now();
  if (wait > 0) setTimeout(loadAgain, wait);
  else location.reload();
}

// What a team's server says, as the laptop's would: a commit, or a session that was shared.
function shared({ name }) {
  return name.includes(":") ? { commit: "", sessions: [{ session: name, to: 0 }] } : { commit: name, sessions: [] };
}

function opened() {
  listen();
  isOpen = true;
  failures = 0;
  lostAt = 0;
  clearTimeout(saying);
  show("on", "Live");
  document.getElementById("not-live")?.remove();
  asking.clear();
  askCount();
  tell("open", null);
}

// Why: what server.js says of who answers, or "refused": our server does, but gives us no stream. The browser is kept
// from connecting again by itself: it would to anybody.
function lost(why) {
  clearTimeout(silence);
  letGo();
  if (document.hidden) return;
  lostAt ||= Date.now();
  const mayPass = why === "gone" || why === "refused";
  if (mayPass) timer = setTimeout(connect, RETRY[Math.min(failures++, RETRY.length - 1)]);
  clearTimeout(saying);
  saying = setTimeout(sayLost, mayPass ? Math.max(0, PATIENCE - (Date.now() - lostAt)) : 0, why);
}

async function sayLost(why) {
  show("lost", "Not live");
  const told = why === "refused" ? await reason() : why;
  if (!lostAt) return;
  const known = document.getElementById("not-live");
  const banner = known ?? document.getElementById("not-live-made").content.cloneNode(true).firstElementChild;
  banner.querySelector("[data-why]").textContent = sentence(told);
  if (!known) document.querySelector("main").prepend(banner);
}

// A stream does not say why it is refused; another question does.
async function reason() {
  try {
    const answer = await ask("/now/count");
    return answer.ok ? "full" : answer.status === 401 ? "expired" : "gone";
  } catch {
    return "gone";
  }
}

function sentence(why) {
  const then = clock(lostAt);
  if (why === "expired") return "This page needs a new key. Get one with: whyfor serve";
  if (why === "full") return `Too many pages are live already. What you see is from ${then}; it tries again by itself.`;
  if (why === "stranger") {
    return `Something else answers at this address, not Whyfor. What you see is from ${then}. Open it again with: whyfor serve`;
  }
  return `The server stopped answering at ${then}. What you see is from then; it reconnects by itself.`;
}

function show(state, word) {
  const shown = document.querySelector(".live");
  shown.dataset.live = state;
  const text = shown.querySelector(".live-text");
  if (text.textContent !== word) text.textContent = word;
}

// -- how many need approval, in the top bar ---------------------------------------------------------

function hearsAll() {
  const query = new URLSearchParams(wanted);
  return !query.has("session") && !query.has("project") && (!query.has("kind") || query.getAll("kind").includes("status"));
}

function counted(status) {
  if (status.phase === "waiting_approval" && !status.gone && !status.parent_session_id) asking.add(status.session);
  else asking.delete(status.session);
  heardStatuses += 1;
  clearTimeout(counting); // the first of many, right after connecting, is not the number yet
  counting = setTimeout(() => showCount(asking.size), 50);
}

function showCount(number) {
  const badge = document.querySelector("[data-approvals]");
  badge.hidden = !number;
  badge.querySelector("[data-number]").textContent = number;
}

async function askCount() {
  if (document.hidden || lostAt || base) return;
  const heardBefore = heardStatuses;
  try {
    const answer = await ask("/now/count");
    if (!answer.ok) return;
    const number = (await answer.json()).waiting_approval;
    if (heardStatuses === heardBefore) showCount(number); // else the stream has said something newer
  } catch {
    // The stream says that the server is gone.
  }
}

// -- beginning ---------------------------------------------------------------------------------------

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden && (!source || source.readyState === EventSource.CLOSED)) connect();
  else if (document.hidden) hiding = setTimeout(letGo, HIDDEN);
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-reconnect]")) return;
  tryAgain();
  connect();
});
addEventListener("beforeunload", () => (leftAt = performance.now()));
addEventListener("pagehide", letGo);
addEventListener("pageshow", (event) => event.persisted && location.reload()); // what was kept may be long past
if (!hearsAll()) setInterval(askCount, COUNT);
connect();
