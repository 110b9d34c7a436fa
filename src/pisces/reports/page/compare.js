// Comparison of any settings: learning curves, single runs, paired differences.

import { allOf, byId, element, options, swatch } from "./dom.js";
import { curveBand, pairedDifferences } from "./numbers.js";
import { data, interval95, runsOf, settingsAt, shortName } from "./store.js";
import { part, update, view } from "./view.js";
import { chart, curveChart, intervalChart, runChart } from "./charts.js";
import { axisDomain, axisLabel, fillPlaces, rankedSettings } from "./overview.js";

function chip(number) {
  const setting = data.settings[number], on = view.shown.includes(number);
  const toggle = () => update({ shown: on ? view.shown.filter((one) => one !== number) : [...view.shown, number].sort((x, y) => x - y) });
  return element("button", { type: "button", class: "chip", "aria-pressed": String(on), "data-setting": number, click: async (event) => {
    const keyboard = document.activeElement === event.currentTarget;
    await toggle();
    if (keyboard) allOf(`.chip[data-setting="${number}"]`)[0]?.focus();
  } }, swatch(setting.color), `${shortName(number)} `, element("span", { class: "soft" }, `n=${setting.summary.count}`));
}

function drawChips() {
  const able = settingsAt(view.experiment, view.where), own = able.filter((number) => data.settings[number].own);
  const changed = able.filter((number) => !data.settings[number].own);
  byId("chips").replaceChildren(...(own.length ? own : able).map(chip));
  byId("changed-chips").replaceChildren(...(own.length ? changed : []).map(chip));
  byId("changed").hidden = !own.length || !changed.length;
  byId("changed-count").textContent = `${changed.length} more with overrides`;
}

function shownSettings() { return view.shown.filter((number) => data.settings[number].where === view.where); }

function drawCurves(numbers) {
  const series = numbers.map((number) => {
    const curves = runsOf(number).map((run) => run.curve).filter(Boolean);
    return { name: shortName(number), color: data.settings[number].color, band: curveBand(curves) };
  }).filter((one) => one.band.length > 1);
  const setting = data.settings[numbers[0]], clock = data.runs.find((run) => numbers.includes(run.setting) && run.curve)?.curve.clock ?? "iteration";
  const title = `Learning curves: median over seeds, band from the 25th to the 75th percentile`;
  byId("curves").replaceChildren(...(series.length ? [chart(title, curveChart(series, { label: setting.measure, clock, log: data.experiments[view.experiment].log, domain: axisDomain(setting) }))]
    : [element("p", { class: "soft" }, "The chosen runs recorded no learning curves.")]));
}

function drawRuns(numbers) {
  const setting = data.settings[numbers[0]], ranked = rankedSettings(numbers);
  const rows = numbers.flatMap((number) => runsOf(number).map((run) => ({ name: shortName(number), color: data.settings[number].color, seed: run.seed, value: run.value })));
  const settings = { label: axisLabel(setting), names: ranked.map(shortName), log: data.experiments[view.experiment].log };
  byId("single-runs").replaceChildren(chart("Every run; the line is the mean", runChart(rows, settings)));
}

function drawDifferences(numbers) {
  const { where } = data.settings[view.a];
  if (where !== view.where) {
    byId("differences").replaceChildren(element("p", { class: "soft" }, `The baseline was trained on other tasks (${where}); choose another one.`));
    return;
  }
  const rows = rankedSettings(numbers.filter((number) => number !== view.a)).map((number) => {
    const differences = pairedDifferences(runsOf(view.a), runsOf(number));
    return differences.length ? { name: shortName(number), color: data.settings[number].color, paper: null, ...interval95(differences) } : null;
  }).filter(Boolean);
  const { better } = data.settings[view.a];
  const title = `Difference from ${shortName(view.a)} on the same seeds: mean and 95 % CI`;
  byId("differences").replaceChildren(...(rows.length ? [chart(title, intervalChart(rows, { label: `difference, ${better} is better`, zero: true }))]
    : [element("p", { class: "soft" }, `No chosen method shares seeds with ${shortName(view.a)}.`)]));
}

function drawCompare() {
  fillPlaces(byId("compare-where"));
  drawChips();
  const numbers = shownSettings();
  const able = settingsAt(view.experiment, view.where), elsewhere = able.includes(view.a) ? [] : [[view.a, data.settings[view.a].label]];
  options(byId("baseline"), [...elsewhere, ...able.map((number) => [number, shortName(number)])], view.a);
  for (const id of ["curves", "single-runs", "differences"]) byId(id).replaceChildren();
  byId("compare-none").hidden = numbers.length > 0;
  if (!numbers.length) return;
  drawCurves(numbers);
  drawRuns(numbers);
  drawDifferences(numbers);
}

part({
  tab: "compare",
  start: () => {
    byId("compare-where").addEventListener("change", (event) => update({ where: event.target.value }));
    byId("baseline").addEventListener("change", (event) => update({ a: Number(event.target.value) }));
  },
  draw: drawCompare,
});
