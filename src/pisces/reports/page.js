// What all parts of the report share: the data, small builders of the page, frames and episodes of the jumping task.
// Text from run folders reaches the page as text nodes only, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);

const SCREEN = 60, AGENT_WIDTH = 5, AGENT_HEIGHT = 10, OBSTACLE_WIDTH = 9, OBSTACLE_HEIGHT = 10;
const JUMP_HEIGHT = 15, JUMP_DISTANCE = 14, DECISIONS = SCREEN - AGENT_WIDTH + 1;
const FIRST_POSITION = 20, POSITIONS = 26, FIRST_HEIGHT = 10, HEIGHTS = 11, TASKS = POSITIONS * HEIGHTS;
const LINE_COLORS = ["#8a8a8a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"];

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

function labelled(text, control) { return element("label", {}, text, control); }

// Base64 strings hold bits (most significant first) or numbers.
function bytes(text) { return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)); }

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

// Tasks: positions from left to right, and for each position the heights upwards; red tasks before green ones.
function taskIndex(task) {
  return (task.color === "green" ? TASKS : 0)
    + (task.position - FIRST_POSITION) * HEIGHTS + task.height - FIRST_HEIGHT;
}

function actionsStart(task) {
  let start = 0;
  for (let p = FIRST_POSITION; p < task.position; p++) start += HEIGHTS * stepsToObstacle(p);
  start += (task.height - FIRST_HEIGHT) * stepsToObstacle(task.position);
  if (task.color === "green") {
    for (let p = FIRST_POSITION; p < FIRST_POSITION + POSITIONS; p++) start += HEIGHTS * stepsToObstacle(p);
  }
  return start;
}

function stepsToObstacle(position) { return position - AGENT_WIDTH + 1; }

function jumpStep(task) { return task.color === "green" ? DECISIONS : task.position - JUMP_DISTANCE; }

// The agent's next place; `jump` matters on the floor only.
function advance({ x, height, speed }, jump) {
  const upward = height === 0 ? Number(jump) : height > JUMP_HEIGHT ? -1 : speed;
  return { x: x + 1, height: height + upward, speed: height + upward === 0 ? 0 : upward };
}

function strikes(task, { x, height }) {
  return x > task.position - AGENT_WIDTH && x < task.position + OBSTACLE_WIDTH && height < OBSTACLE_HEIGHT;
}

// An agent's episode: `actionAt(x)` is its choice on the floor at x; choices in the air change nothing.
function play(task, actionAt) {
  const states = [];
  let place = { x: 0, height: 0, speed: 0 }, struck = false, outcome = "";
  while (!outcome) {
    const floor = place.height === 0, jump = floor && actionAt(place.x) === 1;
    states.push({ x: place.x, height: place.height, action: floor ? (jump ? "jump" : "right") : "in the air" });
    place = advance(place, jump);
    const hit = strikes(task, place);
    if (hit && task.color === "green") struck = struck || (place.height === 0 ? "on the floor" : "in the air");
    else if (hit) outcome = "strikes the obstacle";
    if (!outcome && place.x + AGENT_WIDTH > SCREEN) outcome = "reaches the end";
  }
  states.push({ x: place.x, height: place.height, action: "end" });
  return { states, outcome: task.color === "green" ? outcome + (struck ? `, struck ${struck}` : ", never struck") : outcome };
}

function episode(run, task) {
  const actions = runBits(run, "actions"), start = actionsStart(task), count = stepsToObstacle(task.position);
  return play(task, (x) => (x < count ? actions(start + x) : 0));
}

function optimalState(task, step) {
  const since = Math.max(step - jumpStep(task), 0);
  return { x: step, height: Math.max(Math.min(since, 2 * (JUMP_HEIGHT + 1) - since), 0) };
}

function drawFrame(canvas, task, state) {
  const context = canvas.getContext("2d"), row = (value) => SCREEN - value;
  canvas.width = canvas.height = SCREEN;
  context.fillStyle = "#000";
  context.fillRect(0, 0, SCREEN, SCREEN);
  context.fillStyle = "#fff";
  context.fillRect(state.x, row(task.height + state.height) - AGENT_HEIGHT, AGENT_WIDTH, AGENT_HEIGHT);
  context.fillStyle = { red: "#800000", green: "#008000" }[task.color] || "#808080";
  context.fillRect(task.position, row(task.height) - OBSTACLE_HEIGHT, OBSTACLE_WIDTH, OBSTACLE_HEIGHT);
  context.fillStyle = "#fff";
  for (const [left, top, width, high] of [[0, 0, SCREEN, 1], [0, SCREEN - 1, SCREEN, 1], [0, 0, 1, SCREEN],
    [SCREEN - 1, 0, 1, SCREEN], [0, row(task.height) - 1, SCREEN, 1]]) context.fillRect(left, top, width, high);
}

function taskName(task) {
  return `${task.color === "white" ? "" : task.color + " "}obstacle at ${task.position}, floor at ${task.height}`;
}

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
