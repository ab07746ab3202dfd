"""Prints the cases of keras_cases.jsonl: AdamW and Lion by Keras.

  python3 make_keras_cases.py GOLDEN > keras_cases.jsonl

Needs TensorFlow 2.21 with tf_keras 2.21 (Keras 2) and Keras 3.15, which must
agree. Keras 3 is not asked for sparse gradients: it squares the values for the
same row before it adds them up. GOLDEN has optimizers.npz of Keras 2.13.1 and
PyTorch 2.15.

A line is as in tensorflow_cases.jsonl: the optimizer as textproto, first values,
gradients (of all elements, or of rows with indices), the values after each step
and the slots after the last one, in float64. The lines of GOLDEN have no slots.
"""

import json
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
import tf_keras

keras.config.set_floatx("float64")
tf_keras.backend.set_floatx("float64")
random = np.random.default_rng(15)

STEPS = 8
INITIAL = np.array([[1, -2], [0.5, 0.25], [-0.75, 3], [0, 4]])


def draw(*shape):
    return random.integers(-256, 257, shape) / 128


def numbers(array):
    return [[float("%.12g" % x) for x in row] for row in array]


def write(name, textproto, mode, initial, gradients, trajectory, slots=None):
    case = {
        "name": name,
        "textproto": textproto,
        "mode": mode,
        "init": numbers(initial),
        "gradients": gradients,
        "var_after_each_step": [numbers(values) for values in trajectory],
    }
    if slots is not None:
        case["slots"] = {key: numbers(value) for key, value in slots.items()}
    print(json.dumps(case, separators=(",", ":")))


def drawn_gradients(mode):
    gradients = []
    for step in range(STEPS):
        if mode == "dense":
            gradients.append({"values": numbers(draw(*INITIAL.shape))})
            continue
        # Rows twice, and in the last step none of rows 0 and 1.
        rows = random.integers(0, 4, 1 + step % 4)
        if step == STEPS - 1:
            rows = np.array([2, 3, 2])
        gradients.append({"indices": rows.tolist(),
                          "values": numbers(draw(len(rows), 2))})
    return gradients


def follow(optimizer, variable, gradients):
    trajectory = []
    for gradient in gradients:
        values = tf.constant(np.array(gradient["values"]))
        if "indices" in gradient:
            values = tf.IndexedSlices(values, tf.constant(gradient["indices"]),
                                      tf.constant(INITIAL.shape))
        optimizer.apply_gradients([(values, variable)])
        trajectory.append(variable.numpy().copy())
    return trajectory


def case(name, textproto, optimizer, slots):
    """Of dense and of sparse gradients; optimizer(module) makes one of either
    Keras. `slots`: the job's names, in Keras's order."""
    for mode in ("dense", "sparse"):
        gradients = drawn_gradients(mode)
        one = optimizer(tf_keras)
        trajectory = follow(one, tf.Variable(INITIAL), gradients)
        if mode == "dense":
            again = follow(optimizer(keras), keras.Variable(INITIAL), gradients)
            np.testing.assert_allclose(trajectory, again, rtol=1e-6, atol=1e-6)
        found = [v.numpy() for v in one.variables if v.shape == INITIAL.shape]
        assert len(found) == len(slots), one.variables
        write(f"{name}_{mode}", textproto, mode, INITIAL, gradients, trajectory,
              dict(zip(slots, found)))


def golden(arrays, name, textproto):
    for variable in ("kernel", "bias"):
        initial = arrays[f"{name}/{variable}/initial"]
        as_rows = lambda array: array.reshape(-1, initial.shape[-1])
        write(f"golden_{name}_{variable}", textproto, "dense", as_rows(initial),
              [{"values": [[float("%.9g" % x) for x in row] for row in as_rows(g)]}
               for g in arrays[f"{name}/{variable}/gradients"]],
              [as_rows(w) for w in arrays[f"{name}/{variable}/trajectory"]])


def main():
    case("adamw", "adamw {}", lambda k: k.optimizers.AdamW(), "mv")
    case(
        "adamw_lr_wd_betas",
        "adamw { learning_rate: 0.125 weight_decay: 0.25 beta_1: 0.75 "
        "beta_2: 0.5 epsilon: 0.001 }",
        lambda k: k.optimizers.AdamW(0.125, weight_decay=0.25, beta_1=0.75,
                                     beta_2=0.5, epsilon=0.001), "mv")
    case(
        "adamw_amsgrad",
        "adamw { learning_rate: 0.25 weight_decay: 0.5 beta_2: 0.5 "
        "amsgrad: true }",
        lambda k: k.optimizers.AdamW(0.25, weight_decay=0.5, beta_2=0.5,
                                     amsgrad=True), ["m", "v", "vhat"])
    case(
        "adamw_without_decay",
        "adamw { learning_rate: 0.25 weight_decay: 0 beta_2: 0.96875 }",
        lambda k: k.optimizers.AdamW(0.25, weight_decay=0.0, beta_2=0.96875),
        "mv")
    case(
        "adamw_exponential",
        "adamw { learning_rate: 0.25 weight_decay: 0.5 beta_2: 0.96875 } "
        "learning_rate_schedule "
        "{ exponential_decay { decay_steps: 2 decay_rate: 0.5 } }",
        lambda k: k.optimizers.AdamW(
            k.optimizers.schedules.ExponentialDecay(0.25, 2, 0.5),
            weight_decay=0.5, beta_2=0.96875), "mv")
    # Keras 2 has another default, .0001.
    assert abs(float(keras.optimizers.Lion().learning_rate) - 0.001) < 1e-9
    case("lion", "lion {}", lambda k: k.optimizers.Lion(0.001), "m")
    case(
        "lion_lr_wd_betas",
        "lion { learning_rate: 0.125 weight_decay: 0.25 beta_1: 0.75 "
        "beta_2: 0.5 }",
        lambda k: k.optimizers.Lion(0.125, weight_decay=0.25, beta_1=0.75,
                                    beta_2=0.5), "m")
    arrays = np.load(pathlib.Path(sys.argv[1]) / "optimizers.npz")
    golden(arrays, "adamw_keras_1",
           "adamw { learning_rate: 0.01 weight_decay: 0.02 }")
    # Its epsilon moves a step of .01 by less than 1e-8 here.
    golden(arrays, "adamw_torch_1",
           "adamw { learning_rate: 0.01 weight_decay: 0.02 epsilon: 1e-8 }")
    golden(arrays, "lion_1", "lion { learning_rate: 0.01 }")


main()
