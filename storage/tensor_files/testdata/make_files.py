"""Writes small files with the real numpy, safetensors and TensorFlow.

The tests of storage/tensor_files and deploy/tool read them. part.*, lso_ckpt.*
and snappy.* are from TensorFlow's own repositories. Run it in this directory:

  pip install numpy safetensors tensorflow tf_keras
  python make_files.py

The others were made with numpy 2.4.6, safetensors 0.8.0, TensorFlow 2.21.0 and
tf_keras 2.21.0. The Keras model is Dense(3, relu) "hidden" and Dense(2) "logits"
on 4 inputs, after three steps of Adam; `keras_*.npz` has what it holds.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import safetensors.numpy
import tensorflow as tf
import tf_keras

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


np.savez("numpy_stored.npz", **TENSORS)
np.savez_compressed("numpy_compressed.npz", **TENSORS)
safetensors.numpy.save_file(TENSORS, "library.safetensors", metadata={"made": "by the library"})
keras_checkpoint("keras_legacy", tf_keras.optimizers.legacy.Adam(0.01))
keras_checkpoint("keras_new", tf_keras.optimizers.Adam(0.01))
