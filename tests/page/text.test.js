// Numbers, tables and links as text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compareCells, fillTemplate, fragmentOf, readFragment, shortNumber, tableText, withUnit } from "../../src/pisces/reports/page/text.js";

test("digits follow the size of a number", () => {
  assert.deepEqual([0, 92.34, -31.76, 0.528, 0.00304, 1.23e-5].map(shortNumber), ["0.0", "92.3", "-31.8", "0.53", "0.0030", "0.000012"]);
  assert.equal(withUnit(92.34, "unseen tasks solved (%)"), "92.3 %");
  assert.equal(withUnit(412, "return"), "412.0");
});

test("missing values come last, whichever way a column is sorted", () => {
  for (const descending of [false, true]) {
    const cells = [null, 3, "–", 1, undefined, 2].sort((x, y) => compareCells(x, y, descending));
    assert.deepEqual(cells.slice(0, 3), descending ? [3, 2, 1] : [1, 2, 3]);
  }
  assert.deepEqual(["seed 10", "seed 9"].sort((x, y) => compareCells(x, y, false)), ["seed 9", "seed 10"]);
});

test("tables are copied in three forms", () => {
  const header = ["method", "mean"], rows = [["a|b, \"c\"", "50 %"]];
  assert.equal(tableText(header, rows, "markdown"), "| method | mean |\n|---|---|\n| a\\|b, \"c\" | 50 % |\n");
  assert.equal(tableText(header, rows, "csv"), "method,mean\n\"a|b, \"\"c\"\"\",50 %\n");
  assert.match(tableText(header, rows, "latex"), /50 \\% \\\\/);
});

test("a link keeps the state of the page", () => {
  const state = { tab: "compare", where: "wide, colors", shown: [3, 4], task: null, odd: "a&b=c" };
  assert.deepEqual(readFragment(fragmentOf(state)), { tab: "compare", where: "wide, colors", shown: "3,4", odd: "a&b=c" });
  assert.deepEqual(readFragment("#tab=%E0%A4%A&x"), { tab: "" });
  assert.deepEqual(readFragment(""), {});
});

test("templates replace known names only", () => {
  assert.equal(fillTemplate("{method}: {value} {other}", { method: "A", value: "1" }), "A: 1 {other}");
});
