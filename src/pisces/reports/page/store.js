// The data of the page, and how its parts look runs up.

import { byId } from "./dom.js";
import { bitsOf, inflateJson } from "./decode.js";
import { meanInterval } from "./numbers.js";

export const data = await inflateJson(byId("data").textContent);

const settingRuns = data.settings.map(() => []);
for (const run of data.runs) settingRuns[run.setting].push(run);

/** The runs of a setting. @param {number} setting */
export function runsOf(setting) { return settingRuns[setting]; }

const decoded = new Map(data.runs.map((run) => [run, {}]));

/** A run's packed bits of some name. @param {any} run @param {string} name */
export function runBits(run, name) {
  const known = decoded.get(run);
  known[name] ??= bitsOf(run[name]);
  return known[name];
}

/** The settings of an experiment that train on the same, in the order of the experiment. @param {string} experiment @param {string} where */
export function settingsAt(experiment, where) {
  return data.settings.map((_, number) => number).filter((number) =>
    data.settings[number].experiment === experiment && data.settings[number].where === where);
}

/** The names of what an experiment's settings train on. @param {string} experiment */
export function places(experiment) {
  const own = data.settings.filter((setting) => setting.experiment === experiment);
  return [...new Set(own.map((setting) => setting.where))];
}

/** The changes of a setting, without those that all settings of its experiment have. */
function ownChanges(setting) {
  const others = data.settings.filter((other) => other.experiment === setting.experiment).map((other) => other.changes.split(", "));
  return setting.changes.split(", ").filter((change) => !others.every((changes) => changes.includes(change))).join(", ");
}

const shortNames = data.settings.map((setting) => {
  const changes = ownChanges(setting);
  return changes ? `${setting.name} (${changes})` : setting.name;
});

/** The method's name, and what else sets the setting apart. @param {number} number */
export function shortName(number) { return shortNames[number]; }

/** @param {number[]} values */
export function interval95(values) { return meanInterval(values, data.t95); }
