// Diagnosis: one row per run, and the unseen tasks of the chosen run, worst first.

import { byId, element, labeled, options } from "../../../../reports/page/dom.js";
import { data } from "../../../../reports/page/store.js";
import { part } from "../../../../reports/page/view.js";

function plainTable(table, header, rows) {
  const kinds = rows[0].map((value) => (typeof value === "number" ? "number" : ""));
  const head = header.map((name, place) => element("th", { scope: "col", class: kinds[place] }, name));
  const body = rows.map((row) => element("tr", {}, ...row.map((value, place) =>
    element("td", { class: kinds[place] }, kinds[place] ? value.toFixed(1) : value))));
  table.replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

function drawDiagnosis(one) {
  byId("diagnosis-summary").textContent = one.summary;
  const worst = [...one.tasks].sort((a, b) => b.regret - a.regret);
  plainTable(byId("diagnosis-tasks"), ["unseen task", "aligned (%)", "no match (%)", "bound", "the agent"],
    worst.map((task) => [task.name, task.aligned, task.unmatched, task.bound, task.solved ? "solves it" : "fails"]));
}

function startDiagnosis() {
  const runs = data.jumping.diagnoses;
  plainTable(byId("diagnosis-runs"), ["run", "aligned (%)", "no match (%)", "largest bound", "worst task"],
    runs.map((one) => [one.label, one.aligned, one.unmatched, one.bound, one.worst || "–"]));
  const choose = element("select", { id: "diagnosis-run", change: (event) => drawDiagnosis(runs[Number(event.target.value)]) });
  options(choose, runs.map((one, number) => [number, one.label]), runs.length - 1);
  byId("diagnosis-controls").append(labeled("Task by task", choose));
  drawDiagnosis(runs[runs.length - 1]);
}

part({ tab: "diagnosis", experiment: "jumping", available: () => data.jumping.diagnoses.length > 0, start: startDiagnosis });
