// The page of `pisces metric`: distances between the states of two trajectories or MDPs.

import { byId } from "./dom.js";
import { bytes, inflateJson } from "./decode.js";
import { agreement, agreementText } from "./pairs.js";
import { matrixView } from "./matrix.js";

const metric = await inflateJson(byId("data").textContent);
const [rows, columns] = metric.shape;
const distances = Float64Array.from(new Float32Array(bytes(metric.distance).buffer));
const largestDistance = distances.reduce((most, one) => Math.max(most, one), 0) || 1;
const [sideX, sideY] = metric.sides;
const sprites = await Promise.all(metric.sides.map(({ frames }) => frames && loaded(frames.source)));

function loaded(source) {
  const image = new Image();
  image.src = source;
  return image.decode().then(() => image);
}

/** The place among the shown states that is nearest to a state. */
function shownPlace(side, state) {
  const states = metric.states[side], step = states.length > 1 ? states[1] - states[0] : 1;
  return Math.min(Math.round(state / step), states.length - 1);
}

function drawSide(letter, side, number, place) {
  const canvas = byId(`frame-${letter}`), { frames, numbers, actions } = side, state = metric.states[number][place];
  canvas.hidden = !frames;
  if (frames) {
    const { width, height, columns: across } = frames;
    Object.assign(canvas, { width, height });
    canvas.style.aspectRatio = `${width} / ${height}`;
    canvas.getContext("2d").drawImage(sprites[number], (place % across) * width, Math.floor(place / across) * height, width, height, 0, 0, width, height);
  }
  const action = actions ? `; action ${actions[state]}` : "", values = numbers ? `; observation ${numbers[place]}` : "";
  byId(`caption-${letter}`).textContent = `${letter}: ${side.name}, state ${state}${action}${values}`;
  return state;
}

function meaning(i, j, value) {
  if (!sideX.actions || !sideY.actions) {
    return value === 0 ? "The metric takes the two states for the same." : `They are ${Math.round(100 * value / largestDistance)} % as far apart as the most different states here.`;
  }
  const known = sideX.sequence && sideY.sequence;
  if (!known) {
    const [a, b] = [sideX.actions[i], sideY.actions[j]];
    return a === b ? `Action ${a} is chosen in both states.` : `Different actions are chosen: ${a} in x, ${b} in y.`;
  }
  const found = agreement(sideX.actions, sideY.actions, i, j);
  // Beyond the end of an episode, the metric repeats its last action.
  if (!found.differ && value > 0) return "The same actions are taken until one of the episodes ends.";
  return agreementText(found, `action ${sideX.actions[i + found.steps]}`, `action ${sideY.actions[j + found.steps]}`, "taken");
}

function showStates(row, column) {
  heatMap.mark(row, column);
  const i = drawSide("x", sideX, 0, row), j = drawSide("y", sideY, 1, column), value = distances[row * columns + column];
  byId("pair-meaning").textContent = meaning(i, j, value);
  const best = metric.nearest[row], place = metric.states[1].indexOf(best);
  const nearest = best === j || (place >= 0 && value <= distances[row * columns + place]);
  byId("pair").textContent = `Distance ${Number(value.toPrecision(6))}. ${nearest ? "No state of y is nearer to this state of x." : `The nearest state of y is state ${best}.`}`;
}

const heatMap = matrixView({
  id: "metric-matrix", title: metric.title, unit: "distance", rows, columns, values: distances, domain: [0, largestDistance], lightIsLow: true,
  path: metric.nearest.map((state) => shownPlace(1, state)), ordered: sideX.sequence && sideY.sequence, x: `state of y: ${sideY.name}`, y: `state of x: ${sideX.name}`,
}, showStates);
byId("matrices").append(heatMap.figure);
showStates(0, shownPlace(1, metric.nearest[0]));
document.documentElement.dataset.ready = "yes";
