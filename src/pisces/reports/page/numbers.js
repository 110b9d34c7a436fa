// Statistics and colors; no function here knows the page.

/** @param {number[]} values */
export function mean(values) { return values.reduce((sum, value) => sum + value, 0) / values.length; }

/** @param {number[]} values @param {number} share in [0, 1] */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b), place = share * (sorted.length - 1);
  const low = Math.floor(place), high = Math.ceil(place);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

/**
 * Mean and confidence interval (t) of some values; the ends are null for a single one.
 * @param {number[]} values
 * @param {number[]} t quantiles of Student's distribution for 1, 2, ... degrees of freedom
 */
export function meanInterval(values, t) {
  const middle = mean(values), n = values.length;
  if (n < 2) return { count: n, mean: middle, low: null, high: null };
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (n - 1));
  const reach = t[Math.min(n - 1, t.length) - 1] * deviation / Math.sqrt(n);
  return { count: n, mean: middle, low: middle - reach, high: middle + reach };
}

/**
 * Differences y - x on the seeds that both have.
 * @param {{seed: number, value: number}[]} x
 * @param {{seed: number, value: number}[]} y
 */
export function pairedDifferences(x, y) {
  const known = new Map(x.map((run) => [run.seed, run.value]));
  return y.filter((run) => known.has(run.seed)).map((run) => run.value - known.get(run.seed));
}

/** How often a value of y beats one of x; ties count one half. @param {number[]} x @param {number[]} y @param {string} better */
export function winRate(x, y, better) {
  let wins = 0;
  for (const one of x) for (const other of y) wins += other === one ? 0.5 : (other > one) === (better === "higher") ? 1 : 0;
  return wins / (x.length * y.length);
}

/** Median and quartiles of curves at the places that all share. @param {{x: number[], y: number[]}[]} curves */
export function curveBand(curves) {
  if (!curves.length) return [];
  const others = curves.map((curve) => new Map(curve.x.map((place, index) => [place, curve.y[index]])));
  return curves[0].x.filter((place) => others.every((one) => one.has(place))).map((place) => {
    const values = others.map((one) => one.get(place));
    return { x: place, low: quantile(values, 0.25), middle: quantile(values, 0.5), high: quantile(values, 0.75) };
  });
}

/** @param {string} color as #rrggbb @returns {number[]} */
export function rgb(color) { return [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16)); }

/**
 * The color of a task that a share of A's runs and a share of B's runs solve: a mixture of four corners.
 * @param {number} a @param {number} b
 * @param {{neither: string, onlyA: string, onlyB: string, both: string}} corners
 */
export function mixture(a, b, corners) {
  /** @type {[number, string][]} */
  const parts = [[(1 - a) * (1 - b), corners.neither], [a * (1 - b), corners.onlyA], [(1 - a) * b, corners.onlyB], [a * b, corners.both]];
  return [0, 1, 2].map((channel) => Math.round(parts.reduce((sum, [weight, color]) => sum + weight * rgb(color)[channel], 0)));
}

/** Relative luminance of a color, as WCAG defines it. @param {number[]} color */
export function luminance(color) {
  const [r, g, b] = color.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever is easier to read on a color. @param {number[]} color */
export function inkOn(color) { return luminance(color) > 0.179 ? "#000000" : "#ffffff"; }
