// The results: a table that sorts and filters, by setting or by run, and the paper's tables.

const SHOWN_ROWS = 200;

const VIEWS = {
  settings: {
    columns: [["method"], ["trained on"], ["changes"], ["mean", "number"], ["seeds", "number"], ["std", "number"],
      ["95 % CI", "number"], ["interquartile mean", "number"], ["paper", "number"]],
    rows: () => data.settings.map((setting, number) => {
      const summary = setting.summary;
      return {
        settings: [number],
        cells: [setting.method, setting.where, setting.changes, summary.mean, summary.count, summary.std,
          summary.low === null ? "–" : `${shortNumber(summary.low)} to ${shortNumber(summary.high)}`, summary.iqm,
          setting.paper],
      };
    }),
  },
  runs: {
    columns: [["method"], ["trained on"], ["changes"], ["seed", "number"], ["training", "number"], ["validation", "number"],
      ["unseen", "number"], ["held out", "number"], ["folder"]],
    rows: () => data.runs.map((run) => {
      const setting = data.settings[run.setting];
      return {
        settings: [run.setting],
        cells: [setting.method, setting.where, setting.changes, run.seed, run.train_percent, run.validation_percent,
          run.value, run.heldout_percent, run.folder],
      };
    }),
  },
};

const tableState = { view: "settings", experiment: null, sort: 0, descending: false, words: [], all: false };

function compareCells(x, y) {
  if (typeof x === "number" && typeof y === "number") return x - y;
  if (typeof x === "number" || typeof y === "number") return typeof x === "number" ? -1 : 1;
  return String(x ?? "").localeCompare(String(y ?? ""), undefined, { numeric: true });
}

// Percentages and returns need one digit, the small errors of linear control more.
function shortNumber(value) { return value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 4 : 1); }

const WHOLE = new Set(["seed", "seeds"]);

function cellText(value, column) {
  if (typeof value === "number") return WHOLE.has(column) ? String(value) : shortNumber(value);
  return value === null || value === undefined || value === "" ? "–" : value;
}

// Experiments have different measures, so a table shows one of them; with colors, red tasks count.
function experimentRows(view) {
  return view.rows().filter((row) => data.settings[row.settings[0]].experiment === tableState.experiment);
}

function measuresOf(rows) {
  return [...new Set(rows.map((row) => data.settings[row.settings[0]].measure))].join(" or ");
}

function chosenRows(view) {
  const kept = experimentRows(view).filter((row) => {
    const text = row.cells.map((value, place) => cellText(value, view.columns[place][0])).join(" ").toLowerCase();
    return tableState.words.every((word) => text.includes(word));
  });
  const sign = tableState.descending ? -1 : 1;
  return kept.sort((a, b) => sign * compareCells(a.cells[tableState.sort], b.cells[tableState.sort]));
}

function tableHead(view) {
  return element("tr", {}, ...view.columns.map(([name, kind], place) => {
    const sorted = place === tableState.sort ? (tableState.descending ? "descending" : "ascending") : "none";
    const sort = () => {
      tableState.descending = place === tableState.sort ? !tableState.descending : kind === "number";
      tableState.sort = place;
      drawTable();
      byId("results-table").querySelectorAll("th button")[place].focus();
    };
    return element("th", { class: kind, "aria-sort": sorted, scope: "col" }, element("button", { type: "button", click: sort }, name));
  }));
}

function tableRow(view, row) {
  return element("tr", {}, ...row.cells.map((value, place) => {
    const [column, kind] = view.columns[place], text = cellText(value, column);
    if (place > 0) return element("td", { class: kind }, text);
    const label = `${text}: command and config`;
    return element("td", {}, element("button", { type: "button", class: "link", title: label, click: () => showSource(row.settings) }, text));
  }));
}

function drawTable() {
  const view = VIEWS[tableState.view], rows = chosenRows(view);
  const shown = tableState.all ? rows : rows.slice(0, SHOWN_ROWS);
  byId("results-table").replaceChildren(
    element("thead", {}, tableHead(view)), element("tbody", {}, ...shown.map((row) => tableRow(view, row))));
  const every = experimentRows(view);
  const measured = every.length ? `; measured by ${measuresOf(every)}` : "";
  byId("results-count").textContent = `${rows.length} of ${every.length} ${tableState.view}${measured}`;
  byId("results-more").hidden = shown.length === rows.length;
  byId("results-more").textContent = `Show all ${rows.length}`;
}

function startTable() {
  const filter = element("input", { type: "search", id: "results-filter", placeholder: "e.g. randconv wide",
    input: (event) => { tableState.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean); drawTable(); } });
  const view = element("select", { id: "results-view",
    change: (event) => { Object.assign(tableState, { view: event.target.value, sort: 0, descending: false }); drawTable(); } });
  options(view, [["settings", "settings (over seeds)"], ["runs", "single runs"]], "settings");
  const experiments = [...new Set(data.settings.map((setting) => setting.experiment))];
  tableState.experiment = experiments[0];
  const experiment = element("select", { id: "results-experiment",
    change: (event) => { Object.assign(tableState, { experiment: event.target.value, all: false }); drawTable(); } });
  options(experiment, experiments.map((name) => [name, name]), tableState.experiment);
  byId("results-controls").append(...(experiments.length > 1 ? [labeled("Experiment", experiment)] : []),
    labeled("Filter by any words", filter), labeled("One row per", view),
    element("span", { id: "results-count", role: "status", class: "soft" }));
  byId("results-more").addEventListener("click", () => { tableState.all = true; drawTable(); });
  drawTable();
}

function paperCell(cell) {
  if (typeof cell === "string") return element("td", {}, cell);
  if (!cell.settings.length) return element("td", { class: "number" }, cell.text);
  const open = { type: "button", class: "link", title: "command and config", click: () => showSource(cell.settings) };
  return element("td", { class: "number" }, element("button", open, cell.text));
}

function startPaperTables() {
  byId("paper-none").hidden = data.tables.length > 0;
  for (const table of data.tables) {
    const head = table.header.map((name, place) =>
      element("th", { scope: "col", class: typeof table.rows[0][place] === "string" ? "" : "number" }, name));
    const rows = table.rows.map((row) => element("tr", {}, ...row.map(paperCell)));
    byId("paper-tables").append(element("h3", {}, table.title), element("p", { class: "soft" }, table.note),
      element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))));
  }
}

parts.push(startTable, startPaperTables);
