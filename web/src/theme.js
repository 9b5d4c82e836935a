// Runs before the first paint: marks that scripts are available, and applies the saved theme and row density.
const root = document.documentElement;
root.classList.add("js");
const theme = localStorage.getItem("tocsin.theme");
if (theme === "light" || theme === "dark") root.dataset.theme = theme;
if (localStorage.getItem("tocsin.rows") === "compact") root.dataset.rows = "compact";
