// Fills the page; the last of the scripts.

import { byId, copyText, options } from "./dom.js";
import { data } from "./store.js";
import { startView, update, view } from "./view.js";

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

byId("theme").addEventListener("click", changeTheme);
byId("link").addEventListener("click", (event) => copyText(location.href, event.currentTarget));
const experimentNames = Object.keys(data.experiments);
byId("experiment").addEventListener("change", (event) => update({ experiment: event.target.value }));
await startView();
options(byId("experiment"), experimentNames.map((name) => [name, name]), view.experiment);
byId("experiment").closest("label").hidden = experimentNames.length < 2;
document.documentElement.dataset.ready = "yes";
