// Diagnosis: the state where the agent first goes wrong, the training state that misled it, and all unseen tasks.

import { byId, element, labeled, options } from "../../../../reports/page/dom.js";
import { data } from "../../../../reports/page/store.js";
import { part } from "../../../../reports/page/view.js";
import { drawFrame, optimalState, taskName } from "./task.js";
import { pixels } from "./metric.js";

const diagnosisState = { run: 0 };

function plainTable(table, header, rows) {
  const kinds = rows[0].map((value) => (typeof value === "number" ? "number" : ""));
  const head = header.map((name, place) => element("th", { scope: "col", class: kinds[place] }, name));
  const body = rows.map((row) => element("tr", {}, ...row.map((value, place) =>
    element("td", { class: kinds[place] }, kinds[place] ? value.toFixed(1) : value))));
  table.replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

function stateFigure(title, task, step, text) {
  const canvas = element("canvas", { class: "screen", role: "img", "aria-label": `${title}: ${taskName(task)}, step ${step}` });
  drawFrame(canvas, task, optimalState(task, step));
  return element("figure", {}, element("p", { class: "frame-title" }, title), canvas, element("figcaption", {}, `${taskName(task)}, step ${step}: ${pixels(task, step)}. ${text}`));
}

/** What went wrong, in words. */
function failureText({ expert, agent, neighbor, nearest }) {
  const first = `The expert's action is "${expert}", the agent's "${agent}".`;
  const followed = neighbor.action === agent
    ? `In the training state that the agent's embedding puts nearest, the optimal action is "${neighbor.action}": the agent does what it learned there.`
    : `In the training state that the agent's embedding puts nearest, the optimal action is "${neighbor.action}" too: the embedding did not mislead the agent.`;
  const known = nearest.action === expert
    ? `By the metric, the nearest training state is another one, where the optimal action is "${nearest.action}".`
    : `By the metric, even the nearest training state needs "${nearest.action}": no training task shows what to do here.`;
  const same = neighbor.distance <= nearest.distance + 1e-6;
  return same ? `${first} ${followed} It is also nearest by the metric.` : `${first} ${followed} ${known}`;
}

function showFailure(task) {
  const { failure } = task;
  byId("failure-title").textContent = task.solved ? `Solved: ${task.name}` : `Failed: ${task.name}`;
  byId("failure-frames").hidden = !failure;
  if (!failure) {
    byId("failure-text").textContent = "The agent acts as the expert in every state of the optimal episode.";
    return;
  }
  const { step, expert, agent, neighbor, nearest } = failure;
  byId("failure-text").textContent = failureText(failure);
  byId("failure-frames").replaceChildren(
    stateFigure("First wrong action", task.task, step, `Expert: "${expert}". Agent: "${agent}".`),
    stateFigure("Nearest training state in the embedding", neighbor.task, neighbor.step, `Optimal action: ${neighbor.action}. Distance by the metric ${neighbor.distance.toFixed(2)}.`),
    stateFigure("Nearest training state by the metric", nearest.task, nearest.step, `Optimal action: ${nearest.action}. Distance ${nearest.distance.toFixed(2)}.`));
}

function failureSummary({ failure, solved }) {
  if (!failure) return solved ? "–" : "not on the optimal episode";
  return `step ${failure.step}: "${failure.agent}", not "${failure.expert}"`;
}

function drawDiagnosis() {
  const one = data.jumping.diagnoses[diagnosisState.run], worst = [...one.tasks].sort((a, b) => Number(a.solved) - Number(b.solved) || b.regret - a.regret);
  byId("diagnosis-summary").textContent = one.summary;
  const choose = (task) => element("button", { type: "button", class: "link", click: () => { showFailure(task); byId("failure").scrollIntoView({ block: "nearest" }); } }, task.name);
  plainTable(byId("diagnosis-tasks"), ["unseen task", "the agent", "first wrong action", "aligned (%)", "no match (%)"],
    worst.map((task) => [choose(task), task.solved ? "solves it" : "fails", failureSummary(task), task.aligned, task.unmatched]));
  showFailure(worst.find(({ failure }) => failure && failure.neighbor.action === failure.agent) ?? worst[0]);
}

function startDiagnosis() {
  const runs = data.jumping.diagnoses;
  plainTable(byId("diagnosis-runs"), ["run", "tasks solved", "aligned (%)", "no match (%)", "worst embedding"],
    runs.map((one) => [one.label, `${one.solved} of ${one.tasks.length}`, one.aligned, one.unmatched, one.worst || "–"]));
  const failing = runs.findIndex((one) => one.tasks.some((task) => task.failure));
  diagnosisState.run = Math.max(failing, 0);
  const choose = element("select", { id: "diagnosis-run", change: (event) => { diagnosisState.run = Number(event.target.value); drawDiagnosis(); } });
  options(choose, runs.map((one, number) => [number, one.label]), diagnosisState.run);
  byId("diagnosis-controls").append(labeled("Agent", choose));
}

part({ tab: "diagnosis", experiment: "jumping", available: () => data.jumping.diagnoses.length > 0, start: startDiagnosis, draw: drawDiagnosis });
