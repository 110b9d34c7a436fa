// Pairs of states: agreement of actions, nearest places.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agreement, agreementText, clamp, nearestPlace, nearestPoint } from "../../src/pisces/reports/page/pairs.js";

test("actions agree up to the first difference or the end of an episode", () => {
  const x = [0, 0, 1, 0], y = [0, 0, 0, 1, 0];
  assert.deepEqual(agreement(x, y, 0, 0), { steps: 2, differ: true });
  assert.deepEqual(agreement(x, y, 0, 1), { steps: 4, differ: false });
  assert.deepEqual(agreement(x, y, 2, 0), { steps: 0, differ: true });
});

test("a sentence tells which actions differ", () => {
  assert.equal(agreementText({ steps: 0, differ: true }, "jump", "right"), "Different actions are optimal: jump in x, right in y.");
  assert.match(agreementText({ steps: 1, differ: true }, "jump", "right"), /for one step, then different ones: jump in x, right in y/);
  assert.match(agreementText({ steps: 3, differ: true }, "a", "b"), /for 3 steps/);
  assert.match(agreementText({ steps: 3, differ: true }, "a", "b", "taken"), /are taken for/);
  assert.match(agreementText({ steps: 9, differ: false }, "", ""), /From here on/);
});

test("the nearest place is the first of the smallest, not the skipped one", () => {
  assert.equal(nearestPlace([3, 1, 1]), 1);
  assert.equal(nearestPlace([0, 5, 2], 0), 2);
  assert.equal(nearestPlace([7], 0), 0);
  assert.equal(nearestPoint([{ left: 0, top: 0 }, { left: 9, top: 9 }], 6, 5), 1);
  assert.equal(clamp(9, 0, 4), 4);
});
