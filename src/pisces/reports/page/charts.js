// Charts, drawn by Observable Plot; each can be saved as SVG or PNG.

/* global Plot */
import { download, element } from "./dom.js";
import { intervalText, shortNumber } from "./text.js";

const FONT = { fontSize: "13px", fontFamily: "system-ui, sans-serif", background: "none", overflow: "visible" };

/**
 * A figure with a chart that fits its width, and buttons that save it.
 * @param {string} title what the chart shows, also for screen readers
 * @param {(width: number) => SVGElement | HTMLElement} draw
 */
export function chart(title, draw) {
  const holder = element("div", { class: "chart" }), name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  const picture = () => holder.querySelector("svg[viewBox]") ?? holder.querySelector("svg");
  const save = (kind, act) => element("button", { type: "button", class: "small", "aria-label": `${kind}: ${title}`, click: () => act(picture(), name) }, kind);
  const figure = element("figure", { class: "chart-frame" }, holder,
    element("figcaption", {}, title, " ", element("span", { class: "tools" }, save("SVG", saveSvg), save("PNG", savePng))));
  let width = 0;
  const redraw = () => {
    const now = Math.floor(holder.clientWidth);
    if (!now || now === width) return;
    width = now;
    const drawn = draw(width);
    for (const one of [drawn, ...drawn.querySelectorAll("svg")].filter((node) => node.tagName === "svg")) {
      one.setAttribute("role", "img");
      one.setAttribute("aria-label", title);
      // The library names its groups, which only elements with a role may do.
      for (const group of one.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
    }
    holder.replaceChildren(drawn);
  };
  new ResizeObserver(redraw).observe(holder);
  requestAnimationFrame(redraw);
  return figure;
}

/** A copy of a picture that does not depend on the page's styles. */
function standalone(picture) {
  const copy = picture.cloneNode(true), style = getComputedStyle(picture);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.color = style.color;
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

function svgAddress(picture) { return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(picture))}`; }

function saveSvg(picture, name) { download(`${name}.svg`, svgAddress(picture)); }

function savePng(picture, name) {
  const image = new Image(), box = picture.getBoundingClientRect(), scale = 2;
  image.onload = () => {
    const canvas = element("canvas", { width: Math.ceil(box.width * scale), height: Math.ceil(box.height * scale) });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.drawImage(image, 0, 0, box.width, box.height);
    download(`${name}.png`, canvas.toDataURL("image/png"));
  };
  image.src = svgAddress(picture);
}

const LETTER = 7.6;

function nameMargin(rows, width) {
  const longest = Math.max(...rows.map((row) => row.name.length));
  return Math.min(16 + LETTER * longest, 0.42 * width);
}

/** Options of an axis for values; a logarithmic one has ticks at powers of ten. */
function valueAxis(settings, values, width) {
  const axis = { label: settings.label, labelAnchor: "center", labelArrow: "none", grid: true, domain: settings.domain };
  const positive = values.filter((value) => value > 0), count = width < 500 ? 4 : 8;
  if (!settings.log || !positive.length) return { ...axis, ticks: count };
  const low = 0.8 * Math.min(...positive), high = 1.25 * Math.max(...positive), powers = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) powers.push(10 ** power);
  return { ...axis, type: "log", domain: [low, high], ticks: powers.length > 1 ? powers : count, tickFormat: "~g" };
}

function fitted(name, margin) {
  const letters = Math.floor((margin - 16) / LETTER);
  return name.length > letters ? `${name.slice(0, Math.max(letters - 1, 1))}…` : name;
}

/**
 * Means and intervals, one row per setting in the given order, with the paper's means beside them.
 * @param {{name: string, mean: number, low: number | null, high: number | null, count: number, paper?: number | null, color: string}[]} rows
 * @param {{label: string, log?: boolean, domain?: number[], zero?: boolean}} settings
 */
export function intervalChart(rows, settings) {
  return (width) => {
    const marginLeft = nameMargin(rows, width), published = rows.filter((row) => row.paper !== null && row.paper !== undefined);
    const whole = rows.filter((row) => row.low !== null && (!settings.log || row.low > 0));
    const title = (row) => `${row.name}\n${shortNumber(row.mean)}, ${row.count} seed${row.count > 1 ? "s" : ""}`
      + (row.low === null ? "" : `\n95 % CI ${intervalText(row)}`) + (row.paper === null || row.paper === undefined ? "" : `\npaper: ${shortNumber(row.paper)}`);
    return Plot.plot({
      width, height: 30 * rows.length + 58, marginLeft, marginRight: 74, marginBottom: 40, style: FONT,
      x: valueAxis(settings, rows.flatMap((row) => [row.mean, row.low, row.high, row.paper]), width),
      y: { label: null, domain: rows.map((row) => row.name), tickFormat: (name) => fitted(name, marginLeft), tickSize: 0 },
      marks: [
        settings.zero ? Plot.ruleX([0], { stroke: "currentColor", strokeDasharray: "3 3" }) : null,
        Plot.ruleY(whole, { y: "name", x1: "low", x2: "high", stroke: "color", strokeWidth: 4, strokeOpacity: 0.55 }),
        Plot.dot(published, { y: "name", x: "paper", symbol: "diamond2", r: 6, stroke: "currentColor", strokeWidth: 1.6 }),
        Plot.dot(rows, { y: "name", x: "mean", r: 6, fill: "color", title, tip: { anchor: "bottom" } }),
        Plot.text(rows, { y: "name", text: (row) => shortNumber(row.mean), frameAnchor: "right", textAnchor: "start", dx: 8, fontVariant: "tabular-nums", fontWeight: 600 }),
      ],
    });
  };
}

/**
 * Medians with bands from quartile to quartile.
 * @param {{name: string, color: string, band: {x: number, low: number, middle: number, high: number}[]}[]} series
 * @param {{label: string, clock: string, log?: boolean, domain?: number[]}} settings
 */
export function curveChart(series, settings) {
  const rows = series.flatMap((one) => one.band.map((point) => ({ ...point, name: one.name, color: one.color })));
  return (width) => Plot.plot({
    width, height: 340, marginLeft: 52, marginBottom: 40, style: FONT,
    x: { label: settings.clock, labelAnchor: "center", labelArrow: "none", ticks: width < 500 ? 4 : 8 },
    y: { label: settings.label, grid: true, domain: settings.domain, type: settings.log ? "log" : "linear" },
    marks: [
      Plot.areaY(rows, { x: "x", y1: "low", y2: "high", z: "name", fill: "color", fillOpacity: 0.16 }),
      Plot.lineY(rows, { x: "x", y: "middle", z: "name", stroke: "color", strokeWidth: 2.2, marker: "dot" }),
      Plot.tip(rows, Plot.pointer({ x: "x", y: "middle", title: (row) => `${row.name}\n${settings.clock} ${row.x}\nmedian ${shortNumber(row.middle)}, quartiles ${shortNumber(row.low)} and ${shortNumber(row.high)}` })),
    ],
  });
}

/**
 * Single runs as dots, one row per setting.
 * @param {{name: string, seed: number, value: number, color: string}[]} rows
 * @param {{label: string, names: string[], log?: boolean, domain?: number[]}} settings
 */
export function runChart(rows, settings) {
  return (width) => {
    const marginLeft = nameMargin(settings.names.map((name) => ({ name })), width);
    return Plot.plot({
      width, height: 34 * settings.names.length + 58, marginLeft, marginRight: 20, marginBottom: 40, style: FONT,
      x: valueAxis(settings, rows.map((row) => row.value), width),
      y: { label: null, domain: settings.names, tickFormat: (name) => fitted(name, marginLeft), tickSize: 0 },
      marks: [
        Plot.dot(rows, { y: "name", x: "value", r: 4.5, fill: "color", fillOpacity: 0.55, stroke: "color", title: (row) => `${row.name}\nseed ${row.seed}: ${shortNumber(row.value)}`, tip: { anchor: "bottom" } }),
        Plot.tickX(rows, Plot.groupY({ x: "mean" }, { y: "name", x: "value", stroke: "currentColor", strokeWidth: 2 })),
      ],
    });
  };
}

/**
 * A grid of cells shaded by a share, dark to light, with marks on some of them.
 * @param {{x: number, y: number, share: number, mark: string, text: string}[]} cells
 * @param {{x: string, y: string, every: number}} settings names of the axes, and which of their values are labeled
 */
export function cellChart(cells, settings) {
  const labels = (part) => [...new Set(cells.map((cell) => cell[part]))].sort((a, b) => a - b);
  const few = (value) => (value % settings.every ? "" : value);
  return (width) => Plot.plot({
    width, height: 0.5 * width + 10, marginLeft: 46, marginBottom: 38, marginTop: 6, marginRight: 4, style: FONT, padding: 0.06,
    x: { label: settings.x, labelAnchor: "center", labelArrow: "none", tickFormat: few, tickSize: 0, domain: labels("x") },
    y: { label: settings.y, labelAnchor: "center", labelArrow: "none", tickFormat: few, tickSize: 0, domain: labels("y").reverse() },
    color: { type: "linear", domain: [0, 1], range: ["#34343c", "#ead9b8"], interpolate: "rgb" },
    marks: [
      Plot.cell(cells, { x: "x", y: "y", fill: "share", rx: 2, title: "text", tip: true }),
      Plot.text(cells.filter((cell) => cell.mark), { x: "x", y: "y", text: "mark", fill: (cell) => (cell.share > 0.4 ? "#000" : "#fff"), fontWeight: 700, fontSize: Math.min(11, width / 45) }),
    ],
  });
}
