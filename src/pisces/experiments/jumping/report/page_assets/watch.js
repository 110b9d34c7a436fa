// Two agents on one task: their episodes in a loop, and the map of the tasks that either solves.

import { byId, element, options, labeled, svg, swatch } from "../../../../reports/page/dom.js";
import { inkOn, mixture } from "../../../../reports/page/numbers.js";
import { data, runBits, runsOf, settingsAt, shortName } from "../../../../reports/page/store.js";
import { part, update, view } from "../../../../reports/page/view.js";
import { FIRST_HEIGHT, FIRST_POSITION, drawFrame, episode, jumpStep, jumping, taskIndex, taskName } from "./task.js";
import { describeJumps, tellingTask, typicalRun } from "./episodes.js";

const STEP_MILLISECONDS = 70, PAUSE_STEPS = 14;
const SOLVED = "#ead9b8", UNSOLVED = "#34343c";
const LAST_POSITION = jumping.positions[jumping.positions.length - 1], LAST_HEIGHT = jumping.heights[jumping.heights.length - 1];

/** @type {any[]} */
const sides = ["a", "b"].map((name) => ({ name, letter: name.toUpperCase(), run: "typical", color: "red" }));
const player = { step: 0, timer: null, wait: 0, task: { position: 35, height: 15 } };

function settingOf(side) { return view[side.name]; }

function colorOf(side) { return data.settings[settingOf(side)].config.colors ? side.color : "white"; }

function taskOf(side, task = player.task) { return { ...task, color: colorOf(side) }; }

/** @returns {any[]} */
function runsShown(side) {
  const runs = runsOf(settingOf(side));
  const one = runs.filter((run) => String(run.seed) === side.run);
  return one.length ? one : runs;
}

/** Whether each of a setting's runs solves a task, as 0 or 1. */
function solvedBy(runs, task) { const index = taskIndex(task); return runs.map((run) => runBits(run, "solved")(index)); }

/** The share of runs that solve a task. */
export function solvedShare(runs, task) { const all = solvedBy(runs, task); return all.reduce((sum, one) => sum + one, 0) / all.length; }

/** Whether all runs trained on a task. */
export function isTraining(runs, task) { const index = taskIndex(task); return runs.every((run) => runBits(run, "train")(index)); }

/** All tasks, the highest floor first, as they stand on maps. */
export function mapTasks() {
  const tasks = [];
  for (let height = LAST_HEIGHT; height >= FIRST_HEIGHT; height--) {
    for (let position = FIRST_POSITION; position <= LAST_POSITION; position++) tasks.push({ position, height });
  }
  return tasks;
}

/**
 * A map of all tasks as buttons, with axes; arrow keys move between tasks.
 * @param {string} label
 * @param {(task: {position: number, height: number}) => {color: number[], mark: string, text: string}} look
 * @param {{position: number, height: number}} chosen
 * @param {(task: {position: number, height: number}) => void} choose
 */
function taskMap(label, look, chosen, choose) {
  const isChosen = (task) => task.position === chosen.position && task.height === chosen.height;
  const cells = mapTasks().flatMap((task) => {
    const { color, mark, text } = look(task), on = isChosen(task);
    const cell = element("button", { type: "button", tabindex: on ? 0 : -1, class: on ? "chosen" : "", "aria-pressed": String(on),
      "aria-label": `${taskName({ ...task, color: "white" })}: ${text}`, title: `${taskName({ ...task, color: "white" })}: ${text}`,
      "data-position": task.position, "data-height": task.height }, mark);
    cell.style.background = `rgb(${color.join(" ")})`;
    cell.style.color = inkOn(color);
    const axis = task.position === FIRST_POSITION ? [element("span", { class: "axis-y", "aria-hidden": "true" }, task.height % 5 ? "" : task.height)] : [];
    return [...axis, cell];
  });
  const below = jumping.positions.map((position) => element("span", { class: "axis-x", "aria-hidden": "true" }, position % 5 ? "" : position));
  const map = element("div", { class: "tasks", role: "group", "aria-label": label,
    click: (event) => { const cell = event.target.closest("button"); if (cell) choose({ position: Number(cell.dataset.position), height: Number(cell.dataset.height) }); },
    keydown: (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!move) return;
      event.preventDefault();
      choose({ position: Math.min(Math.max(chosen.position + move[0], FIRST_POSITION), LAST_POSITION), height: Math.min(Math.max(chosen.height + move[1], FIRST_HEIGHT), LAST_HEIGHT) });
    } }, ...cells, element("span", { "aria-hidden": "true" }), ...below);
  return element("div", { class: "map-frame" }, element("span", { class: "axis-name y", "aria-hidden": "true" }, "floor height"),
    element("div", { class: "map-scroll" }, map, element("span", { class: "axis-name", "aria-hidden": "true" }, "obstacle position")));
}

function corners() {
  const [onlyA, onlyB] = sides.map((side) => data.settings[settingOf(side)].color);
  return { neither: UNSOLVED, both: SOLVED, onlyA, onlyB: onlyA === onlyB ? "#c04fc0" : onlyB };
}

function outcomeText(side, task) {
  const runs = runsShown(side), solved = solvedBy(runs, taskOf(side, task)).reduce((sum, one) => sum + one, 0);
  return runs.length === 1 ? (solved ? "solved" : "not solved") : `solved by ${solved} of ${runs.length} runs`;
}

function lookOf(task) {
  const [a, b] = sides.map((side) => solvedShare(runsShown(side), taskOf(side, task)));
  const training = sides.some((side) => isTraining(runsShown(side), taskOf(side, task)));
  return { color: mixture(a, b, corners()), mark: training ? "T" : "", text: `A ${outcomeText(sides[0], task)}, B ${outcomeText(sides[1], task)}${training ? ", training task" : ""}` };
}

function drawMap() {
  const focused = document.activeElement?.closest("#difference");
  const map = taskMap("Tasks: arrow keys move, both episodes follow", lookOf, player.task, (task) => update({ task: `${task.position}-${task.height}` }));
  byId("difference").replaceChildren(map);
  if (focused) map.querySelector("button.chosen").focus();
  const { neither, both, onlyA, onlyB } = corners(), entry = (color, text) => element("span", {}, swatch(color), text);
  byId("difference-legend").replaceChildren(entry(both, "both solve it"), entry(onlyA, `only A: ${shortName(view.a)}`), entry(onlyB, `only B: ${shortName(view.b)}`),
    entry(neither, "neither"), element("span", {}, element("b", {}, "T"), " training task"));
  byId("difference-note").textContent = sides.some((side) => runsShown(side).length > 1) ? "Mixed colors: some of the runs solve the task." : "";
}

function makeSide(side) {
  side.screen = element("canvas", { class: "screen", role: "img", "aria-label": `Screen of agent ${side.letter}` });
  side.path = svg("polyline", { fill: "none", "stroke-width": 0.7, "stroke-dasharray": "1.2 0.8" });
  side.badge = element("p", { class: "badge" });
  side.caption = element("figcaption", { class: "caption soft" });
  side.method = element("select", { id: `method-${side.letter}`, "aria-label": `Method ${side.letter}`, change: (event) => { side.run = "typical"; update({ [side.name]: Number(event.target.value) }); } });
  side.runs = element("select", { id: `run-${side.letter}`, "aria-label": `Run of method ${side.letter}`, change: (event) => { side.run = event.target.value; update({}); } });
  side.colors = element("select", { id: `color-${side.letter}`, change: (event) => { side.color = event.target.value; update({}); } });
  options(side.colors, [["red", "red"], ["green", "green"]], "red");
  side.colorLabel = labeled("Obstacle", side.colors);
  const overlay = svg("svg", { viewBox: `0 0 ${jumping.screen} ${jumping.screen}`, "aria-hidden": "true" }, side.path);
  return element("figure", { class: "episode" }, element("div", { class: "episode-head" }, element("strong", {}, side.letter), side.method, side.runs, side.colorLabel),
    element("div", { class: "stage" }, side.screen, overlay, side.badge), side.caption);
}

function sideOptions(side) {
  const setting = data.settings[settingOf(side)], runs = runsOf(settingOf(side));
  if (!runs.some((run) => String(run.seed) === side.run)) side.run = "typical";
  const able = data.settings.map((_, number) => number).filter((number) => data.settings[number].experiment === view.experiment);
  const near = new Set(settingsAt(view.experiment, setting.where));
  const label = (number) => (near.has(number) ? shortName(number) : data.settings[number].label);
  options(side.method, [...able.filter((n) => near.has(n)), ...able.filter((n) => !near.has(n))].map((number) => [number, label(number)]), settingOf(side));
  options(side.runs, [["typical", runs.length > 1 ? `${runs.length} runs` : "1 run"], ...runs.map((run) => [run.seed, `seed ${run.seed}`])], side.run);
  side.colorLabel.hidden = !setting.config.colors;
}

function loadEpisode(side) {
  const runs = runsShown(side), task = taskOf(side), solved = solvedBy(runs, task), run = typicalRun(runs, solved);
  const played = episode(run, task), success = solved[runs.indexOf(run)] === 1;
  const right = task.color === "green" ? null : jumpStep(task);
  side.episode = { ...played, task, run };
  side.badge.textContent = `${success ? "✓ solved" : "✗ failed"}: ${describeJumps(played.jumps, right, success)}`;
  side.badge.classList.toggle("good", success);
  side.path.setAttribute("stroke", success ? "#7be0a0" : "#ff9a8a");
  const best = right === null ? "it must not jump" : `right step: ${right}`;
  const count = solved.reduce((sum, one) => sum + one, 0);
  side.caption.textContent = `Seed ${run.seed} ${played.outcome}; ${best}.` + (runs.length > 1 ? ` Solved by ${count} of ${runs.length} runs.` : "");
}

function drawStep() {
  const longest = Math.max(...sides.map((side) => side.episode.states.length)), slider = byId("step");
  slider.max = longest - 1;
  slider.value = player.step;
  slider.setAttribute("aria-valuetext", `step ${player.step} of ${longest - 1}`);
  byId("episode-task").textContent = `${taskName({ ...player.task, color: "white" })}; step ${player.step}`;
  for (const side of sides) {
    const { states, task } = side.episode, last = Math.min(player.step, states.length - 1);
    drawFrame(side.screen, task, states[last]);
    const [width, tall] = jumping.agent;
    side.path.setAttribute("points", states.slice(0, last + 1).map((state) => `${state.x + width / 2},${jumping.screen - task.height - state.height - tall / 2}`).join(" "));
    side.badge.dataset.over = last === states.length - 1 ? "yes" : "no";
  }
}

function step(by) {
  player.step = Math.min(Math.max(player.step + by, 0), Number(byId("step").max));
  drawStep();
}

function tick() {
  if (document.hidden || view.tab !== "overview") return;
  if (player.step < Number(byId("step").max)) { step(1); return; }
  player.wait += 1;
  if (player.wait > PAUSE_STEPS) { player.wait = 0; player.step = 0; drawStep(); }
}

function togglePlay(play = !player.timer) {
  clearInterval(player.timer);
  player.timer = play ? setInterval(tick, STEP_MILLISECONDS) : null;
  byId("play").textContent = play ? "Pause" : "Play";
}

/** The task that the link names, or the one on which the two methods differ most. */
function chosenTask() {
  const found = /^(\d+)-(\d+)$/.exec(view.task ?? "");
  const task = found && { position: Number(found[1]), height: Number(found[2]) };
  if (task && jumping.positions.includes(task.position) && jumping.heights.includes(task.height)) return task;
  const tasks = mapTasks(), [a, b] = sides.map((side) => runsShown(side));
  return tasks[tellingTask(tasks.map((one) => ({ a: solvedShare(a, taskOf(sides[0], one)), b: solvedShare(b, taskOf(sides[1], one)), training: isTraining(a, taskOf(sides[0], one)) || isTraining(b, taskOf(sides[1], one)) })))];
}

function startWatch() {
  byId("episodes").append(...sides.map(makeSide));
  byId("step").addEventListener("input", (event) => { togglePlay(false); player.step = Number(event.target.value); drawStep(); });
  byId("play").addEventListener("click", () => togglePlay());
  byId("back").addEventListener("click", () => { togglePlay(false); step(-1); });
  byId("forward").addEventListener("click", () => { togglePlay(false); step(1); });
  // Without motion, the last step is shown, with the path that led there.
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  player.step = still ? Infinity : 0;
  togglePlay(!still);
}

function drawWatch() {
  sides.forEach(sideOptions);
  const task = chosenTask(), moved = task.position !== player.task.position || task.height !== player.task.height;
  if (moved && player.timer) player.step = 0;
  player.task = task;
  player.wait = 0;
  sides.forEach(loadEpisode);
  drawMap();
  player.step = Math.min(player.step, Math.max(...sides.map((side) => side.episode.states.length)) - 1);
  drawStep();
}

part({ tab: "overview", experiment: "jumping", start: startWatch, draw: drawWatch });
