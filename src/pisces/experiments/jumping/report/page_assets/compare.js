// Two methods side by side: solved-task grids, the agents' episodes on one task, learning curves.

const comparison = {
  sides: [], task: { position: 35, height: 15 }, step: 0, timer: null,
};

function sideColor(side) { return data.settings[side.setting].config.colors ? side.color : "white"; }

function sideTask(side) { return { ...comparison.task, color: sideColor(side) }; }

function sideRuns(side) {
  const runs = runsOf(side.setting);
  return side.run === "median" ? runs : runs.filter((run) => String(run.seed) === side.run);
}

// The share of a side's runs that solve a task.
function share(side, task) {
  const runs = sideRuns(side), index = taskIndex(task);
  return runs.reduce((sum, run) => sum + runBits(run, "solved")(index), 0) / runs.length;
}

function isTraining(side, task) {
  return sideRuns(side).every((run) => runBits(run, "train")(taskIndex(task)));
}

// The run whose episode is shown: the first one that does what the median does.
function shownRun(side) {
  const runs = sideRuns(side), task = sideTask(side), index = taskIndex(task), solved = share(side, task) >= 0.5 ? 1 : 0;
  return runs.find((run) => runBits(run, "solved")(index) === solved) || runs[0];
}

function drawGrid(side) {
  const cells = [];
  for (let height = FIRST_HEIGHT + HEIGHTS - 1; height >= FIRST_HEIGHT; height--) {
    for (let position = FIRST_POSITION; position < FIRST_POSITION + POSITIONS; position++) {
      cells.push(gridCell(side, { position, height, color: sideColor(side) }));
    }
  }
  side.grid.replaceChildren(...cells);
}

function gridCell(side, task) {
  const part = share(side, task), runs = sideRuns(side).length, training = isTraining(side, task);
  const chosen = task.position === comparison.task.position && task.height === comparison.task.height;
  const shade = side.shade === "median" ? (part >= 0.5 ? 1 : 0) : part;
  const outcome = runs === 1 ? (part ? "solved" : "not solved") : `solved by ${Math.round(part * runs)} of ${runs} runs`;
  const cell = element("button", {
    type: "button", tabindex: chosen ? 0 : -1, class: chosen ? "chosen" : "", "aria-pressed": String(chosen),
    "aria-label": `${taskName(task)}: ${outcome}${training ? ", training task" : ""}`, title: `${taskName(task)}: ${outcome}`,
    "data-position": task.position, "data-height": task.height,
  }, training ? "T" : "");
  cell.style.setProperty("--share", `${100 * shade}%`);
  return cell;
}

function chooseTask(position, height) {
  comparison.task = {
    position: Math.min(Math.max(position, FIRST_POSITION), FIRST_POSITION + POSITIONS - 1),
    height: Math.min(Math.max(height, FIRST_HEIGHT), FIRST_HEIGHT + HEIGHTS - 1),
  };
  comparison.step = 0;
  comparison.sides.forEach(drawSide);
  drawStep();
}

function gridKey(side, event) {
  const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!move) return;
  event.preventDefault();
  chooseTask(comparison.task.position + move[0], comparison.task.height + move[1]);
  side.grid.querySelector("button.chosen").focus();
}

function drawSide(side) {
  drawGrid(side);
  const task = sideTask(side), run = shownRun(side);
  side.episode = { ...episode(run, task), run, task };
  const setting = data.settings[side.setting], runs = sideRuns(side);
  const values = runs.map((one) => one.values[side.color] ?? one.value);
  side.summary.textContent = `${percent(values.reduce((a, b) => a + b, 0) / values.length)} % of unseen tasks solved`
    + (runs.length > 1 ? `, mean of ${runs.length} seeds` : `, seed ${runs[0].seed}`)
    + (setting.config.colors ? ` (${side.color})` : "");
}

function drawStep() {
  const longest = Math.max(...comparison.sides.map((side) => side.episode.states.length));
  const slider = byId("step");
  slider.max = longest - 1;
  slider.value = comparison.step;
  slider.setAttribute("aria-valuetext", `step ${comparison.step} of ${longest - 1}`);
  byId("episode-task").textContent = `Task: ${taskName({ ...comparison.task, color: "white" })}; step ${comparison.step}`;
  for (const side of comparison.sides) {
    const { states, outcome, run, task } = side.episode;
    const state = states[Math.min(comparison.step, states.length - 1)];
    drawFrame(side.screen, task, state);
    const jumps = states.findIndex((one) => one.action === "jump");
    const when = jumps < 0 ? "never jumps" : `jumps at step ${jumps}`;
    const best = task.color === "green" ? "must not jump" : `must jump at step ${jumpStep(task)}`;
    side.caption.textContent = `Seed ${run.seed}: ${state.action}. The agent ${when} (it ${best}) and ${outcome}.`;
  }
}

function step(by) {
  comparison.step = Math.min(Math.max(comparison.step + by, 0), Number(byId("step").max));
  drawStep();
}

function togglePlay(play = !comparison.timer) {
  clearInterval(comparison.timer);
  comparison.timer = null;
  if (play) {
    if (comparison.step >= Number(byId("step").max)) comparison.step = 0;
    comparison.timer = setInterval(() => {
      step(1);
      if (comparison.step >= Number(byId("step").max)) togglePlay(false);
    }, 80);
  }
  byId("play").textContent = play ? "Pause" : "Play";
}

function makeSide(letter, setting) {
  const side = { setting, run: "median", color: "red", shade: "share" };
  side.grid = element("div", { class: "tasks", role: "group", "aria-label": `Tasks, ${letter}: arrow keys move`,
    keydown: (event) => gridKey(side, event),
    click: (event) => { const cell = event.target.closest("button"); if (cell) { chooseTask(Number(cell.dataset.position), Number(cell.dataset.height)); side.grid.querySelector("button.chosen").focus(); } } });
  side.screen = element("canvas", { class: "screen", role: "img", "aria-label": `The agent's screen, ${letter}` });
  side.summary = element("p", { class: "summary" });
  side.caption = element("p", { class: "soft caption" });
  const method = element("select", { id: `method-${letter}`, change: (event) => { side.setting = Number(event.target.value); side.run = "median"; sideOptions(side); drawComparison(); } });
  options(method, data.settings.map((one, number) => [number, one.label]).filter(([number]) => data.settings[number].experiment === "jumping"), setting);
  side.runs = element("select", { id: `run-${letter}`, change: (event) => { side.run = event.target.value; drawComparison(); } });
  side.colors = element("select", { id: `color-${letter}`, change: (event) => { side.color = event.target.value; drawComparison(); } });
  options(side.colors, [["red", "red obstacles"], ["green", "green obstacles"]], "red");
  const shade = element("select", { id: `shade-${letter}`, change: (event) => { side.shade = event.target.value; drawComparison(); } });
  options(shade, [["median", "median over runs"], ["share", "share of runs"]], "share");
  side.colorLabel = labeled("Color", side.colors);
  const source = element("button", { type: "button", class: "link", click: () => showSource([side.setting]) }, "command and config");
  side.node = element("section", { "aria-label": `Method ${letter}` },
    element("div", { class: "controls" }, labeled(`Method ${letter}`, method), labeled("Run", side.runs), labeled("Shade", shade), side.colorLabel),
    side.summary, element("div", { class: "grid-frame" }, side.grid), source);
  side.player = element("figure", {}, element("strong", {}, letter), side.screen, element("figcaption", {}, side.caption));
  sideOptions(side);
  return side;
}

function sideOptions(side) {
  const runs = runsOf(side.setting);
  options(side.runs, [["median", runs.length > 1 ? `all ${runs.length} runs` : "the only run"], ...runs.map((run) => [run.seed, `seed ${run.seed}`])], side.run);
  side.colorLabel.hidden = !data.settings[side.setting].config.colors;
}

function drawComparison() {
  comparison.sides.forEach(drawSide);
  drawStep();
  drawVerdict();
  drawCurves();
}

function drawVerdict() {
  const [a, b] = comparison.sides, only = [0, 0];
  for (let position = FIRST_POSITION; position < FIRST_POSITION + POSITIONS; position++) {
    for (let height = FIRST_HEIGHT; height < FIRST_HEIGHT + HEIGHTS; height++) {
      const solved = [a, b].map((side) => share(side, { position, height, color: sideColor(side) }) >= 0.5);
      if (solved[0] !== solved[1]) only[solved[0] ? 0 : 1] += 1;
    }
  }
  let wins = 0;
  const [x, y] = [a, b].map((side) => sideRuns(side).map((run) => run.values[side.color] ?? run.value));
  for (const one of x) for (const other of y) wins += other > one ? 1 : other === one ? 0.5 : 0;
  const chance = (wins / (x.length * y.length)).toFixed(2);
  byId("verdict").textContent = `Of ${TASKS} tasks, A alone solves ${only[0]} and B alone ${only[1]}. `
    + `A run of B beats a run of A with probability ${chance} (${x.length} x ${y.length} pairs).`;
}

// A task on which the methods differ: the first one that B solves and A does not, or that only one of them solves.
function differingTask() {
  const [a, b] = comparison.sides, found = [null, null];
  for (let position = FIRST_POSITION; position < FIRST_POSITION + POSITIONS; position++) {
    for (let height = FIRST_HEIGHT; height < FIRST_HEIGHT + HEIGHTS; height++) {
      const [x, y] = [a, b].map((side) => share(side, { position, height, color: sideColor(side) }) >= 0.5);
      if (x !== y) found[y ? 0 : 1] ??= { position, height };
    }
  }
  return found[0] || found[1] || comparison.task;
}

function startComparison() {
  const able = data.settings.map((_, number) => number).filter((number) => data.settings[number].experiment === "jumping");
  if (!able.length) { byId("compare").hidden = true; return; }
  comparison.sides = [makeSide("A", able[0]), makeSide("B", able[Math.min(1, able.length - 1)])];
  comparison.task = differingTask();
  byId("sides").append(...comparison.sides.map((side) => side.node));
  byId("episodes").append(...comparison.sides.map((side) => side.player));
  byId("step").addEventListener("input", (event) => { togglePlay(false); comparison.step = Number(event.target.value); drawStep(); });
  byId("play").addEventListener("click", () => togglePlay());
  byId("back").addEventListener("click", () => { togglePlay(false); step(-1); });
  byId("forward").addEventListener("click", () => { togglePlay(false); step(1); });
  drawComparison();
}

parts.push(startComparison);
