// Embedded states of all methods side by side: lines are episodes, and a state is marked in every picture at once.

/* global Plot */
import { byId, element, swatch } from "../../../../reports/page/dom.js";
import { bytes } from "../../../../reports/page/decode.js";
import { part } from "../../../../reports/page/view.js";
import { chart } from "../../../../reports/page/charts.js";
import { clamp, nearestPlace, nearestPoint } from "../../../../reports/page/pairs.js";
import { DECISIONS, drawFrame, jumpStep, jumping, optimalState } from "./task.js";
import { agents, chosenPair, learnedSimilarity, loadMatrices, metricDistance, openPair, pixels } from "./metric.js";

const TASK_COLORS = ["#7d7d86", "#2f7fd0", "#d9541e", "#1f9464", "#9a62c9", "#a97a10"];
const PLANE_MARGIN = 18, LABEL_EVERY = 10, SHARE = 0.54;
const chosenState = { task: 3, step: 21 };
const planes = [];

function tasksOf(agent) { return agent.positions.map((position) => ({ position, height: agent.drawn_height, color: agent.color })); }

function planePoints(agent) {
  const numbers = new Float32Array(bytes(agent.points).buffer);
  return tasksOf(agent).flatMap((task, place) => Array.from({ length: DECISIONS }, (_, step) => {
    const start = 2 * (place * DECISIONS + step), ahead = task.position - step;
    return { ...task, place, step, hue: TASK_COLORS[place % TASK_COLORS.length], u: numbers[start], v: numbers[start + 1], ahead,
      label: ahead >= 0 && (ahead - jumping.jump_distance) % LABEL_EVERY === 0 ? String(ahead) : "" };
  }));
}

function drawPlane(plane, width) {
  const { points } = plane, height = SHARE * width, labeledPoints = points.filter((point) => point.label && [0, points[points.length - 1].place].includes(point.place));
  const picture = Plot.plot({
    width, height, margin: PLANE_MARGIN, axis: null, style: { fontSize: "12px", fontFamily: "system-ui, sans-serif", background: "none", overflow: "visible" },
    marks: [
      Plot.line(points, { x: "u", y: "v", z: "place", stroke: "hue", strokeWidth: 1.2, strokeOpacity: 0.55 }),
      Plot.dot(points, { x: "u", y: "v", fill: "hue", r: (point) => (point.ahead === jumping.jump_distance ? 5 : 2.6), stroke: "currentColor", strokeWidth: (point) => (point.ahead === jumping.jump_distance ? 1.2 : 0) }),
      Plot.text(labeledPoints, { x: "u", y: "v", text: "label", dx: 9, dy: -7, fill: "currentColor", stroke: "var(--paper)", strokeWidth: 3 }),
    ],
  });
  const [x, y] = ["x", "y"].map((name) => picture.scale(name));
  plane.places = points.map((point) => ({ left: x.apply(point.u), top: y.apply(point.v) }));
  Object.assign(plane.cover.style, { left: 0, top: 0, width: `${width}px`, height: `${height}px` });
  markPlane(plane);
  return element("div", { class: "matrix" }, picture, plane.cover);
}

function markPlane(plane) {
  const place = plane.places?.[chosenState.task * DECISIONS + chosenState.step], other = plane.places?.[plane.nearest];
  if (place) Object.assign(plane.cursor.style, { left: `${place.left}px`, top: `${place.top}px` });
  if (other) Object.assign(plane.second.style, { left: `${other.left}px`, top: `${other.top}px` });
}

function makePlane(agent, number) {
  const cursor = element("span", { class: "point-cursor" }), second = element("span", { class: "point-cursor second" });
  const cover = element("div", { class: "cover", id: `plane-${number}`, tabindex: 0, role: "application", "aria-label": `Embedded states of ${agent.label}; arrow keys move along an episode and between episodes` }, cursor, second);
  const plane = { agent, number, cursor, second, cover, points: planePoints(agent), places: null, nearest: 0,
    frame: element("canvas", { class: "screen", role: "img", "aria-label": "The nearest state of another episode" }), text: element("p", { class: "soft" }),
    open: element("button", { type: "button", class: "small", click: () => openPair(pairOf(plane)) }, "Open this pair in the metric view") };
  const point = (event) => {
    const box = cover.getBoundingClientRect(), found = plane.points[nearestPoint(plane.places, event.clientX - box.left, event.clientY - box.top)];
    chooseState(found.place, found.step);
  };
  for (const kind of ["pointermove", "pointerdown"]) cover.addEventListener(kind, point);
  cover.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    chooseState(chosenState.task + move[0], chosenState.step + move[1]);
  });
  const figure = chart(`States of ${agent.positions.length} tasks, by ${agent.projection}`, (width) => drawPlane(plane, width));
  plane.figure = element("div", { class: "plane" }, element("h2", {}, agent.label), figure, element("div", { class: "neighbor" }, plane.frame, element("div", {}, plane.text, plane.open)));
  return plane;
}

/** The chosen state, and the nearest one of another episode in a method's embedding. */
function pairOf(plane) {
  const tasks = tasksOf(plane.agent), near = plane.points[plane.nearest];
  return { x: tasks[chosenState.task], y: tasks[near.place], i: chosenState.step, j: near.step, agent: plane.number };
}

function showNeighbor(plane) {
  const { agent, points } = plane, task = tasksOf(agent)[chosenState.task];
  const far = points.map((point) => (point.place === chosenState.task ? Infinity : -learnedSimilarity(agent, task, point, chosenState.step, point.step)));
  plane.nearest = nearestPlace(far);
  const near = points[plane.nearest], distance = metricDistance("psm", task, near, chosenState.step, near.step);
  drawFrame(plane.frame, near, optimalState(near, near.step));
  plane.text.textContent = `Nearest state of another episode here: obstacle at ${near.position}, step ${near.step}, ${pixels(near, near.step)}. `
    + (distance === 0 ? "The same actions are optimal from both on (distance 0)." : `Other actions are optimal there (distance ${distance.toFixed(2)}).`);
  markPlane(plane);
}

function chooseState(task, step) {
  const next = { task: clamp(task, 0, agents[0].positions.length - 1), step: clamp(step, 0, DECISIONS - 1) };
  Object.assign(chosenState, next);
  const chosen = tasksOf(agents[0])[next.task];
  drawFrame(byId("point-frame"), chosen, optimalState(chosen, next.step));
  byId("point-caption").textContent = `Obstacle at ${chosen.position}, step ${next.step}: ${pixels(chosen, next.step)}; the optimal action is ${next.step === jumpStep(chosen) ? "jump" : "right"}.`;
  planes.forEach(showNeighbor);
}

async function startEmbedding() {
  await loadMatrices();
  byId("jump-distance").textContent = jumping.jump_distance;
  planes.push(...agents.map(makePlane));
  byId("planes").replaceChildren(...planes.map((plane) => plane.figure));
  byId("plane-legend").replaceChildren(...agents[0].positions.map((position, task) => element("span", {}, swatch(TASK_COLORS[task % TASK_COLORS.length]), `obstacle at ${position}`)));
}

/** The state of the metric view's task x, if it is drawn here. */
function drawEmbedding() {
  const { x, i } = chosenPair(), place = agents[0].positions.indexOf(x.position);
  if (place >= 0 && x.height === agents[0].drawn_height && chosenPair().agent >= 0) chooseState(place, i);
  else chooseState(chosenState.task, chosenState.step);
}

part({ tab: "embedding", experiment: "jumping", available: () => agents.length > 0, start: startEmbedding, draw: drawEmbedding });
