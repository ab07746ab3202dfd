"""Prints the numbers of keras_outputs_test.cc: two models with several outputs,
trained by SGD with Keras's losses in float64.

  python3 make_keras_outputs.py

Needs TensorFlow 2.20 with Keras 3. For each model a line of losses for every
step, the model's and then its outputs', and a line for each variable behind the
last step.
"""
import numpy as np
import tensorflow as tf

tf.keras.backend.set_floatx("float64")

STEPS = 5
RATE = 0.5


def values(count, seed):
    return np.array([((i * 7 + seed * 3) % 11 - 5) / 10 for i in range(count)])


X = np.array([[((i * 5 + j * 3) % 7 - 3) / 4 for j in range(2)] for i in range(6)])
CLICK = np.array([1, 0, 1, 1, 0, 0], dtype="float64")
CONVERSION = np.array([1, 0, 0, 1, 0, 0], dtype="float64")
NUMBER = np.array([0.5, -1, 2, 0, 0, 1.5])
HAS_NUMBER = np.array([1, 1, 0, 1, 0, 1.0])
WEIGHT = np.array([1, 2, 1, 0.5, 1, 1.0])


def entropy(labels, outputs, from_logits=False):
    return tf.keras.losses.binary_crossentropy(
        labels[:, None], outputs, from_logits=from_logits)


def of_numbers(a, b):
    """A logit, and half of the squared error of those that have a number."""
    first = tf.reduce_sum(entropy(CLICK, a, from_logits=True) * WEIGHT) / 6
    error = tf.reduce_mean((NUMBER[:, None] - b)**2, axis=-1)
    second = tf.reduce_sum(error * WEIGHT * HAS_NUMBER) / HAS_NUMBER.sum()
    return [first + 0.5 * second, first, second]


def esmm(a, b):
    """Clicks, and twice conversions, of all; conversions of clicked ones alone
    are not trained."""
    ctr, cvr = tf.sigmoid(a), tf.sigmoid(b)
    clicks = tf.reduce_mean(entropy(CLICK, ctr))
    both = tf.reduce_mean(entropy(CONVERSION, ctr * cvr))
    behind = tf.reduce_sum(entropy(CONVERSION, cvr) * CLICK) / CLICK.sum()
    return [clicks + 2 * both, clicks, both, behind]


def run(losses):
    shapes = [(2, 3), (3,), (3, 1), (1,), (3, 1), (1,)]
    v = [
        tf.Variable(values(np.prod(shape), i + 1).reshape(shape))
        for i, shape in enumerate(shapes)
    ]
    print(losses.__name__)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.matmul(X, v[0]) + v[1])
            found = losses(
                tf.matmul(hidden, v[2]) + v[3], tf.matmul(hidden, v[4]) + v[5])
        print("{" + ", ".join("%.9g" % loss for loss in found) + "},")
        for variable, gradient in zip(v, tape.gradient(found[0], v)):
            variable.assign_sub(RATE * gradient)
    for variable in v:
        print("{" + ", ".join("%.9g" % x for x in variable.numpy().ravel()) + "},")


run(of_numbers)
run(esmm)
