// The jumping task as Python computed it: sizes, the episodes that agents can play, frames.

import { bytes, mapValues } from "../../../../reports/page/decode.js";
import { data, runBits } from "../../../../reports/page/store.js";

export const jumping = data.jumping;
const SCREEN = jumping.screen;
export const DECISIONS = jumping.decisions;
export const FIRST_POSITION = jumping.positions[0];
export const POSITIONS = jumping.positions.length;
export const FIRST_HEIGHT = jumping.heights[0];
const HEIGHTS = jumping.heights.length;
const TASKS = POSITIONS * HEIGHTS;

// A plan is the list of steps at which an agent jumps; plans are known by number.
const planNumbers = new Map(jumping.plans.map((steps, number) => [steps.join(), number]));
const planHeights = bytes(jumping.plan_heights);
const lengths = mapValues(jumping.lengths, bytes), outcomes = mapValues(jumping.outcomes, bytes);

function planNumber(steps) { return planNumbers.get(steps.join()); }

function heightAt(plan, step) { return planHeights[plan * (DECISIONS + 1) + step]; }

function stepsToObstacle(position) { return jumping.steps_to_obstacle[position - FIRST_POSITION]; }

// Red obstacles end episodes as white ones do.
function kindOf(task) { return task.color === "green" ? "green" : "white"; }

export function jumpStep(task) { return jumping.jump_steps[kindOf(task)][task.position - FIRST_POSITION]; }

// Tasks: positions from left to right, and for each position the heights upwards; red tasks before green ones.
export function taskIndex(task) {
  return (task.color === "green" ? TASKS : 0)
    + (task.position - FIRST_POSITION) * HEIGHTS + task.height - FIRST_HEIGHT;
}

// Where a task's actions begin: the tasks before it have one action per step to their obstacle.
function actionsStart(task) {
  const before = (count) => HEIGHTS * jumping.steps_to_obstacle.slice(0, count).reduce((a, b) => a + b, 0);
  return (task.color === "green" ? before(POSITIONS) : 0) + before(task.position - FIRST_POSITION)
    + (task.height - FIRST_HEIGHT) * stepsToObstacle(task.position);
}

// A run's episode on a task. Its actions are known on the floor before the obstacle; those in the air change nothing.
export function episode(run, task) {
  const actions = runBits(run, "actions"), start = actionsStart(task), jumps = [];
  let plan = planNumber(jumps);
  for (let step = 0; step < stepsToObstacle(task.position); step++) {
    if (heightAt(plan, step) === 0 && actions(start + step)) {
      jumps.push(step);
      plan = planNumber(jumps);
    }
  }
  const place = (task.position - FIRST_POSITION) * jumping.plans.length + plan, last = lengths[kindOf(task)][place];
  const action = (step) => (step === last ? "end" : heightAt(plan, step) ? "in the air" : jumps.includes(step) ? "jump" : "right");
  const states = Array.from({ length: last + 1 }, (_, step) => ({ x: step, height: heightAt(plan, step), action: action(step) }));
  return { states, jumps, outcome: jumping.outcome_texts[outcomes[kindOf(task)][place]] };
}

export function optimalState(task, step) {
  const jump = jumpStep(task);
  return { x: step, height: heightAt(planNumber(jump < DECISIONS ? [jump] : []), step) };
}

export function drawFrame(canvas, task, state) {
  const context = canvas.getContext("2d"), row = (value) => SCREEN - value;
  const [agentWidth, agentHeight] = jumping.agent, [obstacleWidth, obstacleHeight] = jumping.obstacle;
  canvas.width = canvas.height = SCREEN;
  context.fillStyle = "#000";
  context.fillRect(0, 0, SCREEN, SCREEN);
  context.fillStyle = "#fff";
  context.fillRect(state.x, row(task.height + state.height) - agentHeight, agentWidth, agentHeight);
  context.fillStyle = { red: "#800000", green: "#008000" }[task.color] || "#808080";
  context.fillRect(task.position, row(task.height) - obstacleHeight, obstacleWidth, obstacleHeight);
  context.fillStyle = "#fff";
  for (const [left, top, width, high] of [[0, 0, SCREEN, 1], [0, SCREEN - 1, SCREEN, 1], [0, 0, 1, SCREEN],
    [SCREEN - 1, 0, 1, SCREEN], [0, row(task.height) - 1, SCREEN, 1]]) context.fillRect(left, top, width, high);
}

export function taskName(task) {
  return `${task.color === "white" ? "" : task.color + " "}obstacle at ${task.position}, floor at ${task.height}`;
}
