// Before the first paint, so that no page flashes in the wrong theme. A plain script: modules come later.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // A browser that keeps nothing has no theme of its own.
  }
})();
