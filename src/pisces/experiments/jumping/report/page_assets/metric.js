// The metric between the states of two optimal episodes, and the similarity that an agent learned, side by side.

import { byId, element, labeled, options } from "../../../../reports/page/dom.js";
import { bytes, inflate } from "../../../../reports/page/decode.js";
import { data } from "../../../../reports/page/store.js";
import { part } from "../../../../reports/page/view.js";
import { DECISIONS, FIRST_POSITION, POSITIONS, drawFrame, jumpStep, optimalState } from "./task.js";

const HEAT = [[252, 253, 191], [254, 176, 120], [241, 96, 93], [183, 55, 121], [114, 31, 129], [44, 17, 95], [0, 0, 4]];
const CELL = 8;

const metricState = {
  x: { position: 25, height: 10 }, y: { position: 45, height: 10 }, metric: "psm", discount: 0, agent: -1, i: 11, j: 31,
};

// Distances of one metric and discount between the states of all pairs of obstacles x <= y, looked up in a list.
const matrices = new Map();
async function loadMatrices() {
  for (const [name, list] of Object.entries(data.jumping.metrics.matrices)) {
    matrices.set(name, await Promise.all(list.map(async ({ values, index }) => ({ values, index: await inflate(index) }))));
  }
}

function metricMatrix(name, x, y, discount) {
  const list = matrices.get(name), { values, index } = list[Math.min(discount, list.length - 1)];
  const [a, b] = [x, y].map((task) => task.position - FIRST_POSITION).sort((one, other) => one - other);
  const start = (a * POSITIONS - a * (a - 1) / 2 + b - a) * DECISIONS * DECISIONS, turned = x.position > y.position;
  const value = (i, j) => values[index[start + (turned ? j * DECISIONS + i : i * DECISIONS + j)]];
  return Array.from({ length: DECISIONS }, (_, i) => Float64Array.from({ length: DECISIONS }, (__, j) => value(i, j)));
}

function nearest(row) { return row.indexOf(Math.min(...row)); }

export const agents = data.jumping.embeddings.map((one) => ({ ...one, numbers: null }));

// Cosine similarity of the embeddings of state i of task x and state j of task y.
function learnedSimilarity(agent, x, y, i, j) {
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

export function heat(share) {
  const place = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1), low = Math.floor(place), high = Math.ceil(place);
  return HEAT[low].map((value, channel) => Math.round(value + (place - low) * (HEAT[high][channel] - value)));
}

function drawMatrix(canvas, values, low, high, marks) {
  canvas.width = canvas.height = DECISIONS * CELL;
  const context = canvas.getContext("2d");
  for (let i = 0; i < DECISIONS; i++) {
    for (let j = 0; j < DECISIONS; j++) {
      context.fillStyle = `rgb(${heat((values[i][j] - low) / (high - low || 1)).join(" ")})`;
      context.fillRect(j * CELL, i * CELL, CELL, CELL);
    }
  }
  // The path of matched states: each row's nearest column.
  context.strokeStyle = "#00a06a";
  context.lineWidth = 3;
  context.beginPath();
  marks.forEach((j, i) => context.lineTo((j + 0.5) * CELL, (i + 0.5) * CELL));
  context.stroke();
  context.strokeStyle = "#1f8fff";
  context.lineWidth = 2;
  context.strokeRect(metricState.j * CELL - 1, metricState.i * CELL - 1, CELL + 2, CELL + 2);
}

function drawMetric() {
  const agent = agents[metricState.agent], color = agent ? agent.color : "white";
  const x = { ...metricState.x, color }, y = { ...metricState.y, color };
  const distance = metricMatrix(metricState.metric, x, y, metricState.discount);
  const positives = distance.map(nearest), largest = Math.max(...distance.map((row) => Math.max(...row)));
  drawMatrix(byId("metric-matrix"), distance, 0, largest, positives);
  byId("metric-largest").textContent = largest < 10 ? largest.toFixed(2) : largest.toFixed(0);
  byId("learned").hidden = !agent;
  let similarity = null;
  if (agent) {
    const learned = distance.map((row, i) => Array.from(row, (_, j) => learnedSimilarity(agent, x, y, i, j)));
    drawMatrix(byId("learned-matrix"), learned.map((row) => row.map((value) => 1 - value)), 0, 1, positives);
    similarity = learned[metricState.i][metricState.j];
  }
  describePair(x, y, distance, positives, similarity);
}

function describePair(x, y, distance, positives, similarity) {
  const { i, j } = metricState, value = distance[i][j], best = positives[i];
  drawFrame(byId("frame-x"), x, optimalState(x, i));
  drawFrame(byId("frame-y"), y, optimalState(y, j));
  byId("caption-x").textContent = `x: step ${i}, ${pixels(x, i)}; ${i === jumpStep(x) ? "jump" : "right"}`;
  byId("caption-y").textContent = `y: step ${j}, ${pixels(y, j)}; ${j === jumpStep(y) ? "jump" : "right"}`;
  byId("pair-meaning").textContent = pairMeaning(x, y, i, j, value);
  const tie = value === distance[i][best] && best !== j ? ` (just as near as step ${best}, which comes first)` : "";
  byId("pair").textContent = `Distance ${value < 10 ? value.toFixed(4) : value.toFixed(1)}. `
    + `Positive pair: ${best === j ? "yes" : `no, the nearest state of y is step ${best}`}${tie}. `
    + (similarity === null ? "Learned similarity: needs a run with its checkpoint." : `Learned similarity: ${similarity.toFixed(2)}.`);
}

// What the two states have in common, for readers who do not know the metric.
function pairMeaning(x, y, i, j, value) {
  const ahead = [x.position - i, y.position - j], due = (task, step) => (step < jumpStep(task) ? `${jumpStep(task) - step} steps before the jump` : step === jumpStep(task) ? "at the jump" : "after the jump");
  const where = `The agent is ${due(x, i)} in x and ${due(y, j)} in y; the obstacle is ${ahead[0] === ahead[1] ? "equally far" : `${Math.abs(ahead[0] - ahead[1])} px nearer in ${ahead[0] < ahead[1] ? "x" : "y"}`}.`;
  return `${where} ${value === 0 ? "This metric takes the two states for the same." : "This metric tells the two states apart."}`;
}

export function pixels(task, step) {
  const ahead = task.position - step;
  return ahead >= 0 ? `obstacle ${ahead} px ahead` : `obstacle ${-ahead} px behind`;
}

function choosePair(i, j) {
  metricState.i = Math.min(Math.max(i, 0), DECISIONS - 1);
  metricState.j = Math.min(Math.max(j, 0), DECISIONS - 1);
  drawMetric();
}

function matrixEvents(canvas) {
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    choosePair(Math.floor((event.clientY - box.top) / box.height * DECISIONS), Math.floor((event.clientX - box.left) / box.width * DECISIONS));
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    choosePair(metricState.i + move[0], metricState.j + move[1]);
  });
}

function taskControls(name) {
  const heights = agents.length ? agents[0].heights : [10, 15, 20], task = metricState[name];
  const choose = (part) => (event) => { task[part] = Number(event.target.value); drawMetric(); };
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
  metricState.agent = agents.length - 1;
  options(agent, agents.length ? agents.map((one, number) => [number, one.label]) : [[-1, "no run with a checkpoint"]], metricState.agent);
  byId("metric-controls").append(...taskControls("x"), ...taskControls("y"), labeled("Metric", metric), labeled("Discount", discount), labeled("Learned by", agent));
  matrixEvents(byId("metric-matrix"));
  matrixEvents(byId("learned-matrix"));
  drawMetric();
}

part({ tab: "metric", experiment: "jumping", start: startMetric });
