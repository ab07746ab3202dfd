"""Draws losses and accuracy of a run over its epochs.

  python3 plot_training.py CHECKPOINT_DIR LOG OUT.png

Needs matplotlib. The losses and the accuracy of evaluations are those of
CHECKPOINT_DIR/evaluations.jsonl, and the number of steps in an epoch is that of
training.jsonl. LOG is the worker's or chief's log: its lines "Epoch 2/5: loss …"
have the loss of training.
"""

import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    directory, log, out = map(pathlib.Path, sys.argv[1:])
    last = lines_of(directory / "training.jsonl")[-1]
    steps = last["global_step"] / last["epoch"]
    evaluations = [line for line in lines_of(directory / "evaluations.jsonl")
                   if line["run_id"] == last["run_id"]]
    epochs = [line["global_step"] / steps for line in evaluations]
    training = re.findall(r"Epochs? (?:\d+-)?(\d+)/\d+: loss ([\d.]+)",
                          log.read_text())

    figure, (losses, accuracies) = plt.subplots(
        1, 2, figsize=(9, 3.2), constrained_layout=True)
    # The loss of an epoch is a mean over it.
    losses.plot([int(epoch) - 0.5 for epoch, _ in training],
                [float(loss) for _, loss in training], "o-", markersize=3,
                color="tab:blue", label="training")
    losses.plot(epochs, [line["loss"] for line in evaluations],
                color="tab:orange", label="evaluation")
    losses.set_ylabel("loss")
    losses.legend(frameon=False)
    accuracies.plot(epochs, [100 * line["accuracy"] for line in evaluations],
                    color="tab:orange")
    accuracies.set_ylabel("accuracy of the evaluation, %")
    for axes in (losses, accuracies):
        axes.set_xlabel("epoch")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(out, dpi=110)


main()
