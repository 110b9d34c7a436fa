// What all parts of the report share: the data, and small builders of the page.
// Text from run folders reaches the page as text nodes only, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);

const LINE_COLORS = ["#8a8a8a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"];

// Each part adds the function that fills its sections.
const parts = [];

function byId(id) { return document.getElementById(id); }

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return node;
}

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) =>
    element("option", { value, selected: String(value) === String(chosen) }, text)));
}

function labeled(text, control) { return element("label", {}, text, control); }

// Base64 strings hold bits (most significant first) or numbers.
function bytes(text) { return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)); }

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

// Numbers of two bytes, compressed by zlib.
async function inflate(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint16Array(await new Response(stream).arrayBuffer());
}

function bitsOf(text) {
  const packed = bytes(text);
  return (index) => (packed[index >> 3] >> (7 - (index & 7))) & 1;
}

const decoded = new Map(data.runs.map((run) => [run, {}]));
function runBits(run, name) {
  const known = decoded.get(run);
  known[name] ??= bitsOf(run[name]);
  return known[name];
}

function percent(value) { return value === null || value === undefined ? "–" : value.toFixed(1); }

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b), place = share * (sorted.length - 1);
  const low = Math.floor(place), high = Math.ceil(place);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

const settingRuns = data.settings.map(() => []);
for (const run of data.runs) settingRuns[run.setting].push(run);
function runsOf(setting) { return settingRuns[setting]; }

// Everything behind a number: its commands and its config.
function showSource(settings) {
  const dialog = byId("source"), close = element("button", { type: "button", click: () => dialog.close() }, "Close");
  const parts = settings.map((number) => {
    const setting = data.settings[number], runs = runsOf(number);
    const commands = [...new Set(runs.map((run) => run.command).filter(Boolean))];
    return element("div", {},
      element("p", {}, `${setting.measure}: mean ${setting.summary.mean}, seeds: ${runs.map((run) => run.seed).join(", ")}`),
      element("h3", {}, commands.length === 1 ? "The command" : "The commands"),
      element("pre", { tabindex: 0, class: "commands" }, commands.join("\n") || "see the config"),
      element("h3", {}, "The config, without the seed"),
      element("pre", { tabindex: 0, class: "config" }, JSON.stringify(setting.config, null, 1)),
      element("h3", {}, "The run folders"),
      element("pre", { tabindex: 0 }, runs.map((run) => `seed ${run.seed}: ${run.folder}`).join("\n")));
  });
  const title = settings.map((number) => data.settings[number].label).join("; ");
  dialog.replaceChildren(element("header", {}, element("h2", {}, title), close), ...parts);
  dialog.showModal();
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}
