#include "coordinator/page/job_page_text.h"

namespace parasol {

const char kJobPageScript[] = R"js("use strict";
const kEvery = 2000;
const $ = (id) => document.getElementById(id);

/* An element with text and children; nothing is ever parsed as HTML. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null && child !== ""));
  return element;
}
function makeSvg(name, attributes) {
  const element =
      document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  return element;
}

const isNumber = (value) => typeof value === "number" && isFinite(value);
function number(value, digits) {
  if (!isNumber(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return value !== 0 && Math.abs(value) < 1e-3
      ? value.toExponential(2)
      : value.toLocaleString("en-US", {maximumSignificantDigits: digits || 4});
}
function time(seconds) {
  if (!isNumber(seconds) || seconds < 0) return "–";
  if (seconds < 1e-3) return (seconds * 1e6).toFixed(0) + " µs";
  if (seconds < 1) return number(seconds * 1e3, 3) + " ms";
  if (seconds < 60) return number(seconds, 3) + " s";
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return minutes + " min " + whole % 60 + " s";
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours + " h " + minutes % 60 + " min";
  return Math.floor(hours / 24) + " d " + hours % 24 + " h";
}
const rate = (bytes) => isNumber(bytes) ? number(bytes / 1e6, 3) + " MB/s" : "–";
const percent = (share) => Math.round(100 * share) + " %";

/* Parts of a step. What a process stood still lies in its waits. */
const kParts = [["input", "input"], ["pull", "pull"], ["compute", "compute"],
                ["push", "push"], ["wait", "wait for steps"],
                ["stood", "standing still"]];
function partsOf(pace) {
  const step = pace.step_seconds;
  const waits = step.pull + step.push;
  const stood = Math.min(step.stood_still, waits);
  const awake = waits > 0 ? 1 - stood / waits : 1;
  return {input: step.input, pull: step.pull * awake, compute: step.compute,
          push: step.push * awake, wait: step.wait, stood: stood};
}
function partsBar(pace) {
  const parts = partsOf(pace);
  const all = Object.values(parts).reduce((sum, part) => sum + part, 0);
  if (!(all > 0)) return "";
  const bar = make("div", {class: "parts", role: "img"});
  const words = [];
  for (const [key, name] of kParts) {
    const share = parts[key] / all;
    if (share < 0.005) continue;
    const piece = make("i", {class: "p-" + key});
    piece.style.width = 100 * share + "%";
    bar.append(piece);
    words.push(name + " " + time(parts[key]));
  }
  bar.title = words.join(", ");
  bar.setAttribute("aria-label", bar.title);
  return bar;
}

const kBadKinds = ["failure", "missing", "stopped", "unreachable", "stuck"];
const kGoodKinds = ["compute", "kind_unspecified"];
function showBound(job) {
  const findings = job.findings;
  const first = findings[0];
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  $("bound-first").textContent =
      first ? sentence(first.text)
            : job.phase === "COMPLETE" ? "The job is complete." : "–";
  $("bound").className = "card " +
      (!first || kGoodKinds.includes(first.kind) ? ""
       : kBadKinds.includes(first.kind) ? "bad" : "warn");
  $("bound-others").replaceChildren(
      ...findings.slice(1).map((each) => make("li", null, sentence(each.text))));
}

function showNumbers(state) {
  const job = state.job;
  const done = job.end_step > 0 ? job.global_step / job.end_step : 0;
  const shown = Math.floor(100 * Math.min(1, done));
  $("progress").setAttribute("aria-valuenow", shown);
  $("progress").firstElementChild.style.width = shown + "%";
  const left = job.phase === "TRAINING" && state.steps_per_second > 0 &&
          job.end_step > 0
      ? (job.end_step - job.global_step) / state.steps_per_second
      : null;
  const skew = job.placement_skew;
  const rows = [
    ["Step", number(job.global_step) +
                 (job.end_step > 0 ? " / " + number(job.end_step) : "")],
    ["Done", job.end_step > 0 ? shown + " %" : "–"],
    ["Time left", time(left)],
    ["Trained for", time(job.trained_seconds)],
    ["Steps/s", number(state.steps_per_second, 3)],
    ["Examples/s", number(job.examples_per_second, 4)],
    ["Loss", number(job.loss, 5)],
    ["Learning rate", number(job.learning_rate, 3)],
    ["Epoch", job.steps_per_epoch > 0
                  ? number(job.global_step / job.steps_per_epoch, 3) : "–"],
    ["Evaluated to step", number(job.evaluated_step) +
         (job.due_evaluations > 0 ? ", " + job.due_evaluations + " due" : "")],
    ["Largest shard / mean", skew > 0 ? number(skew, 3) : "–"]];
  if (job.staleness != null) rows.push(["Staleness", job.staleness + " steps"]);
  const items = rows.map(([name, value]) => make(
      "div", null, make("dt", null, name), make("dd", null, value)));
  items.push(make("div", {class: "wide"}, make("dt", null, "Checkpoint"),
                  make("dd", null, job.checkpoint || "none yet")));
  const trouble = job.failure || job.trouble;
  if (trouble) {
    items.push(make("div", {class: "wide"}, make("dt", null, "Last error"),
                    make("dd", null, trouble)));
  }
  for (const line of job.warnings || []) {
    items.push(make("div", {class: "wide"}, make("dt", null, "Warning"),
                    make("dd", null, line)));
  }
  $("numbers").replaceChildren(...items);
}

/* Curves: one for each name, made once, so that focus and marker stay. */
const curves = new Map();
class Curve {
  constructor(name) {
    this.name = name;
    this.points = [];
    this.at = null;
    this.output = make("output");
    this.svg = makeSvg("svg", {viewBox: "0 0 300 110", tabindex: "0",
                               preserveAspectRatio: "none", role: "img"});
    this.range = make("div", {class: "quiet range"});
    this.element = make("div", {class: "curve"},
        make("div", {class: "row"}, make("h2", null, name), this.output),
        this.svg, this.range);
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      this.mark((event.clientX - box.left) / box.width);
    });
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => {
      const move = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!move || this.points.length === 0) return;
      event.preventDefault();
      const last = this.points.length - 1;
      const now = this.at == null ? last : this.at;
      this.at = Math.max(0, Math.min(last, now + move));
      this.draw();
    });
  }
  leave() {
    this.at = null;
    this.draw();
  }
  mark(share) {
    if (this.points.length === 0) return;
    const first = this.points[0][0];
    const step = first + share *
        (this.points[this.points.length - 1][0] - first);
    let best = 0;
    this.points.forEach((point, i) => {
      const away = Math.abs(point[0] - step);
      if (away < Math.abs(this.points[best][0] - step)) best = i;
    });
    this.at = best;
    this.draw();
  }
  draw() {
    this.svg.replaceChildren();
    const points = this.points;
    if (points.length === 0) return;
    let low = this.least == null ? Infinity : this.least, high = -Infinity;
    for (const point of points) {
      low = Math.min(low, point[1]);
      high = Math.max(high, point[1]);
    }
    const from = points[0][0], to = points[points.length - 1][0];
    const x = (step) => to > from ? 2 + 296 * (step - from) / (to - from) : 150;
    const y = (value) =>
        high > low ? 104 - 98 * (value - low) / (high - low) : 55;
    for (const line of [6, 55, 104]) {
      this.svg.append(makeSvg("line", {class: "grid", x1: 0, x2: 300,
                                       y1: line, y2: line}));
    }
    this.svg.append(makeSvg("polyline", {points: points.map(
        (point) => x(point[0]).toFixed(1) + "," + y(point[1]).toFixed(1)
    ).join(" ")}));
    const shown = points[this.at == null ? points.length - 1
                         : Math.min(this.at, points.length - 1)];
    if (this.at != null || points.length === 1) {
      const width = this.svg.getBoundingClientRect().width || 300;
      this.svg.append(makeSvg("ellipse", {cx: x(shown[0]), cy: y(shown[1]),
          rx: 4 * 300 / width, ry: 4}));
    }
    this.output.textContent =
        number(shown[1], 4) + " at step " + number(shown[0]);
    this.range.replaceChildren(
        make("span", null, "step " + number(from)),
        make("span", null, number(low, 4) + " to " + number(high, 4)),
        make("span", null, "step " + number(to)));
    this.svg.setAttribute("aria-label", this.name + ": " + points.length +
        " points, " + number(low, 4) + " to " + number(high, 4) + "; " +
        this.output.textContent);
  }
}
function showCurve(name, points, least) {
  const known = points.filter((point) => isNumber(point[1]));
  if (known.length === 0) return;
  let curve = curves.get(name);
  if (!curve) {
    curve = new Curve(name);
    curves.set(name, curve);
    $("curves").append(curve.element);
  }
  curve.points = known;
  curve.least = least;
  curve.draw();
}
function showCurves(state) {
  const steps = state.curve.step;
  showCurve("Loss", steps.map((step, i) => [step, state.curve.loss[i]]));
  showCurve("Examples/s",
            steps.map((step, i) => [step, state.curve.examples_per_second[i]]),
            0);
  showCurve("Loss of epochs",
            (state.epochs || []).map((end) => [end.step, end.loss]));
  showCurve("Evaluation: loss",
            state.evaluations.map((each) => [each.step, each.loss]));
  const names = new Set();
  for (const each of state.evaluations.slice(-1)) {
    Object.keys(each.metrics).forEach((name) => names.add(name));
  }
  for (const name of [...names].slice(0, 12)) {
    showCurve("Evaluation: " + name,
              state.evaluations.map((each) => [each.step, each.metrics[name]]));
  }
}

/* Tables. A column: its name, what it is sorted by, what a cell shows. */
const waitsText = (task) => task.waits
    .filter((wait) => wait.seconds > 1 || wait.trouble || wait.share > 0.3)
    .slice(0, 3)
    .map((wait) => wait.ps +
        (wait.seconds > 1 ? " since " + time(wait.seconds)
                          : " " + percent(wait.share) + " of its time") +
        (wait.trouble ? " (" + wait.trouble + ")" : "")).join(", ");
const bytesOf = (task) => task.load
    ? task.load.push_bytes_per_second + task.load.pull_bytes_per_second : 0;
function doing(task) {
  const load = task.load || {};
  const words = [];
  if (task.acted_by) words.push(task.acted_by + " acts for it: start it again");
  if (load.stuck_seconds > 1) words.push("stuck for " + time(load.stuck_seconds));
  if (load.loading_seconds) words.push("loads for " + time(load.loading_seconds));
  if (load.writing_seconds) words.push("writes for " + time(load.writing_seconds));
  if (load.hot_row && load.hot_row.share > 0.2) {
    words.push("row " + load.hot_row.row + " of " + load.hot_row.table + ": " +
               percent(load.hot_row.share) + " of pushed rows");
  }
  if (load.late_worker && load.late_share > 0.1) {
    words.push("awaits " + load.late_worker + " " + percent(load.late_share) +
               " of the time");
  }
  return words.join("; ");
}
const place = (task) => {
  const [role, index] = task.task.split("/");
  return [role, Number(index) || 0];
};
const kTask = {name: "Task", key: place, cell: (task) => task.task, main: true};
const kState = {name: "State", key: (task) => task.state, state: true,
                cell: (task) => task.state};
const kHeard = {name: "Silent for", key: (task) => task.seconds_since_heard || 0,
    label: true, cell: (task) => task.seconds_since_heard == null ? ""
        : task.seconds_since_heard.toFixed(1) + " s"};
const kWhere = {name: "Where", key: (task) => task.address, wide: true,
    what: true, cell: (task) => [task.address, task.process,
                     task.version && "version " + task.version]
                        .filter(Boolean).join(" · ")};
const kTables = {
  workers: [kTask, kState,
    {name: "Steps/s", key: (task) => task.pace ? task.pace.steps_per_second : 0,
     label: true,
     cell: (task) => task.pace ? number(task.pace.steps_per_second, 3) : ""},
    {name: "Time of a step", wide: true,
     key: (task) => task.pace && task.pace.steps_per_second > 0
         ? 1 / task.pace.steps_per_second : 0,
     cell: (task) => task.pace ? partsBar(task.pace) : ""},
    {name: "Waits for", key: (task) => Math.max(0, ...task.waits.map(
         (wait) => Math.max(wait.seconds || 0, wait.share))),
     label: true, wide: true, what: true,
     cell: (task) => task.slow || waitsText(task)},
    kHeard, kWhere],
  ps: [kTask, kState,
    {name: "Busy threads", key: (task) => task.load ? task.load.busy_threads : 0,
     label: true,
     cell: (task) => task.load ? number(task.load.busy_threads, 2) : ""},
    {name: "Operations/s",
     key: (task) => task.load ? task.load.operations_per_second : 0,
     label: true,
     cell: (task) => task.load ? number(Math.round(
         task.load.operations_per_second)) : ""},
    {name: "Pushed", label: true,
     key: (task) => task.load ? task.load.push_bytes_per_second : 0,
     cell: (task) => task.load ? rate(task.load.push_bytes_per_second) : ""},
    {name: "Pulled", label: true,
     key: (task) => task.load ? task.load.pull_bytes_per_second : 0,
     cell: (task) => task.load ? rate(task.load.pull_bytes_per_second) : ""},
    {name: "Bytes / mean", key: bytesOf, label: true,
     cell: (task, mean) => mean > 0 ? number(bytesOf(task) / mean, 2) : ""},
    {name: "Does", key: doing, wide: true, what: true, cell: doing},
    kHeard, kWhere],
  others: [kTask, kState, kHeard, kWhere]};
const sorting = {};
function isLess(a, b) {
  if (Array.isArray(a)) {
    return a[0] !== b[0] ? (a[0] < b[0] ? -1 : 1) : a[1] - b[1];
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
function makeHead(id) {
  const row = make("tr");
  kTables[id].forEach((column, i) => {
    const button = make("button", {type: "button"}, column.name);
    button.addEventListener("click", () => {
      const old = sorting[id];
      sorting[id] = {column: i, down: old && old.column === i && !old.down};
      showTasks();
    });
    row.append(make("th", {scope: "col"}, button));
  });
  $(id).replaceChildren(make("thead", null, row), make("tbody"));
}
function severity(task) {
  if (["missing", "not there"].includes(task.state)) return "bad";
  if (task.seconds_since_heard > 2.5) return "bad";
  if (task.load && task.load.stuck_seconds > 2) return "bad";
  if (task.state === "slow" || task.doubled || task.acted_by) return "warn";
  if (task.waits.some((wait) => wait.trouble)) return "warn";
  return "";
}
let tasks = [];
function showTable(id, of) {
  const columns = kTables[id];
  const by = sorting[id] || {column: 0, down: false};
  of.sort((a, b) => isLess(columns[by.column].key(a),
                           columns[by.column].key(b)) * (by.down ? -1 : 1));
  $(id).querySelectorAll("th").forEach((head, i) => {
    head.setAttribute("aria-sort", i !== by.column ? "none"
        : by.down ? "descending" : "ascending");
  });
  const mean = of.reduce((sum, task) => sum + bytesOf(task), 0) / of.length;
  $(id).tBodies[0].replaceChildren(...of.map((task) => {
    const row = make("tr", {class: severity(task)});
    for (const column of columns) {
      const cell = make("td", {class: (column.wide ? "wide " : "") +
          (column.what ? "what " : "") + (column.state ? "state" : "")},
          column.cell(task, mean));
      if (column.label) cell.dataset.name = column.name;
      row.append(cell);
    }
    return row;
  }));
}
function showTasks() {
  const text = $("filter").value.trim().toLowerCase();
  const shown = tasks.filter((task) =>
      (!text || (task.task + " " + task.state + " " + task.address + " " +
                 task.process).toLowerCase().includes(text)) &&
      (!$("amiss").checked || severity(task)));
  const amiss = tasks.filter((task) => severity(task)).length;
  $("count").textContent = shown.length + " of " + tasks.length + " tasks, " +
      (amiss > 0 ? amiss + " amiss" : "none amiss");
  const role = (task) => task.task.split("/")[0];
  showTable("workers", shown.filter((task) => role(task) === "worker"));
  showTable("ps", shown.filter((task) => role(task) === "ps"));
  showTable("others", shown.filter(
      (task) => !["worker", "ps"].includes(role(task))));
}

function showNotes(state) {
  $("notes").replaceChildren(...state.notes.slice().reverse().map((note) => {
    const at = new Date(note.unix_seconds * 1000);
    return make("li", note.is_warning ? {class: "warn"} : null,
        make("time", {datetime: at.toISOString()}, at.toLocaleTimeString()),
        note.text);
  }));
}

function show(state) {
  const job = state.job;
  $("fresh").className = "quiet";
  if (!job) {
    $("fresh").textContent = "the chief has not begun yet";
    return;
  }
  const late = state.age_seconds > 3;
  $("fresh").textContent = late
      ? "the chief hangs: this is how it was " + time(state.age_seconds) + " ago"
      : "now";
  if (late) $("fresh").className = "quiet late";
  $("phase").textContent = job.phase.toLowerCase().replace(/_/g, " ");
  $("phase").className = "pill " + job.phase.toLowerCase();
  $("run").textContent = "run " + job.run_id;
  document.title = "Parasol: " + (job.end_step > 0
      ? Math.floor(100 * job.global_step / job.end_step) + " %" : job.phase);
  tasks = job.tasks;
  showBound(job);
  showNumbers(state);
  showCurves(state);
  showTasks();
  showNotes(state);
}

async function refresh() {
  try {
    const answer = await fetch("status.json",
        {cache: "no-store", signal: AbortSignal.timeout(5000)});
    show(await answer.json());
  } catch (error) {
    $("fresh").textContent = "no answer: the chief has ended, or is cut off";
    $("fresh").className = "quiet late";
  }
}
async function run() {
  while (true) {
    if (!document.hidden) await refresh();
    await new Promise((done) => setTimeout(done, kEvery));
  }
}

Object.keys(kTables).forEach(makeHead);
$("legend").replaceChildren(...kParts.map(([key, name]) =>
    make("span", null, make("i", {class: "p-" + key}), name)));
$("filter").addEventListener("input", showTasks);
$("amiss").addEventListener("change", showTasks);
document.addEventListener("visibilitychange",
                          () => { if (!document.hidden) refresh(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement.tagName !== "INPUT") {
    event.preventDefault();
    $("filter").focus();
  }
});
run();
)js";

}  // namespace parasol
