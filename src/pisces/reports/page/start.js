// Fills all parts and then the navigation; the last of the scripts.

async function start() {
  byId("theme").addEventListener("click", changeTheme);
  for (const fillPart of parts) await fillPart();
  for (const section of document.querySelectorAll("section[data-title]:not([hidden])")) {
    byId("theme").before(element("a", { href: `#${section.id}` }, section.dataset.title), " ");
  }
  document.documentElement.dataset.ready = "yes";
}

start();
