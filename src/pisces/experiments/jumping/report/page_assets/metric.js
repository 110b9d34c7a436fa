// The metric between the states of two optimal episodes, and the similarity that an agent learned, side by side.

import { byId, element, labeled, options } from "../../../../reports/page/dom.js";
import { bytes, inflate } from "../../../../reports/page/decode.js";
import { data } from "../../../../reports/page/store.js";
import { part, update } from "../../../../reports/page/view.js";
import { agreement, agreementText, nearestPlace } from "../../../../reports/page/pairs.js";
import { matrixView } from "../../../../reports/page/matrix.js";
import { DECISIONS, FIRST_POSITION, POSITIONS, drawFrame, jumpStep, optimalState } from "./task.js";

const metricState = {
  x: { position: 25, height: 10 }, y: { position: 45, height: 10 }, metric: "psm", discount: 0, agent: -1, i: 11, j: 31,
};
const ACTION_NAMES = ["a move right", "a jump"];
const shownPair = { views: [], distance: null, learned: null, x: null, y: null };

// Distances of one metric and discount between the states of all pairs of obstacles x <= y, looked up in a list.
const matrices = new Map();

/** Unpacks the distances, once. */
export async function loadMatrices() {
  if (matrices.size) return;
  for (const [name, list] of Object.entries(data.jumping.metrics.matrices)) {
    matrices.set(name, await Promise.all(list.map(async ({ values, index }) => ({ values, index: await inflate(index) }))));
  }
}

/** The distance of state i of task x and state j of task y. */
export function metricDistance(name, x, y, i, j, discount = 0) {
  const list = matrices.get(name), { values, index } = list[Math.min(discount, list.length - 1)];
  const [a, b] = [x, y].map((task) => task.position - FIRST_POSITION).sort((one, other) => one - other);
  const start = (a * POSITIONS - a * (a - 1) / 2 + b - a) * DECISIONS * DECISIONS, turned = x.position > y.position;
  return values[index[start + (turned ? j * DECISIONS + i : i * DECISIONS + j)]];
}

function wholeMatrix(value) {
  return Float64Array.from({ length: DECISIONS * DECISIONS }, (_, place) => value(Math.floor(place / DECISIONS), place % DECISIONS));
}

export const agents = data.jumping.embeddings.map((one) => ({ ...one, numbers: null }));

/** Cosine similarity of the embeddings of state i of task x and state j of task y. */
export function learnedSimilarity(agent, x, y, i, j) {
  agent.numbers ??= new Int8Array(bytes(agent.directions).buffer);
  const a = stateOffset(agent, x, i), b = stateOffset(agent, y, j);
  let product = 0, lengthA = 0, lengthB = 0;
  for (let k = 0; k < agent.size; k++) {
    const u = agent.numbers[a + k], v = agent.numbers[b + k];
    product += u * v;
    lengthA += u * u;
    lengthB += v * v;
  }
  return lengthA && lengthB ? product / Math.sqrt(lengthA * lengthB) : 0;
}

function stateOffset(agent, task, step) {
  const place = agent.heights.indexOf(task.height) * POSITIONS + task.position - FIRST_POSITION;
  return (place * DECISIONS + step) * agent.size;
}

/** The optimal actions of a task, 1 for a jump. */
function optimalActions(task) { return Array.from({ length: DECISIONS }, (_, step) => (step === jumpStep(task) ? 1 : 0)); }

function drawMetric() {
  const agent = agents[metricState.agent], color = agent ? agent.color : "white", { metric, discount } = metricState;
  const x = { ...metricState.x, color }, y = { ...metricState.y, color };
  const distance = wholeMatrix((i, j) => metricDistance(metric, x, y, i, j, discount));
  const path = Array.from({ length: DECISIONS }, (_, i) => nearestPlace(distance.subarray(i * DECISIONS, (i + 1) * DECISIONS)));
  const shape = { rows: DECISIONS, columns: DECISIONS, path, ordered: true, x: `step of y (obstacle at ${y.position})`, y: `step of x (obstacle at ${x.position})` };
  const views = [matrixView({ ...shape, id: "metric-matrix", title: `Distance: ${data.jumping.metrics.titles[metric]}`, unit: "distance", values: distance,
    domain: [0, Math.max(...distance) || 1], lightIsLow: true }, choosePair)];
  const learned = agent ? wholeMatrix((i, j) => learnedSimilarity(agent, x, y, i, j)) : null;
  if (learned) {
    views.push(matrixView({ ...shape, id: "learned-matrix", title: `Learned by ${agent.label}`, unit: "cosine of the embeddings", values: learned, domain: [0, 1], lightIsLow: false }, choosePair));
  }
  const focused = document.activeElement?.id;
  byId("matrices").replaceChildren(...views.map((view) => view.figure));
  Object.assign(shownPair, { views, distance, learned, path, x, y });
  fillControls();
  byId("pair-to-embedding").hidden = !agents.length;
  showPair();
  if (focused) byId(focused)?.focus();
}

function fillControls() {
  for (const name of ["x", "y"]) for (const side of ["position", "height"]) byId(`${side}-${name}`).value = String(metricState[name][side]);
  byId("learned-run").value = String(metricState.agent);
}

function showPair() {
  const { i, j } = metricState, { x, y, distance, learned, path } = shownPair, place = i * DECISIONS + j, value = distance[place];
  for (const view of shownPair.views) view.mark(i, j);
  drawFrame(byId("frame-x"), x, optimalState(x, i));
  drawFrame(byId("frame-y"), y, optimalState(y, j));
  byId("caption-x").textContent = `x: step ${i}, ${pixels(x, i)}; ${i === jumpStep(x) ? "jump" : "right"}`;
  byId("caption-y").textContent = `y: step ${j}, ${pixels(y, j)}; ${j === jumpStep(y) ? "jump" : "right"}`;
  byId("pair-meaning").textContent = pairMeaning(x, y, i, j);
  const best = path[i], tie = value === distance[i * DECISIONS + best] && best !== j ? ` (just as near as step ${best}, which comes first)` : "";
  byId("pair").textContent = `Distance ${value < 10 ? value.toFixed(4) : value.toFixed(1)}. `
    + `Match: ${best === j ? "yes" : `no, the nearest state of y is step ${best}`}${tie}. `
    + (learned ? `Learned similarity: ${learned[place].toFixed(2)}.` : "Learned similarity: needs a run with its checkpoint.");
}

// What the two states have in common, for readers who do not know the metric.
function pairMeaning(x, y, i, j) {
  const [first, second] = [optimalActions(x), optimalActions(y)], found = agreement(first, second, i, j);
  const ahead = [x.position - i, y.position - j];
  const where = ahead[0] === ahead[1] ? "The obstacle is equally far in both." : `The obstacle is ${Math.abs(ahead[0] - ahead[1])} px nearer in ${ahead[0] < ahead[1] ? "x" : "y"}.`;
  return `${where} ${agreementText(found, ACTION_NAMES[first[i + found.steps]], ACTION_NAMES[second[j + found.steps]])}`;
}

export function pixels(task, step) {
  const ahead = task.position - step;
  return ahead >= 0 ? `obstacle ${ahead} px ahead` : `obstacle ${-ahead} px behind`;
}

function choosePair(i, j) {
  if (i === metricState.i && j === metricState.j) return;
  Object.assign(metricState, { i, j });
  showPair();
}

/** Opens the view of a pair of states. @param {{x: any, y: any, i: number, j: number, agent: number}} pair */
export function openPair(pair) {
  const task = ({ position, height }) => ({ position, height });
  Object.assign(metricState, { x: task(pair.x), y: task(pair.y), i: pair.i, j: pair.j, agent: pair.agent });
  return update({ tab: "metric" });
}

/** The pair of states that is shown. */
export function chosenPair() { return metricState; }

function taskControls(name) {
  const heights = agents.length ? agents[0].heights : [10, 15, 20], task = metricState[name];
  const choose = (side) => (event) => { metricState[name] = { ...metricState[name], [side]: Number(event.target.value) }; drawMetric(); };
  const position = element("select", { id: `position-${name}`, change: choose("position") });
  options(position, Array.from({ length: POSITIONS }, (_, k) => [FIRST_POSITION + k, FIRST_POSITION + k]), task.position);
  const height = element("select", { id: `height-${name}`, change: choose("height") });
  options(height, heights.map((one) => [one, one]), task.height);
  return [labeled(`Obstacle of ${name}`, position), labeled(`Floor of ${name}`, height)];
}

async function startMetric() {
  await loadMatrices();
  const metric = element("select", { id: "metric-name", change: (event) => { metricState.metric = event.target.value; drawMetric(); } });
  options(metric, Object.entries(data.jumping.metrics.titles), "psm");
  const discount = element("select", { id: "discount", change: (event) => { metricState.discount = Number(event.target.value); drawMetric(); } });
  options(discount, data.jumping.metrics.discounts.map(([, title], number) => [number, title]), 0);
  const agent = element("select", { id: "learned-run", change: (event) => { metricState.agent = Number(event.target.value); drawMetric(); } });
  if (metricState.agent < 0) metricState.agent = agents.length - 1;
  options(agent, agents.length ? agents.map((one, number) => [number, one.label]) : [[-1, "no run with a checkpoint"]], metricState.agent);
  byId("metric-controls").append(...taskControls("x"), ...taskControls("y"), labeled("Metric", metric), labeled("Discount", discount), labeled("Learned by", agent));
  byId("pair-to-embedding").addEventListener("click", () => update({ tab: "embedding" }));
}

part({ tab: "metric", experiment: "jumping", start: startMetric, draw: drawMetric });
