// Pairs of states of two episodes: what their actions have in common. No function here knows the page.

/**
 * For how many steps two episodes take the same actions, from state i of one and state j of the other on.
 * @param {number[]} x actions of one episode
 * @param {number[]} y actions of the other
 * @param {number} i
 * @param {number} j
 * @returns {{steps: number, differ: boolean}} steps in agreement, and whether different actions follow them
 */
export function agreement(x, y, i, j) {
  let steps = 0;
  while (i + steps < x.length && j + steps < y.length && x[i + steps] === y[j + steps]) steps += 1;
  return { steps, differ: i + steps < x.length && j + steps < y.length };
}

/**
 * What the agreement means, in a sentence.
 * @param {{steps: number, differ: boolean}} found
 * @param {string} actionX the first different action of x
 * @param {string} actionY the first different action of y
 * @param {string} kind what the actions are: optimal, or taken
 */
export function agreementText(found, actionX, actionY, kind = "optimal") {
  if (!found.differ) return `From here on, the same actions are ${kind} in both.`;
  if (!found.steps) return `Different actions are ${kind}: ${actionX} in x, ${actionY} in y.`;
  const steps = found.steps === 1 ? "one step" : `${found.steps} steps`;
  return `The same actions are ${kind} for ${steps}, then different ones: ${actionX} in x, ${actionY} in y.`;
}

/** The place of the smallest value, the first of several; a place to skip counts as infinite. @param {ArrayLike<number>} row @param {number} skip */
export function nearestPlace(row, skip = -1) {
  let best = -1;
  for (let place = 0; place < row.length; place++) if (place !== skip && (best < 0 || row[place] < row[best])) best = place;
  return Math.max(best, 0);
}

/** The point nearest to a place on the screen. @param {{left: number, top: number}[]} points @param {number} left @param {number} top */
export function nearestPoint(points, left, top) {
  return nearestPlace(points.map((point) => (point.left - left) ** 2 + (point.top - top) ** 2));
}

/** A number between two others. @param {number} value @param {number} low @param {number} high */
export function clamp(value, low, high) { return Math.min(Math.max(value, low), high); }
