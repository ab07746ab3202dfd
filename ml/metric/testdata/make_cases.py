"""Prints the cases of cases.jsonl: metrics by scikit-learn, Keras and torchmetrics.

  python3 make_cases.py GOLDEN > cases.jsonl

Needs scikit-learn 1.9, TensorFlow 2.21 with tf_keras 2.21, and torchmetrics 1.9
with PyTorch 2. GOLDEN has metrics_1.json, which was made with scikit-learn 1.9.1
and Keras 2.13.1. A line has a job's loss and metrics as textproto, the batch, and
the metrics' names with their values. "keys" are the groups of the examples.

- binary metrics, top_k_accuracy of different scores and r_squared: sklearn.metrics.
- top_k_accuracy of equal scores: Keras's sparse_top_k_categorical_accuracy.
- calibration: Keras's Mean of the predictions over that of the labels.
- group_auc: roc_auc_score of each group, averaged by the sums of weights.
- ndcg: ndcg_score of the gains 2^label - 1 of each group, times the weights.
- recall_at_k: torchmetrics' RetrievalRecall, which is computed in float32.
"""

import json
import os
import pathlib
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import sklearn.metrics as sk
import tf_keras
import torch
import torchmetrics.retrieval

random = np.random.default_rng(13)


def draw(*shape, scale=1.0):
    return (scale * random.standard_normal(shape)).astype("float32")


def write(name, model, labels, outputs, weights, results, keys=(),
          tolerance=1e-12):
    print(json.dumps({
        "name": name,
        "model": model,
        "labels": [float("%.9g" % x) for x in labels],
        "outputs": [float("%.9g" % x) for x in np.ravel(outputs)],
        "weights": [float("%.9g" % x) for x in weights],
        "keys": [int(key) for key in keys],
        "tolerance": tolerance,
        "results": {key: float(value) for key, value in results.items()},
    }, separators=(",", ":")))


def metrics(*texts):
    return " ".join("metric { %s }" % text for text in texts)


def mean(values, weights):
    result = tf_keras.metrics.Mean(dtype="float64")
    result.update_state(values, sample_weight=weights)
    return result.result().numpy()


BINARY = metrics(
    "accuracy {}", "auc {}", "pr_auc {}", "log_loss {}", "r_squared {}",
    "precision {}", "recall {}", "f1 {}", "precision { threshold: 0.9 }",
    "recall { threshold: 0.2 }", "f1 { threshold: 0.3 }", "calibration {}",
    "mean_absolute_error {}", "root_mean_squared_error {}")


def binary(name, logits, labels, weights):
    p = 1 / (1 + np.exp(-logits.astype("float64")))

    def at(threshold, metric):
        return metric(labels, p > threshold, sample_weight=weights,
                      zero_division=0)

    results = {
        "accuracy": sk.accuracy_score(labels, p > 0.5, sample_weight=weights),
        "auc": sk.roc_auc_score(labels, logits, sample_weight=weights),
        "pr_auc": sk.average_precision_score(labels, logits, sample_weight=weights),
        "log_loss": sk.log_loss(labels, p, sample_weight=weights),
        "r_squared": sk.r2_score(labels, p, sample_weight=weights),
        "precision": at(0.5, sk.precision_score),
        "recall": at(0.5, sk.recall_score),
        "f1": at(0.5, sk.f1_score),
        "precision_at_0.9": at(0.9, sk.precision_score),
        "recall_at_0.2": at(0.2, sk.recall_score),
        "f1_at_0.3": at(0.3, sk.f1_score),
        "calibration": mean(p, weights) / mean(labels, weights),
        "mean_absolute_error": sk.mean_absolute_error(
            labels, p, sample_weight=weights),
        "root_mean_squared_error": sk.root_mean_squared_error(
            labels, p, sample_weight=weights),
    }
    write(name, "loss { binary_crossentropy {} } " + BINARY, labels, logits,
          weights, results)


def binaries():
    size = 150
    labels = (random.random(size) < 0.3).astype("float32")
    logits = draw(size, scale=2) + labels
    ones = np.ones(size)
    weights = random.integers(0, 9, size) / 8
    binary("binary", logits, labels, ones)
    binary("weighted", logits, labels, weights)
    ties = (np.round(logits * 2) / 2).astype("float32")
    binary("ties", ties, labels, ones)
    binary("weighted ties", ties, labels, weights)
    binary("nothing is predicted positive", logits - 20, labels, weights)


def classes():
    size, width = 60, 7
    labels = random.integers(0, width, size).astype("float32")
    weights = random.integers(0, 9, size) / 8
    outputs = draw(size, width)
    outputs[np.arange(size), labels.astype(int)] += 0.5
    ties = (np.round(outputs * 2) / 2).astype("float32")
    ks = (1, 2, 3, 6)
    model = ("loss { sparse_categorical_crossentropy {} } " +
             metrics(*("top_k_accuracy { k: %d }" % k for k in ks)))
    write("classes", model, labels, outputs, weights, {
        "top_%d_accuracy" % k: sk.top_k_accuracy_score(
            labels, outputs, k=k, sample_weight=weights, labels=range(width))
        for k in ks
    })
    results = {}
    for k in ks:
        found = tf_keras.metrics.sparse_top_k_categorical_accuracy(
            labels, ties, k=k)
        results["top_%d_accuracy" % k] = mean(found, weights)
    write("equal outputs of classes", model, labels, ties, weights, results)


def of_numbers():
    size = 80
    for name, offset in (("numbers", 0), ("numbers far from zero", 1000)):
        labels = (draw(size, scale=3) + offset).astype("float32")
        outputs = (labels + draw(size)).astype("float32")
        weights = random.integers(0, 9, size) / 8
        values = labels.astype("float64"), outputs.astype("float64")
        write(name,
              "loss { huber { delta: 1 } } " + metrics(
                  "r_squared {}", "mean_absolute_error {}",
                  "root_mean_squared_error {}", "calibration {}"),
              labels, outputs, weights, {
                  "r_squared": sk.r2_score(*values, sample_weight=weights),
                  "mean_absolute_error": sk.mean_absolute_error(
                      *values, sample_weight=weights),
                  "root_mean_squared_error": sk.root_mean_squared_error(
                      *values, sample_weight=weights),
                  "calibration": mean(values[1], weights) / mean(
                      values[0], weights),
              })


def of_groups(keys, function):
    """Values of function(places of a group's examples) but None."""
    values = [function(np.flatnonzero(keys == key)) for key in np.unique(keys)]
    return [value for value in values if value is not None]


def group_auc(labels, outputs, weights, keys):
    def auc(at):
        if len(np.unique(labels[at] > 0.5)) < 2:
            return None
        return (sk.roc_auc_score(labels[at] > 0.5, outputs[at],
                                 sample_weight=weights[at]), weights[at].sum())

    values = of_groups(keys, auc)
    return np.average([v for v, _ in values], weights=[w for _, w in values])


def ndcg(labels, outputs, weights, keys, k):
    def of_group(at):
        gains = weights[at] * (2.0**labels[at] - 1)
        if not gains.any():
            return None
        if len(at) == 1:
            return 1.0  # scikit-learn wants two
        return sk.ndcg_score([gains], [outputs[at]], k=k)

    return np.mean(of_groups(keys, of_group))


def recall(labels, outputs, keys, k):
    metric = torchmetrics.retrieval.RetrievalRecall(
        top_k=k, empty_target_action="skip")
    # It takes what is not above 0 for not retrieved.
    above_zero = 1 / (1 + np.exp(-outputs.astype("float64")))
    return metric(torch.tensor(above_zero),
                  torch.tensor(labels > 0.5), torch.tensor(keys)).item()


def rankings():
    size = 120
    keys = random.integers(0, 14, size)
    keys[0] = 99
    labels = np.where(random.random(size) < 0.6, 0,
                      random.integers(1, 5, size)).astype("float32")
    labels[0] = 2
    labels[keys == 3] = 0
    labels[keys == 4] = 1
    outputs = draw(size) + 0.2 * labels
    ones = np.ones(size)
    weights = random.integers(1, 9, size) / 8
    ks = (1, 3, 10)
    model = ("loss { mean_squared_error {} } " +
             metrics("group_auc { group: 'g' }",
                     *("ndcg { group: 'g' k: %d }" % k for k in ks)))
    with_recall = model + " " + metrics(
        *("recall_at_k { group: 'g' k: %d }" % k for k in ks))
    ties = (np.round(outputs * 2) / 2).astype("float32")

    def of(outputs, weights):
        return {"group_auc": group_auc(labels, outputs, weights, keys)} | {
            "ndcg_at_%d" % k: ndcg(labels, outputs, weights, keys, k) for k in ks
        }

    recalls = {"recall_at_%d" % k: recall(labels, outputs, keys, k) for k in ks}
    write("groups", with_recall, labels, outputs, ones,
          of(outputs, ones) | recalls, keys, tolerance=1e-7)
    write("groups with weights", model, labels, outputs, weights,
          of(outputs, weights), keys)
    write("groups with equal outputs", model, labels, ties, ones,
          of(ties, ones), keys)
    write("groups with equal outputs and weights", model, labels, ties, weights,
          of(ties, weights), keys)


def goldens(folder):
    golden = json.loads((folder / "metrics_1.json").read_text())
    data = golden["binary"]
    model = "loss { binary_crossentropy { from_logits: false } } " + metrics(
        "auc {}", "pr_auc {}", "group_auc { group: 'g' }",
        *("%s { threshold: %s }" % (metric, threshold)
          for metric in ("precision", "recall", "f1")
          for threshold in (0.5, 0.3)))
    for weighted in ("unweighted", "weighted"):
        results = data["results"][weighted]
        grouped = data["grouped_auc"]
        values = {
            "auc": results["roc_auc"],
            "pr_auc": results["average_precision"],
            "group_auc": grouped[
                "weighted_by_examples" if weighted == "unweighted" else
                "with_example_weights__weighted_by_sum_of_weights"],
        }
        for metric in ("precision", "recall", "f1"):
            values[metric] = results["threshold_0.5"][metric]
            values[metric + "_at_0.3"] = results["threshold_0.3"][metric]
        weights = (data["weight"] if weighted == "weighted" else
                   np.ones(len(data["label"])))
        write("golden, " + weighted, model, data["label"], data["score"], weights,
              values, data["group"])

    data = golden["multiclass"]
    ks = sorted(int(k) for k in data["top_k_accuracy"])
    write("golden, classes",
          "loss { sparse_categorical_crossentropy {} } " +
          metrics(*("top_k_accuracy { k: %d }" % k for k in ks)),
          data["label"], data["score"], np.ones(len(data["label"])),
          {"top_%d_accuracy" % k: data["top_k_accuracy"][str(k)] for k in ks})

    # Queries without a relevant document are left out; equal scores are
    # averaged.
    queries = golden["ranking"]["queries"]
    ks = (1, 3, 5, 10)
    results = {}
    for k in ks:
        values = [q["ndcg"]["exponential@%d" % k] for q in queries]
        results["ndcg_at_%d" % k] = np.mean(
            [v["sklearn_ties_averaged"] for v in values
             if v["stable_ties"] is not None])
    labels = np.concatenate([q["relevance"] for q in queries])
    write("golden, ranking",
          "loss { mean_squared_error {} } " +
          metrics(*("ndcg { group: 'q' k: %d }" % k for k in ks)),
          labels, np.concatenate([q["score"] for q in queries]),
          np.ones(len(labels)), results,
          np.concatenate([[i] * len(q["relevance"])
                          for i, q in enumerate(queries)]))


def main():
    binaries()
    classes()
    of_numbers()
    rankings()
    goldens(pathlib.Path(sys.argv[1]))


main()
