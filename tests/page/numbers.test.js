// Statistics and colors of the report page; `node --test tests/page`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { curveBand, inkOn, luminance, mean, meanInterval, mixture, pairedDifferences, quantile, rgb, winRate } from "../../src/pisces/reports/page/numbers.js";

test("means and quantiles interpolate as numpy does", () => {
  assert.equal(mean([1, 2, 6]), 3);
  assert.equal(quantile([4, 1, 3, 2], 0.25), 1.75);
  assert.equal(quantile([5], 0.9), 5);
});

test("an interval is that of Student's distribution", () => {
  const found = meanInterval([1, 2, 3], [12.706, 4.303]);
  assert.equal(found.mean, 2);
  assert.ok(Math.abs(found.high - (2 + 4.303 / Math.sqrt(3))) < 1e-9);
  assert.deepEqual(meanInterval([7], [12.7]), { count: 1, mean: 7, low: null, high: null });
});

test("differences pair equal seeds only", () => {
  const x = [{ seed: 0, value: 10 }, { seed: 1, value: 20 }], y = [{ seed: 1, value: 25 }, { seed: 2, value: 1 }];
  assert.deepEqual(pairedDifferences(x, y), [5]);
});

test("a win follows the better direction, and ties count one half", () => {
  assert.equal(winRate([1, 3], [2, 3], "higher"), (1 + 1 + 0 + 0.5) / 4);
  assert.equal(winRate([1, 3], [2, 3], "lower"), (0 + 0 + 1 + 0.5) / 4);
});

test("a band needs places that all curves share", () => {
  const band = curveBand([{ x: [1, 2, 3], y: [0, 10, 20] }, { x: [2, 3], y: [20, 40] }]);
  assert.deepEqual(band.map((point) => [point.x, point.middle]), [[2, 15], [3, 30]]);
  assert.deepEqual(curveBand([]), []);
});

test("corners of the mixture are pure", () => {
  const corners = { neither: "#000000", onlyA: "#ff0000", onlyB: "#0000ff", both: "#ffffff" };
  assert.deepEqual(mixture(0, 0, corners), [0, 0, 0]);
  assert.deepEqual(mixture(1, 0, corners), [255, 0, 0]);
  assert.deepEqual(mixture(0, 1, corners), [0, 0, 255]);
  assert.deepEqual(mixture(1, 1, corners), [255, 255, 255]);
  assert.deepEqual(mixture(0.5, 0, corners), [128, 0, 0]);
});

test("text on any color has a contrast of 4.5 or more", () => {
  for (const color of ["#000000", "#777777", "#ffffff", "#d9541e", "#2f7fd0", "#ead9b8"].map(rgb)) {
    const ink = luminance(rgb(inkOn(color))), [low, high] = [ink, luminance(color)].sort((a, b) => a - b);
    assert.ok((high + 0.05) / (low + 0.05) >= 4.5);
  }
});
