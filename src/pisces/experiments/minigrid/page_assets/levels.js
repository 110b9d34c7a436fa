// Levels of MiniGrid with the paths of two agents; tiles choose the level.

import { byId, element, svg, swatch } from "../../../reports/page/dom.js";
import { inkOn, mixture, rgb } from "../../../reports/page/numbers.js";
import { data, shortName } from "../../../reports/page/store.js";
import { part, update, view } from "../../../reports/page/view.js";

const LEVEL_CORNERS = { neither: "#34343c", both: "#ead9b8" }, UNKNOWN = "#85858f";
const levelState = { task: 0, images: new Map() };

/** What is known of the place that is shown; undefined without recorded episodes. */
function levelPlace() { return data.minigrid?.places?.[view.where]; }

function episodesOf(number) { return levelPlace().methods[data.settings[number].method]; }

function hasPath(number) { return Boolean(episodesOf(number)?.paths.length) && data.settings[number].own; }

function bothRecorded() { return hasPath(view.a) && hasPath(view.b); }

function solvedLevel(number, task) { return hasPath(number) && episodesOf(number).solved[task] === "1" ? 1 : 0; }

async function levelImage(place) {
  if (!levelState.images.has(place)) {
    const image = new Image();
    image.src = place.frames.source;
    await image.decode();
    levelState.images.set(place, image);
  }
  return levelState.images.get(place);
}

async function levelSide(letter, number) {
  const place = levelPlace(), { width, height, columns } = place.frames, canvas = element("canvas", { class: "screen", width, height, role: "img" });
  const task = levelState.task, image = await levelImage(place), [across, down] = place.size;
  canvas.getContext("2d").drawImage(image, (task % columns) * width, Math.floor(task / columns) * height, width, height, 0, 0, width, height);
  const name = `${letter}: ${shortName(number)}`, solved = solvedLevel(number, task), cells = hasPath(number) ? episodesOf(number).paths[task] : [];
  const outcome = !hasPath(number) ? "no recorded episode" : solved ? `✓ reaches the goal in ${cells.length - 1} moves` : `✗ ${cells.length > 1 ? `stuck after ${cells.length - 1} moves` : "never moves"}`;
  canvas.setAttribute("aria-label", `${name}: ${outcome}`);
  const line = svg("polyline", { points: cells.map(([x, y]) => `${x + 0.5},${y + 0.5}`).join(" "), class: solved ? "path good" : "path" });
  const [x, y] = cells[cells.length - 1] ?? [-1, -1], end = svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.28, class: solved ? "path-end good" : "path-end" });
  return element("figure", { class: "episode" }, element("p", { class: "frame-title" }, swatch(data.settings[number].color), name),
    element("div", { class: "stage" }, canvas, svg("svg", { viewBox: `0 0 ${across} ${down}`, "aria-hidden": "true" }, svg("polyline", { points: line.getAttribute("points"), class: "path-edge" }), line, end)),
    element("figcaption", { class: `outcome ${solved ? "good" : ""}` }, outcome));
}

function levelTile(task) {
  const corners = { ...LEVEL_CORNERS, onlyA: data.settings[view.a].color, onlyB: data.settings[view.b].color };
  const [a, b] = [view.a, view.b].map((number) => solvedLevel(number, task)), on = task === levelState.task;
  const color = bothRecorded() ? mixture(a, b, corners) : rgb(UNKNOWN);
  const outcome = (letter, number) => `${letter} ${!hasPath(number) ? "not recorded" : solvedLevel(number, task) ? "solves it" : "fails"}`;
  const text = `${levelPlace().tasks[task]}: ${outcome("A", view.a)}, ${outcome("B", view.b)}`;
  const tile = element("button", { type: "button", class: on ? "chosen" : "", tabindex: on ? 0 : -1, "aria-pressed": String(on), "aria-label": text, title: text, "data-task": task, click: () => chooseLevel(task, true) }, task + 1);
  tile.style.background = `rgb(${color.join(" ")})`;
  tile.style.color = inkOn(color);
  return tile;
}

async function chooseLevel(task, focus) {
  const count = levelPlace().tasks.length;
  levelState.task = (task + count) % count;
  await update({ task: String(levelState.task) });
  if (focus) byId("level-tiles").querySelector("button.chosen").focus();
}

/** The level that the link names, or the first one that B solves and A does not, or on which they differ. */
function chosenLevel() {
  const place = levelPlace(), named = /^\d+$/.test(view.task ?? "") ? Number(view.task) : -1;
  if (named >= 0 && named < place.tasks.length) return named;
  if (!bothRecorded()) return 0;
  const gains = place.tasks.map((_, task) => solvedLevel(view.b, task) - solvedLevel(view.a, task));
  return Math.max(gains.includes(1) ? gains.indexOf(1) : gains.indexOf(-1), 0);
}

async function drawLevels() {
  const place = levelPlace();
  byId("levels").hidden = !place;
  if (!place) return;
  levelState.task = chosenLevel();
  byId("level-sides").replaceChildren(await levelSide("A", view.a), await levelSide("B", view.b));
  byId("level-tiles").replaceChildren(...place.tasks.map((_, task) => levelTile(task)));
  const legend = bothRecorded()
    ? [[rgb(LEVEL_CORNERS.both), "both solve it"], [rgb(data.settings[view.a].color), "only A"], [rgb(data.settings[view.b].color), "only B"], [rgb(LEVEL_CORNERS.neither), "neither"]]
    : [[rgb(UNKNOWN), "not recorded for both"]];
  byId("level-legend").replaceChildren(...legend.map(([color, text]) => element("span", {}, swatch(`rgb(${color.join(" ")})`), text)));
  byId("level-note").textContent = `Seed ${place.seed}; ${place.tasks[levelState.task]}. The line is the agent's path, the dot its last cell.`;
}

part({
  tab: "overview", experiment: "minigrid",
  start: () => byId("level-tiles").addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    chooseLevel(levelState.task + move, true);
  }),
  draw: drawLevels,
});
