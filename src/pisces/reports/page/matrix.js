// A matrix as a heat map with axes, a color bar and the path of matched states; pointer and arrow keys choose a cell.

/* global Plot */
import { chart } from "./charts.js";
import { element } from "./dom.js";
import { clamp } from "./pairs.js";

const MARGINS = { left: 44, top: 8, right: 8, bottom: 40 };
const PATH_COLOR = "#00a06a", LARGEST = 460;
const STYLE = { fontSize: "13px", fontFamily: "system-ui, sans-serif", background: "none", overflow: "visible" };
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * @typedef {Object} Matrix
 * @property {string} id of the area that pointer and keys act on
 * @property {string} title what the picture shows
 * @property {string} unit label of the color bar
 * @property {number} rows
 * @property {number} columns
 * @property {Float64Array} values row by row
 * @property {number[]} domain the values at the ends of the color bar
 * @property {boolean} lightIsLow whether small values are light
 * @property {number[]} path the matched column of each row
 * @property {boolean} ordered whether the states follow each other, so that a line joins the matches
 * @property {string} x label of the columns
 * @property {string} y label of the rows
 */

/**
 * Draws a matrix.
 * @param {Matrix} matrix
 * @param {(row: number, column: number) => void} choose called with the cell under the pointer
 * @returns {{figure: HTMLElement, mark: (row: number, column: number) => void}} the picture, and a function that marks a cell
 */
export function matrixView(matrix, choose) {
  const cursor = element("span", { class: "cell-cursor", "aria-hidden": "true" }), place = { row: 0, column: 0 };
  const cover = element("div", { id: matrix.id, class: "cover", tabindex: 0, role: "application", "aria-label": `${matrix.title}; arrow keys choose a pair of states` }, cursor);
  const go = (row, column) => choose(clamp(row, 0, matrix.rows - 1), clamp(column, 0, matrix.columns - 1));
  const point = (event) => {
    const box = cover.getBoundingClientRect();
    go(Math.floor((event.clientY - box.top) / box.height * matrix.rows), Math.floor((event.clientX - box.left) / box.width * matrix.columns));
  };
  for (const kind of ["pointermove", "pointerdown"]) cover.addEventListener(kind, point);
  cover.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    go(place.row + move[0], place.column + move[1]);
  });
  const mark = (row, column) => {
    Object.assign(place, { row, column });
    Object.assign(cursor.style, { left: `${100 * column / matrix.columns}%`, top: `${100 * row / matrix.rows}%`, width: `${100 / matrix.columns}%`, height: `${100 / matrix.rows}%` });
  };
  return { figure: chart(matrix.title, (width) => drawMatrix(matrix, Math.min(width, LARGEST), cover)), mark };
}

function drawMatrix(matrix, width, cover) {
  const inner = width - MARGINS.left - MARGINS.right, tall = clamp(inner * matrix.rows / matrix.columns, 0.5 * inner, 1.2 * inner);
  const height = tall + MARGINS.top + MARGINS.bottom, color = { type: "linear", scheme: "magma", reverse: matrix.lightIsLow, domain: matrix.domain, clamp: true, label: matrix.unit };
  const axis = (label, size) => ({ label, labelAnchor: "center", labelArrow: "none", domain: [-0.5, size - 0.5], ticks: Math.min(6, size), tickFormat: (value) => (Number.isInteger(value) ? value : ""), grid: false });
  const matches = matrix.path.map((column, row) => [column, row]);
  const picture = Plot.plot({
    width, height, marginLeft: MARGINS.left, marginRight: MARGINS.right, marginTop: MARGINS.top, marginBottom: MARGINS.bottom, style: STYLE, color,
    x: axis(matrix.x, matrix.columns), y: { ...axis(matrix.y, matrix.rows), reverse: true },
    marks: [
      Plot.raster(matrix.values, { width: matrix.columns, height: matrix.rows, x1: -0.5, y1: -0.5, x2: matrix.columns - 0.5, y2: matrix.rows - 0.5, imageRendering: "pixelated" }),
      matrix.ordered ? Plot.line(matches, { stroke: PATH_COLOR, strokeWidth: 2.5 })
        : Plot.dot(matches, { fill: PATH_COLOR, stroke: "white", strokeWidth: 0.8, r: clamp(inner / matrix.columns / 5, 1.5, 7) }),
    ],
  });
  Object.assign(cover.style, { left: `${MARGINS.left}px`, top: `${MARGINS.top}px`, width: `${inner}px`, height: `${tall}px` });
  return element("div", { class: "matrix" }, picture, cover, Plot.legend({ color, width: Math.min(width, 260), marginLeft: 12, style: STYLE }));
}
