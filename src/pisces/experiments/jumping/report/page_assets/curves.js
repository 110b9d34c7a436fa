// Learning curves of the two methods: the median over runs and the band between the quartiles.

const CURVE = { width: 640, height: 260, left: 44, right: 10, top: 10, bottom: 40 };

function curveOf(side) {
  const runs = sideRuns(side).map((run) => run.curves[side.color] ?? run.curves.white).filter(Boolean);
  if (!runs.length) return [];
  const shared = runs[0].iterations.filter((one) => runs.every((curve) => curve.iterations.includes(one)));
  return shared.map((iteration) => {
    const values = runs.map((curve) => curve.values[curve.iterations.indexOf(iteration)]);
    return { iteration, low: quantile(values, 0.25), middle: quantile(values, 0.5), high: quantile(values, 0.75) };
  });
}

function drawCurves() {
  const curves = comparison.sides.map(curveOf), last = Math.max(1, ...curves.flat().map((point) => point.iteration));
  const x = (value) => CURVE.left + (value / last) * (CURVE.width - CURVE.left - CURVE.right);
  const y = (value) => CURVE.top + (1 - value / 100) * (CURVE.height - CURVE.top - CURVE.bottom);
  const picture = svg("svg", { viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, role: "img", "aria-label": "Unseen tasks solved during training, A and B" });
  for (const level of [0, 25, 50, 75, 100]) {
    picture.append(svg("line", { class: "axis", x1: CURVE.left, x2: CURVE.width - CURVE.right, y1: y(level), y2: y(level) }),
      svg("text", { x: CURVE.left - 6, y: y(level) + 4, "text-anchor": "end" }, `${level} %`));
  }
  for (const part of [0, 0.5, 1]) {
    picture.append(svg("text", { x: x(last * part), y: CURVE.height - 22, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, Math.round(last * part)));
  }
  picture.append(svg("text", { x: CURVE.width / 2, y: CURVE.height - 6, "text-anchor": "middle" }, "iteration"));
  curves.forEach((points, number) => { if (points.length) picture.append(...curveMarks(points, number, x, y)); });
  const legend = comparison.sides.map((side, number) => {
    const mark = element("span", { "aria-hidden": "true" }, "● ");
    mark.style.color = LINE_COLORS[number + 1];
    return element("span", {}, mark, `${"AB"[number]}: ${data.settings[side.setting].label}  `);
  });
  byId("curves").replaceChildren(picture, element("p", { class: "soft" }, ...legend));
}

function curveMarks(points, number, x, y) {
  const color = LINE_COLORS[number + 1], line = (part) => points.map((point) => `${x(point.iteration)},${y(point[part])}`);
  const marks = [
    svg("polygon", { points: [...line("high"), ...line("low").reverse()].join(" "), fill: color, "fill-opacity": 0.2 }),
    svg("polyline", { points: line("middle").join(" "), fill: "none", stroke: color, "stroke-width": 2 }),
  ];
  for (const point of points) {
    const text = `${"AB"[number]}, iteration ${point.iteration}: median ${percent(point.middle)} %, quartiles ${percent(point.low)} and ${percent(point.high)} %`;
    marks.push(svg("circle", { cx: x(point.iteration), cy: y(point.middle), r: 3, fill: color }, svg("title", {}, text)));
  }
  return marks;
}
