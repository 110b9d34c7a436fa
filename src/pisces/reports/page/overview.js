// The first screen: the headline of an experiment, and its settings ranked by their means.

import { byId, element, options } from "./dom.js";
import { pairedDifferences, winRate } from "./numbers.js";
import { fillTemplate, intervalText, shortNumber, withUnit } from "./text.js";
import { data, interval95, places, runsOf, settingsAt, shortName } from "./store.js";
import { part, update, view } from "./view.js";
import { showSource } from "./source.js";
import { chart, intervalChart } from "./charts.js";

const PLAIN_CLAIM = "{method}: {value}, {baseline}: {other}";

/** The headline of two settings. @param {number} a the baseline @param {number} b the method */
export function headline(a, b) {
  const [x, y] = [data.settings[a], data.settings[b]], { claim } = data.experiments[view.experiment];
  if (a === b) return `${shortName(a)}: ${withUnit(x.summary.mean, x.measure)}`;
  const values = { method: shortName(b), baseline: shortName(a), value: withUnit(y.summary.mean, y.measure), other: withUnit(x.summary.mean, x.measure) };
  return fillTemplate(claim || PLAIN_CLAIM, values);
}

function seedsText(setting) {
  const { count, low } = setting.summary;
  return `${count} seed${count > 1 ? "s" : ""}` + (low === null ? "" : `, 95 % CI ${intervalText(setting.summary)}`);
}

/** What the headline rests on: seeds, intervals, the paired difference. @param {number} a @param {number} b */
export function evidence(a, b) {
  const [x, y] = [data.settings[a], data.settings[b]];
  if (a === b) return `${x.measure}: ${seedsText(x)}.`;
  if (x.where !== y.where) return `Trained on different tasks: ${y.where} (${seedsText(y)}), and ${x.where} (${seedsText(x)}).`;
  if (x.summary.count + y.summary.count === 2) return `Trained on: ${y.where}. One run of each: an illustration, not evidence.`;
  const differences = pairedDifferences(runsOf(a), runsOf(b));
  let text = `Trained on: ${y.where}. ${seedsText(y)}; against ${seedsText(x)}.`;
  if (differences.length > 1) {
    const found = interval95(differences), sign = found.mean > 0 ? "+" : "";
    const sure = found.low > 0 || found.high < 0 ? "" : ", which contains zero";
    text += ` On the same ${found.count} seeds: ${sign}${shortNumber(found.mean)} [${intervalText(found)}${sure}].`;
  } else {
    const rate = winRate(runsOf(a).map((run) => run.value), runsOf(b).map((run) => run.value), y.better);
    text += ` A run of the first beats one of the second with probability ${rate.toFixed(2)}.`;
  }
  return text;
}

/** The settings of a chart, best first; those with changes only if they are part of the comparison. */
export function rankedSettings(numbers) {
  const sign = data.settings[numbers[0]]?.better === "lower" ? 1 : -1;
  return [...numbers].sort((x, y) => sign * (data.settings[x].summary.mean - data.settings[y].summary.mean));
}

/** @param {number} number */
export function intervalRow(number) {
  const setting = data.settings[number];
  return { name: shortName(number), color: setting.color, paper: setting.paper, ...setting.summary };
}

/** The label of a measure's axis: which way is better. @param {any} setting */
export function axisLabel(setting) { return `${setting.measure}, ${setting.better} is better ${setting.better === "higher" ? "→" : "←"}`; }

/** @param {any} setting */
export function axisDomain(setting) {
  const [low, high] = setting.limits;
  return low === null || high === null ? undefined : [low, high];
}

function drawOverview() {
  byId("headline").textContent = headline(view.a, view.b);
  byId("evidence").textContent = evidence(view.a, view.b);
  byId("rule").textContent = data.experiments[view.experiment].rule;
  byId("rule").hidden = !data.experiments[view.experiment].rule;
  drawRanking();
}

function drawRanking() {
  const able = settingsAt(view.experiment, view.where), own = able.filter((number) => data.settings[number].own);
  const numbers = rankedSettings([...new Set([...(own.length ? own : able), view.a, view.b])].filter((number) => able.includes(number)));
  const first = data.settings[numbers[0]], paper = numbers.some((number) => data.settings[number].paper !== null);
  const title = `${first.measure}, ${view.where}: mean and 95 % CI over seeds${paper ? "; diamonds are the paper's means" : ""}`;
  const draw = intervalChart(numbers.map(intervalRow), { label: axisLabel(first), log: data.experiments[view.experiment].log, domain: data.experiments[view.experiment].log ? undefined : axisDomain(first) });
  byId("ranking").replaceChildren(chart(title, draw));
  const sources = numbers.map((number) => element("button", { type: "button", class: "link", click: () => showSource([number]) }, shortName(number)));
  byId("ranking-sources").replaceChildren("Commands and configs: ", ...sources.flatMap((button, place) => (place ? [", ", button] : [button])));
}

/** Selects what to train on, wherever a tab offers it. @param {Element} select */
export function fillPlaces(select) {
  const names = places(view.experiment);
  options(select, names.map((name) => [name, name]), view.where);
  select.closest("label").hidden = names.length < 2;
}

part({
  tab: "overview",
  start: () => {
    const { note } = data;
    byId("how-to-read").hidden = !note;
    if (note) byId("how-to-read-text").textContent = note;
    byId("ranking-where").addEventListener("change", (event) => update({ where: event.target.value }));
  },
  draw: () => { fillPlaces(byId("ranking-where")); drawOverview(); },
});
