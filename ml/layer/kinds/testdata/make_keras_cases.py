"""Prints the cases of keras_cases.jsonl: layers of recommenders and activations
by Keras, TensorFlow and TensorFlow Recommenders, in float64.

  python3 make_keras_cases.py GOLDEN > keras_cases.jsonl

Needs TensorFlow 2.21 with tf_keras 2.21, and TensorFlow Recommenders 0.7.7.
GOLDEN has layers/*.npz of Keras 2.13.1. A line is as in
make_pytorch_cases.py.
"""

import json
import os
import pathlib
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs
import tf_keras as keras

keras.backend.set_floatx("float64")
random = np.random.default_rng(14)


def draw(*shape):
    return random.integers(-256, 257, shape) / 256


def numbers(array):
    return [float("%.9g" % x) for x in np.ravel(array)]


def write_arrays(name, layer, inputs, variables, y, dy, dx, gradients):
    print(json.dumps({
        "name": name,
        "layer": layer,
        "examples": len(y),
        "inputs": [{"shape": list(x.shape[1:]), "values": numbers(x)}
                   for x in inputs],
        "variables": [numbers(v) for v in variables],
        "y": numbers(y),
        "dy": numbers(dy),
        "dx": [numbers(x) for x in dx],
        "gradients": [numbers(g) for g in gradients],
    }, separators=(",", ":")))


def write(name, layer, inputs, function, variables=()):
    """`variables`: those of Keras's layer, which get other values first."""
    tensors = [tf.Variable(x) for x in inputs]
    function(*tensors)  # makes the variables
    variables = variables() if callable(variables) else list(variables)
    for variable in variables:
        variable.assign(draw(*variable.shape))
    with tf.GradientTape() as tape:
        y = function(*tensors)
    dy = draw(*y.shape)
    found = tape.gradient(y, tensors + variables, output_gradients=tf.constant(dy))
    write_arrays(name, layer, inputs, [v.numpy() for v in variables], y.numpy(), dy,
                 [g.numpy() for g in found[:len(inputs)]],
                 [g.numpy() for g in found[len(inputs):]])


def activations():
    # 0, where slopes jump, and where exponentials would overflow.
    edges = np.array([[0, 1, -1, 20, -20, 100, -100, 1 / 256, -1 / 256]])
    for name, function in [
        ("LEAKY_RELU", tf.nn.leaky_relu),
        ("SILU", tf.nn.silu),
        ("SOFTPLUS", tf.nn.softplus),
        ("ELU", tf.nn.elu),
        ("GELU", lambda x: tf.nn.gelu(x, approximate=False)),
        ("SIGMOID", tf.sigmoid),
        ("TANH", tf.tanh),
        ("RELU", tf.nn.relu),
    ]:
        write("activation " + name, "activation: " + name, [4 * draw(2, 3, 5)],
              function)
        write("edges of " + name, "activation: " + name, [edges], function)
        dense = keras.layers.Dense(4, activation=function)
        write("dense " + name, "dense { units: 4 activation: %s }" % name,
              [draw(3, 5)], dense, lambda: dense.trainable_variables)


def crosses():
    for rank in (None, 2):
        for use_bias in (True, False):
            for inputs in (1, 2):
                cross = tfrs.layers.dcn.Cross(projection_dim=rank, use_bias=use_bias)
                text = "projection_dim: 2 " if rank else ""
                text += "use_bias: " + str(use_bias).lower()
                write("cross of %d, %s" % (inputs, text), "cross { %s }" % text,
                      [draw(4, 5) for _ in range(inputs)], cross,
                      lambda: cross.trainable_variables)


def interactions():
    for self_interaction in (False, True):
        for fields, width in ((2, 1), (4, 3), (7, 5)):
            layer = tfrs.layers.feature_interaction.DotInteraction(
                self_interaction=self_interaction, skip_gather=False)
            write("dot_interaction of [%d, %d], self %s" %
                  (fields, width, self_interaction),
                  "dot_interaction { self_interaction: %s }" %
                  str(self_interaction).lower(),
                  [draw(3, fields, width)],
                  lambda x: layer(tf.unstack(x, axis=1)))


def dots():
    for normalize in (False, True):
        text = "dot { normalize: %s }" % str(normalize).lower()
        layer = keras.layers.Dot(axes=-1, normalize=normalize)
        for a, b in (([4], [4]), ([3, 4], [2, 4]), ([4], [3, 4]), ([3, 4], [4])):
            x, y = draw(3, *a), draw(3, *b)
            x[0] = 0  # no direction
            y[1] /= 2**22  # a norm below Keras's smallest
            write("dot of %s and %s, normalize %s" % (a, b, normalize), text,
                  [x, y], lambda x, y: layer([x, y]))


def others():
    for count in (2, 3):
        x = [draw(2, 3, 2) for _ in range(count)]
        x[0][0, 0, 0] = 0
        write("multiply of %d" % count, "multiply {}", x,
              lambda *x: keras.layers.multiply(x))
    write("weighted_sum", "weighted_sum {}", [draw(3, 4), draw(3, 4, 5)],
          lambda w, x: tf.einsum("bn,bnk->bk", w, x))
    average = keras.layers.GlobalAveragePooling2D()
    write("global_average_pool", "global_average_pool {}", [draw(2, 3, 4, 5)],
          average)


def golden(folder):
    """The cases of the golden files that are of one of these layers."""
    for name, layer in [
        ("layer_normalization_1", "layer_normalization {}"),
        ("conv1d_1", "conv1d { filters: 4 kernel_size: 3 padding: SAME stride: 2 "
                     "activation: RELU }"),
        ("depthwise_conv2d_1", "depthwise_conv2d { kernel_size: 3 "
                               "depth_multiplier: 2 padding: SAME }"),
        ("separable_conv2d_1", "separable_conv2d { filters: 5 kernel_size: 3 "
                               "padding: SAME }"),
        ("conv2d_transpose_1", "conv2d_transpose { filters: 3 kernel_size: 3 "
                               "stride: 2 padding: SAME }"),
        ("lstm_1", "lstm { units: 4 return_sequences: true }"),
        ("gru_1", "gru { units: 4 return_sequences: true }"),
        ("multi_head_attention_1", "multi_head_attention { num_heads: 2 "
                                   "key_dim: 3 masked: true }"),
    ]:
        arrays = np.load(folder / "layers" / (name + ".npz"))
        inputs = [key for key in arrays if key.startswith("input/")]
        weights = [key for key in arrays if key.startswith("weight/")]
        write_arrays(
            "golden, " + name, layer, [arrays[key] for key in inputs],
            [arrays[key] for key in weights], arrays["output_float64"],
            arrays["upstream"],
            [arrays["gradient_float64/" + key] for key in inputs
             if "gradient_float64/" + key in arrays],
            [arrays["gradient_float64/" + key] for key in weights])


activations()
crosses()
interactions()
dots()
others()
golden(pathlib.Path(sys.argv[1]))
