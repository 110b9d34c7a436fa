// Numbers and tables as text: for cells, for sorting, for the clipboard.

/** Percentages and returns need one digit, the small errors of linear control more. @param {number} value */
export function shortNumber(value) {
  const size = Math.abs(value);
  if (size > 0 && size < 0.001) return value.toPrecision(2);
  return value.toFixed(size === 0 || size >= 1 ? 1 : size < 0.1 ? 4 : 2);
}

/** A value with the unit that the label of its measure names in parentheses. @param {number} value @param {string} label */
export function withUnit(value, label) {
  const unit = /\(([^)]*)\)/.exec(label);
  return shortNumber(value) + (unit ? ` ${unit[1]}` : "");
}

/** @param {{low: number | null, high: number | null}} interval */
export function intervalText(interval) {
  return interval.low === null ? "–" : `${shortNumber(interval.low)} to ${shortNumber(interval.high)}`;
}

/** Replaces {name} by values. @param {string} template @param {Object<string, string>} values */
export function fillTemplate(template, values) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** @param {any} value */
export function isMissing(value) { return value === null || value === undefined || value === "" || value === "–"; }

/** Orders two cells; missing values come last, whichever way the column is sorted. @param {any} x @param {any} y @param {boolean} descending */
export function compareCells(x, y, descending) {
  if (isMissing(x) || isMissing(y)) return Number(isMissing(x)) - Number(isMissing(y));
  const sign = descending ? -1 : 1;
  if (typeof x === "number" && typeof y === "number") return sign * (x - y);
  return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
}

/**
 * A table as text.
 * @param {string[]} header
 * @param {string[][]} rows
 * @param {"markdown" | "csv" | "latex"} form
 */
export function tableText(header, rows, form) {
  return { markdown: markdownTable, csv: csvTable, latex: latexTable }[form](header, rows);
}

function markdownTable(header, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), `|${"---|".repeat(header.length)}`, ...rows.map(line)].join("\n") + "\n";
}

function csvTable(header, rows) {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function latexTable(header, rows) {
  const line = (cells) => cells.map((text) => text.replace(/[&%$#_{}]/g, "\\$&").replaceAll("–", "--")).join(" & ") + " \\\\";
  return ["\\begin{tabular}{l" + "r".repeat(header.length - 1) + "}", "\\hline", line(header), "\\hline", ...rows.map(line), "\\hline", "\\end{tabular}"].join("\n") + "\n";
}

/** The state of the page as a URL fragment. @param {Object<string, any>} state */
export function fragmentOf(state) {
  const entries = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return "#" + entries.map(([name, value]) => `${name}=${encodeURIComponent(Array.isArray(value) ? value.join(",") : value)}`).join("&");
}

/** @param {string} fragment @returns {Object<string, string>} */
export function readFragment(fragment) {
  const pairs = fragment.replace(/^#/, "").split("&").filter((part) => part.includes("="));
  return Object.fromEntries(pairs.map((part) => {
    const place = part.indexOf("=");
    try {
      return [part.slice(0, place), decodeURIComponent(part.slice(place + 1))];
    } catch {
      return [part.slice(0, place), ""];
    }
  }));
}
