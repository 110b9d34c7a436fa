// Tables that sort, filter and copy: all settings or single runs, and the paper's tables.

import { byId, copyText, element, labeled, options } from "./dom.js";
import { compareCells, intervalText, isMissing, shortNumber, tableText } from "./text.js";
import { data } from "./store.js";
import { part, view } from "./view.js";
import { showSource } from "./source.js";

const SHOWN_ROWS = 200;
const WHOLE = new Set(["seed", "seeds"]);

const VIEWS = {
  settings: {
    columns: [["method"], ["trained on"], ["changes"], ["mean", "number"], ["seeds", "number"], ["std", "number"],
      ["95 % CI", "number"], ["interquartile mean", "number"], ["paper", "number"]],
    rows: () => data.settings.map((setting, number) => {
      const summary = setting.summary;
      return {
        settings: [number],
        cells: [setting.method, setting.where, setting.changes, summary.mean, summary.count, summary.std,
          intervalText(summary), summary.iqm, setting.paper],
      };
    }),
  },
  runs: {
    get columns() { return [["method"], ["trained on"], ["changes"], ["seed", "number"], ["value", "number"], ...numberNames().map((name) => [name, "number"]), ["folder"]]; },
    rows: () => data.runs.map((run) => {
      const setting = data.settings[run.setting], numbers = numberNames().map((name) => run.numbers?.[name] ?? null);
      return { settings: [run.setting], cells: [setting.method, setting.where, setting.changes, run.seed, run.value, ...numbers, run.folder] };
    }),
  },
};

// Further numbers that the experiment's runs have.
function numberNames() {
  return [...new Set(data.runs.filter((run) => data.settings[run.setting].experiment === view.experiment).flatMap((run) => Object.keys(run.numbers ?? {})))];
}

const tableState = { view: "settings", measure: "", sort: 3, descending: true, words: [], all: false };

function cellText(value, column) {
  if (typeof value === "number") return WHOLE.has(column) ? String(value) : shortNumber(value);
  return isMissing(value) ? "–" : value;
}

function measures() {
  return [...new Set(data.settings.filter((setting) => setting.experiment === view.experiment).map((setting) => setting.measure))];
}

// One measure per table: the numbers of a column can be compared.
function measuredRows(shown) {
  return shown.rows().filter((row) => {
    const setting = data.settings[row.settings[0]];
    return setting.experiment === view.experiment && setting.measure === tableState.measure;
  });
}

function better() { return data.settings.find((setting) => setting.measure === tableState.measure)?.better ?? "higher"; }

function chosenRows(shown) {
  const kept = measuredRows(shown).filter((row) => {
    const text = row.cells.map((value, place) => cellText(value, shown.columns[place][0])).join(" ").toLowerCase();
    return tableState.words.every((word) => text.includes(word));
  });
  return kept.sort((a, b) => compareCells(a.cells[tableState.sort], b.cells[tableState.sort], tableState.descending));
}

// The first click on a column of scores puts the better ones on top.
function firstDescending(name, kind) { return kind === "number" && (["mean", "value", "interquartile mean", "paper"].includes(name) ? better() === "higher" : true); }

function tableHead(shown) {
  return element("tr", {}, ...shown.columns.map(([name, kind], place) => {
    const sorted = place === tableState.sort ? (tableState.descending ? "descending" : "ascending") : "none";
    const sort = () => {
      tableState.descending = place === tableState.sort ? !tableState.descending : firstDescending(name, kind);
      tableState.sort = place;
      drawTable();
      byId("results-table").querySelectorAll("th button")[place].focus();
    };
    return element("th", { class: kind, "aria-sort": sorted, scope: "col" }, element("button", { type: "button", click: sort }, name));
  }));
}

function tableRow(shown, row) {
  return element("tr", {}, ...row.cells.map((value, place) => {
    const [column, kind] = shown.columns[place], text = cellText(value, column);
    if (place > 0) return element("td", { class: kind }, text);
    const label = `${text}: command and config`;
    return element("td", {}, element("button", { type: "button", class: "link", "aria-label": label, click: () => showSource(row.settings) }, text));
  }));
}

function resultTexts() {
  const shown = VIEWS[tableState.view];
  return { header: shown.columns.map(([name]) => name), rows: chosenRows(shown).map((row) => row.cells.map((value, place) => cellText(value, shown.columns[place][0]))) };
}

function drawTable() {
  const shown = VIEWS[tableState.view], rows = chosenRows(shown), visible = tableState.all ? rows : rows.slice(0, SHOWN_ROWS);
  byId("results-table").replaceChildren(
    element("thead", {}, tableHead(shown)), element("tbody", {}, ...visible.map((row) => tableRow(shown, row))));
  byId("results-count").textContent = `${rows.length} of ${measuredRows(shown).length} ${tableState.view}; ${tableState.measure}, ${better()} is better`;
  byId("results-more").hidden = visible.length === rows.length;
  byId("results-more").textContent = `Show all ${rows.length}`;
}

/** Buttons that copy a table. @param {string} title @param {() => {header: string[], rows: string[][]}} read */
export function copyButtons(title, read) {
  /** @type {[string, "markdown" | "csv" | "latex"][]} */
  const forms = [["Markdown", "markdown"], ["CSV", "csv"], ["LaTeX", "latex"]];
  return element("span", { class: "tools", role: "group", "aria-label": `Copy the table: ${title}` }, "Copy as ", ...forms.map(([name, form]) => {
    const button = element("button", { type: "button", class: "small", click: () => { const { header, rows } = read(); copyText(tableText(header, rows, form), button); } }, name);
    return button;
  }));
}

function startTable() {
  const filter = element("input", { type: "search", id: "results-filter", placeholder: "e.g. randconv wide",
    input: (event) => { tableState.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean); drawTable(); } });
  const rows = element("select", { id: "results-view",
    change: (event) => { Object.assign(tableState, { view: event.target.value, sort: event.target.value === "runs" ? 4 : 3, descending: better() === "higher" }); drawTable(); } });
  options(rows, [["settings", "config (over seeds)"], ["runs", "single run"]], "settings");
  const measure = element("select", { id: "results-measure",
    change: (event) => { Object.assign(tableState, { measure: event.target.value, all: false, descending: better() === "higher" }); drawTable(); } });
  byId("results-controls").append(labeled("Measure", measure), labeled("Filter by any words", filter), labeled("One row per", rows),
    copyButtons("runs", resultTexts), element("span", { id: "results-count", role: "status", class: "soft" }));
  byId("results-more").addEventListener("click", () => { tableState.all = true; drawTable(); });
}

function drawResults() {
  const names = measures();
  if (!names.includes(tableState.measure)) {
    Object.assign(tableState, { measure: names[0], all: false });
    tableState.descending = better() === "higher";
  }
  options(byId("results-measure"), names.map((name) => [name, name]), tableState.measure);
  byId("results-measure").closest("label").hidden = names.length < 2;
  drawTable();
  drawPaperTables();
}

function paperCell(cell, place) {
  if (typeof cell === "string") return element(place ? "td" : "th", place ? {} : { scope: "row" }, cell);
  // Ours stands above the paper's, so that the paper's widest table fits.
  const [ours, theirs] = cell.text.split(" / "), below = theirs === undefined ? null : element("small", {}, `paper: ${theirs}`);
  if (!cell.settings.length) return element("td", { class: "number" }, ours, below);
  const open = { type: "button", class: "link", "aria-label": `${ours}: command and config`, click: () => showSource(cell.settings) };
  return element("td", { class: "number" }, element("button", open, ours), below);
}

function drawPaperTables() {
  const own = data.tables.filter((table) => table.experiment === view.experiment);
  byId("paper").hidden = own.length === 0;
  byId("paper-tables").replaceChildren(...own.map((table) => {
    const head = table.header.map((name, place) =>
      element("th", { scope: "col", class: typeof table.rows[0][place] === "string" ? "" : "number" }, name));
    const rows = table.rows.map((row) => element("tr", {}, ...row.map(paperCell)));
    const read = () => ({ header: table.header, rows: table.rows.map((row) => row.map((cell) => (typeof cell === "string" ? cell : cell.text))) });
    return element("div", {}, element("h3", {}, table.title), element("p", { class: "soft" }, table.note),
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.title },
        element("table", { class: "paper" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))),
      copyButtons(table.title, read));
  }));
}

part({ tab: "runs", start: startTable, draw: drawResults });
