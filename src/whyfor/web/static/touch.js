// When somebody last touched the page. A page that renews itself moves nothing under a hand.

let last = 0;
let pointer = "";

export function touchedAt() {
  return last;
}

// Calls `act` when the pointer moves.
export function onPointer(act) {
  acts.push(act);
}

const touch = () => (last = Date.now());
const acts = [touch];
for (const type of ["pointerdown", "wheel", "keydown"]) addEventListener(type, touch, { passive: true, capture: true });

// Browsers also send a pointermove when the page changes under a pointer that stands still.
function move(event) {
  const place = `${event.screenX} ${event.screenY}`;
  if (place === pointer) return;
  pointer = place;
  for (const act of acts) act();
}
addEventListener("pointermove", move, { passive: true, capture: true });
