"""Draws losses and metrics of a run over its epochs.

  python3 plot_training.py CHECKPOINT_DIR OUT.png [METRIC]

Needs matplotlib. Takes the loss of training from CHECKPOINT_DIR/training.jsonl,
at the points that the job's `summary` names, and the loss and METRIC of
evaluations (by default the job's first metric) from
CHECKPOINT_DIR/evaluations.jsonl. Marks the best checkpoint, if there is a file
BEST (checkpoint.keep_best).
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

# What a line of evaluations.jsonl has beside metrics.
OTHERS = {"global_step", "loss", "examples", "seconds", "checkpoint", "final",
          "run_id", "chief_epoch"}


def lines_of(path):
    """Returns the lines that are complete; none without the file."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            pass  # being written, or cut off by a crash
    return lines


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    directory, out = map(pathlib.Path, sys.argv[1:3])
    training = lines_of(directory / "training.jsonl")
    if not training:
        sys.exit(f"{directory}/training.jsonl: has no line yet")
    run = training[-1]["run_id"]
    # Of two evaluations of a step the later one counts.
    evaluations = sorted({line["global_step"]: line
                          for line in lines_of(directory / "evaluations.jsonl")
                          if line.get("run_id") == run}.values(),
                         key=lambda line: line["global_step"])
    names = [name for line in evaluations for name in line
             if name not in OTHERS and "/" not in name] or [""]
    metric = sys.argv[3] if len(sys.argv) == 4 else names[0]

    last = training[-1]
    steps = last["global_step"] / last["epoch"] if last["epoch"] else 1
    unit = "epoch" if last["epoch"] else "step"
    begins = [0] + [line["global_step"] for line in training[:-1]]
    # The loss of a line is a mean since the line before.
    middles = [(begin + line["global_step"]) / 2 / steps
               for begin, line in zip(begins, training)]

    def series(name):
        points = [(line["global_step"] / steps, line[name])
                  for line in evaluations if line.get(name) is not None]
        return [x for x, _ in points], [y for _, y in points]

    figure, (losses, metrics) = plt.subplots(
        1, 2, figsize=(9, 3.2), constrained_layout=True)
    shown = [(x, line["loss"]) for x, line in zip(middles, training)
             if line["loss"] is not None]
    losses.plot([x for x, _ in shown], [y for _, y in shown], "o-",
                markersize=3, color="tab:blue", label="training")
    losses.plot(*series("loss"), color="tab:orange", label="evaluation")
    losses.set_ylabel("loss")
    metrics.plot(*series(metric), color="tab:orange")
    metrics.set_ylabel(f"{metric} of the evaluation")
    best = directory / "BEST"
    if best.exists():
        at = json.loads(best.read_text())["global_step"] / steps
        for axes in (losses, metrics):
            axes.axvline(at, color="tab:green", linewidth=1, linestyle="--",
                         label="best checkpoint")
    losses.legend(frameon=False)
    for axes in (losses, metrics):
        axes.set_xlabel(unit)
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(out, dpi=110)


main()
