// Before the first paint: that there are scripts, and the theme and density that were chosen here before.
const root = document.documentElement;
root.classList.add("js");
const theme = localStorage.getItem("tocsin.theme");
if (theme === "light" || theme === "dark") root.dataset.theme = theme;
if (localStorage.getItem("tocsin.rows") === "compact") root.dataset.rows = "compact";
