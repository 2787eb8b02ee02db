// Ages and durations in the same words as the server's (server/render.py).

export function age(millis, now = Date.now()) {
  const seconds = Math.floor((now - millis) / 1000);
  const when = new Date(millis);
  const today = new Date(now);
  const days = Math.round((midnight(today) - midnight(when)) / 86_400_000);
  if (seconds >= 0 && seconds < 60) return `${seconds} s`;
  if (seconds >= 0 && seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds >= 0 && days === 0) return `${Math.floor(seconds / 3600)} h`;
  if (days === 1) return "yesterday";
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
}

export function ago(millis, now = Date.now()) {
  if (now >= millis && now - millis < 2000) return "now";
  const told = age(millis, now);
  return / (s|min|h)$/.test(told) ? `${told} ago` : told;
}

export function duration(millis) {
  const seconds = Math.max(0, Math.floor(millis / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

export function clock(millis) {
  const when = new Date(millis);
  return `${two(when.getHours())}:${two(when.getMinutes())}`;
}

const FORMS = {
  age,
  ago,
  for: (millis, now) => `for ${duration(now - millis)}`,
  took: (millis, now) => duration(now - millis),
};

// What was rendered a while ago is still right.
export function tick(root = document) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[data-age]")) {
    const told = FORMS[time.dataset.age]?.(Date.parse(time.dateTime), now);
    if (told && told !== time.textContent) time.textContent = told;
  }
}

function midnight(when) {
  return new Date(when.getFullYear(), when.getMonth(), when.getDate()).getTime();
}

function two(number) {
  return String(number).padStart(2, "0");
}
