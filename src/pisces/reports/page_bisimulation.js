// Bisimulation between the states of two optimal episodes: a maximum over actions, so it needs the whole MDPs.

// The MDP of a white or red task. Every step moves right, so a state's successors follow it in the list; the last is the end.
function jumpingMDP(task) {
  const start = { x: 0, height: 0, speed: 0 }, name = ({ x, height, speed }) => `${x},${height},${speed}`;
  const states = [start], numbers = new Map([[name(start), 0]]), moves = [];
  for (const state of states) {
    for (const jump of [false, true]) {
      const next = advance(state, jump), hit = strikes(task, next), over = next.x + AGENT_WIDTH > SCREEN;
      if (!hit && !over && !numbers.has(name(next))) {
        numbers.set(name(next), states.length);
        states.push(next);
      }
      moves.push({ next: hit || over ? -1 : numbers.get(name(next)), reward: hit ? -1 : over ? 101 : 1 });
    }
  }
  const end = states.length, next = moves.map((move) => (move.next < 0 ? end : move.next)).concat(end, end);
  return { size: end + 1, next, rewards: moves.map((move) => move.reward).concat(0, 0) };
}

// d[i, j] = max over actions of |difference of rewards| + discount * d[next of i, next of j], from the end backwards.
function mdpBisimulation(x, y, discount) {
  const rows = x.size, columns = y.size, distance = new Float64Array(rows * columns);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      if (i === rows - 1 && j === columns - 1) continue;
      let most = 0;
      for (let action = 0; action < 2; action++) {
        const a = 2 * i + action, b = 2 * j + action;
        most = Math.max(most, Math.abs(x.rewards[a] - y.rewards[b]) + discount * distance[x.next[a] * columns + y.next[b]]);
      }
      distance[i * columns + j] = most;
    }
  }
  return distance;
}

function optimalStates(mdp, task) {
  const states = [0];
  while (states.length < DECISIONS) states.push(mdp.next[2 * states.at(-1) + Number(states.length - 1 === jumpStep(task))]);
  return states;
}

function episodeBisimulation(x, y, discount) {
  const first = jumpingMDP(x), second = jumpingMDP(y), distance = mdpBisimulation(first, second, discount);
  const columns = optimalStates(second, y);
  return optimalStates(first, x).map((i) => Float64Array.from(columns, (j) => distance[i * second.size + j]));
}
