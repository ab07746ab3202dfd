"""Writes small files with the real numpy, safetensors and TensorFlow.

The tests of storage/tensor_files and tool read them. part.*, lso_ckpt.*
and snappy.* are from TensorFlow's own repositories. Run it in this directory:

  pip install numpy safetensors tensorflow tf_keras torch
  python make_files.py

The others were made with numpy 2.4.6, safetensors 0.8.0, TensorFlow 2.21.0,
tf_keras 2.21.0, Keras 3.15.1 and PyTorch 2.15.0. The Keras model is Dense(3,
relu) "hidden" and Dense(2) "logits" on 4 inputs, after three steps of Adam;
`keras_*.npz` has what it holds, with the names of Keras 2.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import safetensors.numpy
import tensorflow as tf
import tf_keras
import torch

TENSORS = {
    "dense/kernel": np.array([[1.5, -2.25, np.inf], [0.0, -0.0, 1e-45]], np.float32),
    "half": np.array([1, -0.5, 65504, 6e-8], np.float16),
    "double": np.array([[1e300], [0.1]], np.float64),
    "ids": np.array([7, 2**63 + 1], np.uint64),
    "step": np.array(12, np.int64),
    "small": np.array([-3, 4], np.int32),
    "none": np.zeros((0, 5), np.float32),
}


def keras_checkpoint(name, optimizer):
    tf_keras.utils.set_random_seed(1)
    model = tf_keras.Sequential([
        tf_keras.layers.Dense(3, activation="relu", name="hidden", input_shape=(4,)),
        tf_keras.layers.Dense(2, name="logits"),
    ])
    model.compile(optimizer, tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.random.RandomState(1).randn(12, 4).astype(np.float32)
    y = np.arange(12) % 2
    model.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    tf.train.Checkpoint(model=model, optimizer=optimizer).write(name)
    values = {v.name.removesuffix(":0"): v.numpy() for v in model.variables}
    variables = optimizer.variables
    for v in variables() if callable(variables) else variables:
        if v.shape.rank > 0:
            values[v.name.removesuffix(":0")] = v.numpy()
    np.savez(name + ".npz", **values)


def keras_3_checkpoint(name):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((4,)),
        keras.layers.Dense(3, activation="relu", name="hidden"),
        keras.layers.Dense(2, name="logits"),
    ])
    optimizer = keras.optimizers.Adam(0.01)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.random.RandomState(1).randn(12, 4).astype(np.float32)
    y = np.arange(12) % 2
    model.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    tf.train.Checkpoint(model=model).write(name)
    values = {}
    slots = optimizer.variables[2:]  # behind iteration and learning rate
    for i, v in enumerate(model.trainable_variables):
        variable = v.path.removeprefix("sequential/")
        values[variable] = v.numpy()
        for slot, of_slot in zip("mv", slots[2 * i : 2 * i + 2]):
            values[f"Adam/{variable}/{slot}"] = of_slot.numpy()
    np.savez(name + ".npz", **values)


def pytorch_state_dict(name):
    tensors = {
        k: torch.tensor(v) for k, v in TENSORS.items() if v.dtype != np.uint64
    }
    base = torch.arange(6, dtype=torch.float32)
    tensors["view"] = base[2:6].view(2, 2)  # shares a storage with "base"
    tensors["base"] = torch.nn.Parameter(base)
    nested = {"model": tensors, "epoch": 3, "rates": [0.5, None], "flag": True}
    torch.save(nested, name)


np.savez("numpy_stored.npz", **TENSORS)
np.savez_compressed("numpy_compressed.npz", **TENSORS)
safetensors.numpy.save_file(TENSORS, "library.safetensors", metadata={"made": "by the library"})
keras_checkpoint("keras_legacy", tf_keras.optimizers.legacy.Adam(0.01))
keras_checkpoint("keras_new", tf_keras.optimizers.Adam(0.01))
keras_3_checkpoint("keras_3")
pytorch_state_dict("pytorch.pt")
