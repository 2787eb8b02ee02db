// What the team's pages do beyond reading: theme, copying, menus that close, filters that apply at once.

const root = document.documentElement;
const COPIED = 2000;

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

async function copyFrom(button) {
  const label = button.querySelector(".btn-label");
  const done = await navigator.clipboard?.writeText(button.dataset.copy).then(() => true, () => false);
  if (!label) return;
  const before = (label.dataset.before ??= label.textContent);
  label.textContent = done ? "Copied" : "Select it";
  setTimeout(() => (label.textContent = before), COPIED);
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!except || !menu.contains(except)) menu.open = false;
  }
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  closeMenus(event.target);
  if (event.target.closest("[data-theme-toggle]")) toggleTheme();
  const button = event.target.closest("[data-copy]");
  if (button) copyFrom(button);
  const link = event.target.closest("a[href^='#']");
  const target = link && document.getElementById(link.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus(null);
});

document.addEventListener("change", (event) => {
  event.target.closest("form[data-auto]")?.requestSubmit();
});

const here = location.hash && document.getElementById(location.hash.slice(1));
if (here instanceof HTMLDetailsElement) here.open = true;
