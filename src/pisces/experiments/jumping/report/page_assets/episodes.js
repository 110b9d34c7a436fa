// Episodes of the jumping task as Python computed them: which steps an agent jumps at decides everything.

/**
 * How an agent's jumps compare with the right one.
 * @param {number[]} jumps the steps at which the agent jumps
 * @param {number | null} right the only right step; null if the agent must not jump
 * @param {boolean} solved
 */
export function describeJumps(jumps, right, solved) {
  if (right === null) return solved ? "never jumps" : `jumps at step ${jumps[0]} but must not`;
  if (solved) return "jumps in time";
  if (!jumps.length) return "never jumps";
  const early = right - jumps[0], steps = Math.abs(early);
  return `jumps ${steps} step${steps > 1 ? "s" : ""} too ${early > 0 ? "early" : "late"}`;
}

/**
 * The run whose episode stands for all: of those that do what most do, the one in the middle.
 * @template {{value: number}} Run
 * @param {Run[]} runs
 * @param {number[]} solved 0 or 1 by run
 */
export function typicalRun(runs, solved) {
  const most = solved.reduce((sum, one) => sum + one, 0) * 2 >= runs.length ? 1 : 0;
  const alike = runs.filter((_, place) => solved[place] === most).sort((x, y) => x.value - y.value);
  return alike[(alike.length - 1) >> 1];
}

/**
 * The task on which two methods differ most, in favor of the second if possible; ties go to the middle of the list.
 * @param {{a: number, b: number, training: boolean}[]} tasks shares of the runs that solve each task
 * @returns {number} place in the list
 */
export function tellingTask(tasks) {
  const middle = (tasks.length - 1) / 2;
  const rank = (task, place) => [task.training ? 1 : 0, -(task.b - task.a), Math.abs(place - middle)];
  const order = tasks.map((task, place) => ({ place, rank: rank(task, place) }));
  order.sort((x, y) => x.rank[0] - y.rank[0] || x.rank[1] - y.rank[1] || x.rank[2] - y.rank[2]);
  return order[0].place;
}
