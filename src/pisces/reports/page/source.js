// Everything behind a number: its commands and its config.

import { byId, copyText, element } from "./dom.js";
import { data, runsOf } from "./store.js";

/** @param {number[]} settings */
export function showSource(settings) {
  const dialog = byId("source"), close = element("button", { type: "button", click: () => dialog.close() }, "Close");
  const parts = settings.map((number) => {
    const setting = data.settings[number], runs = runsOf(number);
    const commands = [...new Set(runs.map((run) => run.command).filter(Boolean))].join("\n") || "see the config";
    const copy = element("button", { type: "button", click: () => copyText(commands, copy) }, "Copy");
    return element("div", {},
      element("p", {}, `${setting.measure}: mean ${setting.summary.mean}, seeds: ${runs.map((run) => run.seed).join(", ")}`),
      element("h3", {}, commands.includes("\n") ? "The commands " : "The command ", copy),
      element("pre", { tabindex: 0, class: "commands" }, commands),
      element("h3", {}, "The config, without the seed"),
      element("pre", { tabindex: 0, class: "config" }, JSON.stringify(setting.config, null, 1)),
      element("h3", {}, "The run folders"),
      element("pre", { tabindex: 0 }, runs.map((run) => `seed ${run.seed}: ${run.folder}`).join("\n")));
  });
  const title = settings.map((number) => data.settings[number].label).join("; ");
  dialog.replaceChildren(element("header", {}, element("h2", {}, title), close), ...parts);
  dialog.showModal();
}
