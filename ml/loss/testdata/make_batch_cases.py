"""Prints the cases of batch_cases.jsonl: the losses that compare the examples of
a batch, by PyTorch and TensorFlow Recommenders.

  python3 make_batch_cases.py > batch_cases.jsonl

Needs PyTorch 2, and TensorFlow Recommenders 0.7.7 with TensorFlow 2.21 and
tf_keras 2.21. A line has a job's loss as textproto, its inputs, which float32 has
exactly, and in float64 the losses of the examples times their weights and the
gradient of their mean by the outputs. "keys" are groups or candidates,
"probabilities" those of candidates.

- pairwise_logistic: torch.nn.SoftMarginLoss of each example's differences from
  those of its group that have a lower label, with 1 for their label.
- in_batch_softmax: tfrs.tasks.Retrieval, whose loss is the sum over the batch.
  Its loss of one example is that with weights that are 0 for all others.
  torch.nn.CrossEntropyLoss must give the same, or the script fails.
"""

import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs
import tf_keras
import torch

tf_keras.backend.set_floatx("float64")
random = np.random.default_rng(12)


def draw(*shape, scale=1.0):
    return (scale * random.standard_normal(shape)).astype("float32")


def numbers(array):
    """Nine digits are a float32."""
    array = np.asarray(array)
    if array.ndim > 1:
        return [numbers(part) for part in array]
    return [float("%.9g" % x) for x in array]


def write(text, outputs, labels, weights, keys, probabilities, losses, gradient):
    print(json.dumps({
        "loss": text,
        "outputs": numbers(outputs),
        "labels": numbers(labels),
        "weights": numbers(weights),
        "keys": [int(key) for key in keys],
        "probabilities": numbers(probabilities),
        "losses": numbers(losses),
        "gradient": numbers(gradient),
    }, separators=(",", ":")))


def pairwise(size, grouped, scale):
    outputs = draw(size, 1, scale=scale)
    labels = random.integers(0, 4, size).astype("float32")
    weights = np.abs(draw(size))
    keys = random.integers(0, 3, size) if grouped else []
    z = torch.tensor(outputs.astype("float64"), requires_grad=True)
    of_example = torch.nn.SoftMarginLoss()
    losses = []
    for i in range(size):
        lower = [j for j in range(size) if labels[j] < labels[i] and
                 (not grouped or keys[j] == keys[i])]
        if not lower:
            losses.append(0 * z.sum())
            continue
        differences = z[i] - z[lower]
        losses.append(float(weights[i]) *
                      of_example(differences, torch.ones_like(differences)))
    losses = torch.stack(losses)
    losses.mean().backward()
    write("pairwise_logistic { %s }" % ("group: 'g'" if grouped else ""), outputs,
          labels, weights, keys, [], losses.detach(), z.grad)


def softmax(size, width, temperature, with_probabilities, with_candidates):
    outputs = draw(size, 2 * width)
    weights = np.abs(draw(size))
    weights[-1] = 0
    probabilities = (random.integers(1, 2**16, size) / 2**16
                     if with_probabilities else [])
    keys = random.integers(0, size // 2 + 1, size) if with_candidates else []

    z = tf.Variable(outputs.astype("float64"))
    task = tfrs.tasks.Retrieval(
        temperature=temperature, remove_accidental_hits=with_candidates)

    def loss_of(weights):
        return task(
            z[:, :width], z[:, width:], sample_weight=weights,
            candidate_sampling_probability=(
                tf.constant(probabilities) if with_probabilities else None),
            candidate_ids=tf.constant(keys) if with_candidates else None,
            compute_metrics=False)

    losses = [loss_of(weights * (np.arange(size) == i)).numpy()
              for i in range(size)]
    with tf.GradientTape() as tape:
        mean = loss_of(weights) / size
    gradient = tape.gradient(mean, z).numpy()

    both = torch.tensor(outputs.astype("float64"), requires_grad=True)
    logits = both[:, :width] @ both[:, width:].T / temperature
    if with_probabilities:
        logits = logits - torch.log(torch.tensor(probabilities))
    if with_candidates:
        hits = torch.tensor(keys)[:, None] == torch.tensor(keys)[None, :]
        hits.fill_diagonal_(False)
        logits = logits.masked_fill(hits, -torch.inf)
    each = torch.nn.CrossEntropyLoss(reduction="none")(
        logits, torch.arange(size)) * torch.tensor(weights.astype("float64"))
    each.mean().backward()
    np.testing.assert_allclose(losses, each.detach(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, both.grad, rtol=1e-10, atol=1e-12)

    fields = ["temperature: %g" % temperature]
    if with_candidates:
        fields.append("candidate: 'c'")
    if with_probabilities:
        fields.append("candidate_probability: 'p'")
    write("in_batch_softmax { %s }" % " ".join(fields), outputs, [], weights,
          keys, probabilities, losses, gradient)


for size in (1, 2, 9, 40):
    for grouped in (False, True):
        for scale in (1.0, 20.0):
            pairwise(size, grouped, scale)
for size, width in ((1, 2), (6, 3), (20, 4)):
    for temperature in (1.0, 0.25, 2.0):
        for with_probabilities in (False, True):
            for with_candidates in (False, True):
                softmax(size, width, temperature, with_probabilities,
                        with_candidates)
