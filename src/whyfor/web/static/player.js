// Plays a recorded terminal: asks for the recording when somebody wants to see it, rests cut short.

import { Screen } from "./screen.js";
import { ask } from "./server.js";

const REST = 2; // seconds a rest lasts at most
const frame = document.querySelector("[data-recording]");
const screenBox = frame.querySelector("[data-screen]");
const button = frame.querySelector("[data-play]");
const slider = frame.querySelector("[data-seek]");
const told = frame.querySelector("[data-time]");
const speed = frame.querySelector("[data-speed]");

let tape = null; // [{ at, code, text }], at in seconds without long rests
let screen = null;
let next = 0; // of the tape
let now = 0;
let playing = false;
let before = 0;

async function load() {
  const answer = await ask(frame.dataset.recording, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  const found = await answer.json();
  let at = 0;
  tape = found.events.map(({ interval, code, text }) => ({ at: (at += Math.min(interval, REST)), code, text }));
  frame.columns = found.columns;
  frame.rows = found.rows;
  slider.max = String(at);
  slider.disabled = false;
  rewind();
}

function rewind() {
  screen = new Screen(frame.columns, frame.rows);
  next = 0;
}

function advance(to) {
  if (next && to < (tape[next - 1]?.at ?? 0)) rewind();
  while (next < tape.length && tape[next].at <= to) {
    const { code, text } = tape[next];
    if (code === "o") screen.write(text);
    else if (code === "r") resize(text);
    next += 1;
  }
  now = to;
}

function resize(text) {
  const [columns, rows] = text.split("x").map(Number);
  if (columns > 0 && columns <= 1000 && rows > 0 && rows <= 1000) screen.size(columns, rows);
}

// -- what is seen ------------------------------------------------------------------------------------

function draw() {
  const made = document.createDocumentFragment();
  screen.lines.forEach((line, y) => {
    const row = document.createElement("div");
    const cursor = !screen.hidden && y === screen.y ? Math.min(screen.x, screen.columns - 1) : -1;
    for (const run of runs(line, cursor)) row.append(span(run));
    made.append(row);
  });
  screenBox.replaceChildren(made);
  slider.value = String(now);
  const length = Number(slider.max);
  told.textContent = `${clock(now)} / ${clock(length)}`;
  slider.setAttribute("aria-valuetext", told.textContent);
}

function runs(line, cursor) {
  const found = [];
  line.forEach(({ text, style }, x) => {
    const last = found.at(-1);
    const isCursor = x === cursor;
    if (last && last.style === style && !isCursor && !last.isCursor) last.text += text;
    else found.push({ text, style, isCursor });
  });
  return found;
}

function span({ text, style, isCursor }) {
  const made = document.createElement("span");
  made.textContent = text;
  const inverse = style.inverse !== isCursor;
  const [fg, bg] = inverse ? [style.bg ?? "back", style.fg ?? "fore"] : [style.fg, style.bg];
  paint(made, "color", "tf", fg);
  paint(made, "backgroundColor", "tb", bg);
  for (const name of ["bold", "dim", "italic", "under"]) if (style[name]) made.classList.add(`t-${name}`);
  return made;
}

function paint(made, property, prefix, colour) {
  if (typeof colour === "string" && colour.startsWith("rgb")) made.style[property] = colour;
  else if (colour !== null) made.classList.add(`${prefix}-${colour}`);
}

function clock(seconds) {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

// -- the clock ---------------------------------------------------------------------------------------

function tick(at) {
  if (!playing) return;
  const passed = ((at - before) / 1000) * Number(speed.value);
  before = at;
  const end = Number(slider.max);
  advance(Math.min(now + passed, end));
  draw();
  if (now >= end) stop();
  else requestAnimationFrame(tick);
}

function stop() {
  playing = false;
  button.textContent = "Play";
}

async function start() {
  button.disabled = true;
  try {
    if (!tape) await load();
  } catch {
    told.textContent = "The recording could not be read.";
    return;
  } finally {
    button.disabled = false;
  }
  if (now >= Number(slider.max)) advance(0);
  playing = true;
  button.textContent = "Pause";
  before = performance.now();
  requestAnimationFrame(tick);
}

button.addEventListener("click", () => (playing ? stop() : start()));
slider.addEventListener("input", () => {
  stop();
  advance(Number(slider.value));
  draw();
});
