// What the first screen says of the jumping task's episodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { describeJumps, tellingTask, typicalRun } from "../../src/pisces/experiments/jumping/report/page_assets/episodes.js";

test("jumps are described against the right step", () => {
  assert.equal(describeJumps([28], 28, true), "jumps in time");
  assert.equal(describeJumps([27], 28, false), "jumps 1 step too early");
  assert.equal(describeJumps([30], 28, false), "jumps 2 steps too late");
  assert.equal(describeJumps([], 28, false), "never jumps");
  assert.equal(describeJumps([5], null, false), "jumps at step 5 but must not");
  assert.equal(describeJumps([], null, true), "never jumps");
});

test("the typical run does what most do, and is in the middle of them", () => {
  const runs = [10, 90, 50, 70, 30].map((value) => ({ value }));
  assert.equal(typicalRun(runs, [0, 1, 1, 1, 0]).value, 70);
  assert.equal(typicalRun(runs, [0, 1, 0, 0, 0]).value, 30);
  assert.equal(typicalRun(runs.slice(0, 1), [1]).value, 10);
});

test("the telling task favors the second method and is no training task", () => {
  const tasks = [{ a: 0, b: 1, training: true }, { a: 1, b: 0, training: false }, { a: 0.1, b: 0.9, training: false }, { a: 0.5, b: 0.5, training: false }];
  assert.equal(tellingTask(tasks), 2);
  const equal = [0, 1, 2, 3, 4].map(() => ({ a: 1, b: 1, training: false }));
  assert.equal(tellingTask(equal), 2);
});
