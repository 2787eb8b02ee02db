// Who answers at this address? While the stream stands it is the server this page came from. Once it has broken, it may
// be anybody: a server that was started again, or another program that has taken the port. So before this page sends
// anything or shows anything, that one must sign a number we make up with the key that is in this page and was never
// sent. Only then does the page prove itself in turn, and gets a cookie for the new start.

const PATIENCE = 5000; // ms for an answer
const meta = document.querySelector("meta[name=page-key]");
const [page, until, secret, first] = meta.content.split(".");
meta.remove(); // a page that is saved does not hold it
const port = location.port || "80";
const encoder = new TextEncoder();
const shared = !secret; // a team server is known by its certificate
const signing = shared ? null : crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
let start = first; // of the server whose cookie we have
let standing = !document.hidden; // whoever sent this page, sent it just now
let strange = false;
let proving = null;

// The stream stands: what is asked goes to the same server.
export function trust() {
  standing = true;
  for (const image of document.querySelectorAll("img[data-held]")) {
    image.src = image.dataset.held;
    delete image.dataset.held;
  }
}

// It does not. Pictures that a browser would load later, by itself, wait too.
export function distrust() {
  standing = false;
  for (const image of document.querySelectorAll("img[src]")) {
    if (image.complete) continue;
    image.dataset.held = image.getAttribute("src");
    image.removeAttribute("src");
  }
}

// "ours"; "gone": nobody answers; "stranger": somebody who is not our server; "expired": this page has become too old.
export function prove() {
  if (standing || shared) return Promise.resolve("ours");
  if (strange) return Promise.resolve("stranger");
  proving ??= proved().finally(() => (proving = null));
  return proving;
}

// A person may want it tried again.
export function tryAgain() {
  strange = false;
}

// Whether the forms in this page are of another start than the one that answers, or may be.
export function formsAreOld() {
  return !standing || start !== first;
}

// As fetch; fails unless it is our server that answers.
export async function ask(address, options) {
  if (!standing && (await prove()) !== "ours") throw new Error("not our server");
  const before = standing;
  const answer = await fetch(address, options);
  if (before && !standing) throw new Error("the server has gone");
  return answer;
}

async function proved() {
  if (Date.now() >= Number(until) * 1000) return "expired";
  const query = new URLSearchParams({ page: `${page}.${until}`, nonce: madeUp() });
  const answer = await said("/hello", query, "omit");
  if (!answer || answer.status >= 500) return "gone";
  const told = await answer.json().catch(() => null);
  const nonce = query.get("nonce");
  if (!answer.ok || told?.proof !== (await sign("server", port, told?.start, nonce))) {
    strange = true;
    return "stranger";
  }
  if (told.start === start) return "ours";
  query.set("proof", await sign("page", port, told.start, nonce));
  const admitted = await said("/again", query, "same-origin");
  if (!admitted?.ok) return "gone";
  start = told.start;
  return "ours";
}

function said(path, query, credentials) {
  const signal = AbortSignal.timeout(PATIENCE);
  return fetch(`${path}?${query}`, { credentials, signal, cache: "no-store", redirect: "manual" }).catch(() => null);
}

async function sign(...parts) {
  const signed = await crypto.subtle.sign("HMAC", await signing, encoder.encode(parts.join("\n")));
  return hex(new Uint8Array(signed));
}

function madeUp() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
