"""Prints the cases of keras_cases.jsonl: losses and gradients by Keras.

  python3 make_keras_cases.py > keras_cases.jsonl

Needs TensorFlow 2.21 and tf_keras 2.21 (Keras 2, whose names and formulas the
job file has). A line is as in make_pytorch_cases.py: a job's loss as textproto,
outputs, labels and weights that float32 has exactly, and by Keras in float64 the
losses of the examples times their weights, and the gradient of Keras's
sum_over_batch_size by the outputs.
"""

import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tf_keras as keras

keras.backend.set_floatx("float64")
EXAMPLES = 5
random = np.random.default_rng(11)


def draw(*shape, scale=3.0):
    return (scale * random.standard_normal(shape)).astype("float32")


def numbers(array):
    """Nine digits are a float32."""
    if array.ndim > 1:
        return [numbers(part) for part in array]
    return [float("%.9g" % x) for x in array]


def case(text, kind, outputs, labels, weights, **arguments):
    z = tf.Variable(outputs.astype("float64"))
    loss = kind(**arguments)
    each = kind(**arguments, reduction="none")
    with tf.GradientTape() as tape:
        mean = loss(labels.astype("float64"), z, sample_weight=weights)
    losses = each(labels.astype("float64"), z, sample_weight=weights)
    gradient = tape.gradient(mean, z)
    print(json.dumps({
        "loss": text,
        "outputs": numbers(outputs),
        "labels": numbers(labels),
        "weights": numbers(weights),
        "losses": numbers(losses.numpy()),
        "gradient": numbers(gradient.numpy()),
    }, separators=(",", ":")))


def of_width(width):
    shape = (EXAMPLES, width)
    weights = np.abs(draw(EXAMPLES, scale=1))
    weights[1] = 0
    outputs = draw(*shape)
    others = draw(*shape)
    others[0, 0] = outputs[0, 0]
    case("mean_absolute_error {}", keras.losses.MeanAbsoluteError, outputs,
         others, weights)
    for delta in (0.25, 1.0, 3.0):
        # An error that is delta itself is squared.
        at_delta = others.copy()
        outputs[2, 0], at_delta[2, 0] = 4 + delta, 4
        case("huber { delta: %g }" % delta, keras.losses.Huber, outputs,
             at_delta, weights, delta=delta)

    classes = (random.random(shape) < 0.5).astype("float32")
    hinge = outputs.copy()
    hinge[3, 0] = 2 * classes[3, 0] - 1  # the edge of the margin
    case("hinge {}", keras.losses.Hinge, hinge, classes, weights)

    rates = np.abs(outputs)
    rates[4, 0] = 1e-6
    counts = random.integers(0, 6, shape).astype("float32")
    counts[0, 0] = 0
    case("poisson {}", keras.losses.Poisson, rates, counts, weights)

    soft = random.random(shape).astype("float32")
    logits = outputs.copy()
    logits[0, 0] = 30
    logits[1, 0] = -30
    for text, arguments in [
        ("", {}),
        ("gamma: 0", dict(gamma=0.0)),
        ("gamma: 0.5", dict(gamma=0.5)),
        ("gamma: 3 label_smoothing: 0.125", dict(gamma=3.0, label_smoothing=0.125)),
        ("alpha: 0.25", dict(apply_class_balancing=True, alpha=0.25)),
        ("alpha: 0.75 gamma: 1 label_smoothing: 0.25",
         dict(apply_class_balancing=True, alpha=0.75, gamma=1.0,
              label_smoothing=0.25)),
    ]:
        for labels in (classes, soft):
            case("binary_focal_crossentropy { %s }" % text,
                 keras.losses.BinaryFocalCrossentropy, logits, labels, weights,
                 from_logits=True, **arguments)

    # 0 and 1 are clipped.
    probabilities = random.random(shape).astype("float32")
    probabilities[0, 0], probabilities[1, 0] = 0, 1
    probabilities[2, 0] = 1e-6
    for text, smoothing in (("", 0.0), ("label_smoothing: 0.125", 0.125)):
        for labels in (classes, soft):
            case("binary_crossentropy { from_logits: false %s }" % text,
                 keras.losses.BinaryCrossentropy, probabilities, labels,
                 weights, label_smoothing=smoothing)


for width in (1, 3, 9):
    of_width(width)
