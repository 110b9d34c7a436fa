// What the page shows: tabs, the chosen experiment and settings, and the link that restores them.

import { allOf, byId, element } from "./dom.js";
import { data, places, settingsAt } from "./store.js";
import { fragmentOf, readFragment } from "./text.js";

export const TABS = { overview: "Overview", compare: "Compare", metric: "Metric", embedding: "Embedding", diagnosis: "Diagnosis", runs: "Runs" };
const MOST_SHOWN = 6;

/** The state of the page; `update` changes it. */
export const view = { tab: "overview", experiment: Object.keys(data.experiments)[0], where: "", a: 0, b: 0, shown: [], task: null };

const parts = [];

/**
 * Adds a part of the page. It starts when its tab is first shown, and is drawn then and after every change.
 * @param {{tab: string, experiment?: string, available?: () => boolean, start?: () => any, draw?: () => any}} one
 */
export function part(one) { parts.push({ started: false, ...one }); }

/** The setting of the same method and changes at another place; null without one. @param {number} number @param {string} where */
export function sameMethodAt(number, where) {
  const wanted = data.settings[number];
  const found = settingsAt(wanted.experiment, where).filter((other) => data.settings[other].method === wanted.method);
  return found.find((other) => data.settings[other].own) ?? found[0] ?? null;
}

/** The settings that a comparison shows at first: the pair, then the best ones. */
function firstShown(experiment, where, pair) {
  const better = (x, y) => (data.settings[x].better === "higher" ? -1 : 1) * (data.settings[x].summary.mean - data.settings[y].summary.mean);
  const own = settingsAt(experiment, where).filter((number) => data.settings[number].own).sort(better);
  return [...new Set([...pair, ...own])].slice(0, MOST_SHOWN).sort((x, y) => x - y);
}

/** Choices that follow from the experiment. @param {string} experiment */
function defaults(experiment) {
  const [a, b] = data.experiments[experiment].pair, where = data.settings[a].where;
  return { experiment, where, a, b, shown: firstShown(experiment, where, [a, b]), task: null };
}

/** Choices that follow from what settings train on; a method that did not train there gives way to the first that did. */
function defaultsAt(where) {
  const able = settingsAt(view.experiment, where);
  const a = sameMethodAt(view.a, where) ?? able[0], b = sameMethodAt(view.b, where) ?? able[Math.min(1, able.length - 1)];
  return { where, a, b, shown: firstShown(view.experiment, where, [a, b]), task: null };
}

/** Changes the state, the link and everything that shows it. @param {Object<string, any>} changes */
export async function update(changes) {
  if (changes.experiment && changes.experiment !== view.experiment) Object.assign(view, defaults(changes.experiment));
  else if (changes.where && changes.where !== view.where) Object.assign(view, defaultsAt(changes.where));
  Object.assign(view, changes);
  if (!tabsShown().includes(view.tab)) view.tab = "overview";
  // Replacing the address of a page that has none fails in some viewers; the link is then not kept.
  try { history.replaceState(null, "", fragmentOf(view)); } catch { /* shown without an address */ }
  await redraw();
}

function isAvailable(one) {
  return (!one.experiment || one.experiment === view.experiment) && (one.available === undefined || one.available());
}

export function tabsShown() { return Object.keys(TABS).filter((tab) => parts.some((one) => one.tab === tab && isAvailable(one))); }

async function redraw() {
  drawTabs();
  for (const node of allOf("[data-experiment]")) node.hidden = node.dataset.experiment !== view.experiment;
  for (const tab of Object.keys(TABS)) byId(`panel-${tab}`).hidden = tab !== view.tab;
  for (const one of parts.filter((any) => any.tab === view.tab && isAvailable(any))) {
    if (!one.started) {
      one.started = true;
      if (one.start) await one.start();
    }
    if (one.draw) await one.draw();
  }
  byId(`panel-${view.tab}`).dataset.ready = "yes";
}

function drawTabs() {
  const shown = tabsShown(), focused = document.activeElement?.closest("#tabs");
  const tabs = shown.map((tab) => element("button", {
    type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": `panel-${tab}`, "aria-selected": String(tab === view.tab),
    tabindex: tab === view.tab ? 0 : -1,
    click: () => { update({ tab }); window.scrollTo(0, 0); },
    keydown: (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) update({ tab: shown[(shown.indexOf(tab) + move + shown.length) % shown.length] });
    },
  }, TABS[tab]));
  byId("tabs").replaceChildren(...tabs);
  if (focused) byId(`tab-${view.tab}`).focus();
  // On narrow screens not all tabs fit.
  const list = byId("tabs"), tab = byId(`tab-${view.tab}`);
  list.scrollLeft = tab.offsetLeft - list.offsetLeft - (list.clientWidth - tab.clientWidth) / 2;
}

/** Moves the experiments' sections to their tabs; a section without a script counts as a part too. */
function placeSections() {
  for (const group of allOf(".sections")) {
    const { experiment } = group.dataset;
    for (const section of [...group.children]) {
      const tab = section.dataset.tab ?? "compare";
      section.dataset.experiment = experiment;
      byId(`panel-${tab}`).querySelector(".slot").append(section);
      if (!parts.some((one) => one.tab === tab && one.experiment === experiment)) part({ tab, experiment });
    }
    group.remove();
  }
}

/** Starts with what the link says, as far as it makes sense. */
export async function startView() {
  placeSections();
  const link = readFragment(location.hash), settings = (text) => text.split(",").map(Number).filter((n) => data.settings[n]?.experiment === view.experiment);
  if (link.experiment in data.experiments) view.experiment = link.experiment;
  Object.assign(view, defaults(view.experiment));
  if (places(view.experiment).includes(link.where)) Object.assign(view, defaultsAt(link.where));
  const changes = { tab: link.tab in TABS ? link.tab : "overview" };
  for (const name of ["a", "b"]) if (link[name] !== undefined && settings(link[name]).length === 1) changes[name] = settings(link[name])[0];
  if (link.shown && settings(link.shown).length) changes.shown = settings(link.shown);
  if (link.task) changes.task = link.task;
  await update(changes);
}
