// For every compared method, the share of its runs that solve each task.

import { byId } from "../../../../reports/page/dom.js";
import { cellChart, chart } from "../../../../reports/page/charts.js";
import { data, runsOf, shortName } from "../../../../reports/page/store.js";
import { part, view } from "../../../../reports/page/view.js";
import { taskName } from "./task.js";
import { isTraining, mapTasks, solvedShare } from "./watch.js";

function shareMap(number) {
  const runs = runsOf(number), color = data.settings[number].config.colors ? "red" : "white";
  const cells = mapTasks().map(({ position, height }) => {
    const task = { position, height, color }, share = solvedShare(runs, task), training = isTraining(runs, task);
    const text = `${taskName(task)}\nsolved by ${Math.round(share * runs.length)} of ${runs.length} runs${training ? "\ntraining task" : ""}`;
    return { x: position, y: height, share, mark: training ? "T" : "", text };
  });
  return chart(`${shortName(number)}${color === "red" ? ", red obstacles" : ""}: share of ${runs.length} runs`, cellChart(cells, { x: "obstacle position", y: "floor height", every: 5 }));
}

part({
  tab: "compare",
  experiment: "jumping",
  draw: () => { byId("share-maps").replaceChildren(...view.shown.filter((number) => data.settings[number].where === view.where).map(shareMap)); },
});
