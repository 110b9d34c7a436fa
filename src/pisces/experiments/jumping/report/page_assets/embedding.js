// Embedded states in the plane: colors are tasks, numbers are distances to the obstacle; a point shows its frame.

import { byId, element, labeled, options, svg } from "../../../../reports/page/dom.js";
import { bytes } from "../../../../reports/page/decode.js";
import { part } from "../../../../reports/page/view.js";
import { DECISIONS, drawFrame, jumpStep, jumping, optimalState } from "./task.js";
import { agents, pixels } from "./metric.js";

const TASK_COLORS = ["#7d7d86", "#2f7fd0", "#d9541e", "#1f9464", "#9a62c9", "#a97a10"];
const PLANE = { size: 520, margin: 22 };
const LABELED = (distance) => distance >= 0 && (distance - jumping.jump_distance) % 6 === 0;

function planePoints(agent) {
  const numbers = new Float32Array(bytes(agent.points).buffer), points = [];
  agent.positions.forEach((position, task) => {
    for (let step = 0; step < DECISIONS; step++) {
      const place = 2 * (task * DECISIONS + step);
      points.push({ position, height: agent.drawn_height, color: agent.color, hue: TASK_COLORS[task % TASK_COLORS.length], step, u: numbers[place], v: numbers[place + 1] });
    }
  });
  return points;
}

function planeScale(points, part) {
  const values = points.map((point) => point[part]), low = Math.min(...values), high = Math.max(...values);
  return (value) => PLANE.margin + (value - low) / (high - low || 1) * (PLANE.size - 2 * PLANE.margin);
}

function drawEmbedding(agent) {
  const points = planePoints(agent), x = planeScale(points, "u"), y = planeScale(points, "v");
  const picture = svg("svg", { viewBox: `0 0 ${PLANE.size} ${PLANE.size}`, role: "group", "aria-label": "Embedded states: arrow keys move along an episode" });
  const circles = points.map((point) => svg("circle", { class: "point", cx: x(point.u), cy: PLANE.size - y(point.v), r: 5, fill: point.hue, tabindex: -1,
    role: "img", "aria-label": pointName(point), "data-position": point.position, "data-step": point.step }));
  const show = (index, focus) => {
    const chosen = (index + points.length) % points.length;
    circles.forEach((circle, number) => { circle.classList.toggle("chosen", number === chosen); circle.setAttribute("tabindex", number === chosen ? 0 : -1); });
    if (focus) circles[chosen].focus();
    drawFrame(byId("point-frame"), points[chosen], optimalState(points[chosen], points[chosen].step));
    byId("point-caption").textContent = pointName(points[chosen]);
  };
  circles.forEach((circle, index) => {
    for (const kind of ["pointerenter", "pointerdown", "focus"]) circle.addEventListener(kind, () => show(index, false));
    circle.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -DECISIONS, ArrowDown: DECISIONS }[event.key];
      if (move) { event.preventDefault(); show(index + move, true); }
    });
  });
  picture.append(...circles, ...pointLabels(points, x, y));
  byId("plane").replaceChildren(picture);
  byId("plane-legend").replaceChildren(...legendOf(agent));
  show(0, false);
}

function pointLabels(points, x, y) {
  return points.filter((point) => LABELED(point.position - point.step)).map((point) => svg("text", {
    x: x(point.u) + 6, y: PLANE.size - y(point.v) - 4, "font-size": 10, "pointer-events": "none", "aria-hidden": "true",
  }, point.position - point.step));
}

function pointName(point) {
  const action = point.step === jumpStep(point) ? "jump" : "right";
  return `Obstacle at ${point.position}, step ${point.step}: ${pixels(point, point.step)}; the optimal action is ${action}.`;
}

function legendOf(agent) {
  return agent.positions.map((position, task) => {
    const mark = element("span", { "aria-hidden": "true" }, "● ");
    mark.style.color = TASK_COLORS[task % TASK_COLORS.length];
    return element("span", {}, mark, `obstacle at ${position}  `);
  });
}

function startEmbedding() {
  const choose = element("select", { id: "embedding-run", change: (event) => drawEmbedding(agents[Number(event.target.value)]) });
  options(choose, agents.map((one, number) => [number, `${one.label} (${one.projection})`]), agents.length - 1);
  byId("embedding-controls").append(labeled("Embedded by", choose));
  drawEmbedding(agents[agents.length - 1]);
}

part({ tab: "embedding", experiment: "jumping", available: () => agents.length > 0, start: startEmbedding });
