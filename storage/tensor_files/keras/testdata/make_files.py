"""Writes small files with the real Keras and h5py.

The tests of storage/tensor_files/keras and tool/exchange read them.
`models*.jsonl` has a line for each model: its files, the values of all its
variables and of its optimizer's by Keras's names, inputs, and what Keras
predicts for them. Run it in this directory, with each version of Keras:

  pip install keras==3.15.1 h5py==3.16.0 jax scipy
  python make_files.py
  python make_files.py twins scaled   # only these, added to models.jsonl
  pip install keras==3.5.0 h5py jax==0.4.30 jaxlib==0.4.30 scipy   # elsewhere
  python make_files.py

Keras before 3.6 writes no names of layers beside the variables.
"""

import json
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
import h5py
import keras
import numpy as np

L = keras.layers
NAMED = tuple(map(int, keras.__version__.split(".")[:2])) >= (3, 6)
OLD = "mlp", "twins", "parts"  # what is of use without names
SUFFIX = "" if NAMED else "_" + keras.__version__.replace(".", "_")
lines = []


def save(name, model, optimizer, inputs, labels, loss, kinds, metrics=None):
    """Trains a few steps, and saves the model in files of these kinds."""
    model.compile(optimizer, loss, metrics=metrics)
    model.fit(inputs, labels, batch_size=4, epochs=2, shuffle=False, verbose=0)
    files = [name + SUFFIX + kind for kind in kinds]
    for file in files:
        (model.save_weights if "weights" in file else model.save)(file)
    front = model.name + "/"
    tensors = {w.path.removeprefix(front): keras.ops.convert_to_numpy(w) for w in model.weights}
    for w in optimizer.variables:
        tensors[w.path.replace("/" + model.name + "_", "/")] = keras.ops.convert_to_numpy(w)
    lines.append(
        {
            "files": files,
            "tensors": {k: v.ravel().tolist() for k, v in tensors.items()},
            "inputs": inputs.tolist(),
            "outputs": model.predict(inputs, verbose=0).tolist(),
        }
    )


def inputs_of(*shape):
    return np.random.RandomState(1).randn(8, *shape).astype(np.float32)


def mlp():
    model = keras.Sequential(
        [
            keras.Input((4,)),
            L.Dense(5, activation="relu", name="hidden"),
            L.BatchNormalization(name="norm"),
            L.Dropout(0.2),
            L.Dense(3, name="logits"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    kinds = [".keras", ".weights.h5"] + ([".h5"] if NAMED else [])
    save("mlp", model, keras.optimizers.Adam(0.01), inputs_of(4), np.arange(8) % 3, loss, kinds,
         ["accuracy"])


def lenet():
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            L.Conv2D(2, 3, padding="same", activation="relu", name="first"),
            L.MaxPooling2D(2),
            L.DepthwiseConv2D(2, name="depth"),
            L.Conv2D(3, 2, activation="relu", name="second"),
            L.Flatten(),
            L.Dense(4, activation="relu", name="hidden"),
            L.Dense(3, name="logits"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    save("lenet", model, keras.optimizers.SGD(0.01, momentum=0.9), inputs_of(6, 6, 1),
         np.arange(8) % 3, loss, [".keras"])


def reader():
    steps = keras.Input((4, 3), name="steps")
    both = L.Bidirectional(L.LSTM(2, return_sequences=True), name="both")(steps)
    read = L.GRU(3, name="read")(both)
    norm = L.LayerNormalization(name="norm")(read)
    scaled = L.BatchNormalization(name="scaled", center=False)(norm)
    model = keras.Model(steps, L.Dense(1, use_bias=False, name="y")(scaled))
    optimizer = keras.optimizers.RMSprop(0.01, momentum=0.9, centered=True)
    save("reader", model, optimizer, inputs_of(4, 3), inputs_of(1), "mse", [".keras", ".h5"])


def items():
    ids = keras.Input((4,), dtype="int32", name="ids")
    rows = L.Embedding(10, 4, name="items")(ids)
    look = L.MultiHeadAttention(2, 3, name="look")(rows, rows)
    mean = L.GlobalAveragePooling1D()(look)
    model = keras.Model(ids, L.Dense(2, name="logits")(mean))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    save("items", model, keras.optimizers.Adagrad(0.1),
         np.random.RandomState(1).randint(0, 10, (8, 4)).astype(np.int32), np.arange(8) % 2, loss,
         [".keras"])


def twins():
    """Layers that only their order tells apart, some of them in a model of their own."""
    keras.utils.clear_session()
    inner = [L.Dense(4, name="first"), L.Dense(4, activation="relu", name="second")]
    model = keras.Sequential(
        [
            keras.Input((4,)),
            L.Dense(4, activation="relu", name="second"),
            L.Dense(4, name="first"),
            keras.Sequential(inner, name="inner"),
            L.Dense(3, name="logits"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    kinds = [".keras", ".weights.h5"] + ([".h5"] if NAMED else [])
    save("twins", model, keras.optimizers.Adam(0.01), inputs_of(4), np.arange(8) % 3, loss, kinds)


def dense(name, optimizer, kinds):
    """Saves a model of two layers, trained by this optimizer."""
    model = keras.Sequential(
        [keras.Input((4,)), L.Dense(2, name="hidden"), L.Dense(1, name="y")]
    )
    save(name, model, optimizer, inputs_of(4), inputs_of(1), "mse", kinds)


def scaled():
    keras.utils.clear_session()
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01))
    dense("scaled", optimizer, [".keras", ".weights.h5"])


def accumulated():
    keras.utils.clear_session()
    optimizer = keras.optimizers.Adam(0.01, gradient_accumulation_steps=2)
    dense("accumulated", optimizer, [".keras"])


class Parts(keras.Model):
    """Made in another order than it is called in; Keras saves all of it as a list of layers."""

    def __init__(self):
        super().__init__(name="parts")
        self.y = L.Dense(4, name="second")
        self.x = L.Dense(4, name="first")

    def call(self, x):
        return self.y(self.x(x))


def parts():
    keras.utils.clear_session()
    save("parts", Parts(), keras.optimizers.Adam(0.01), inputs_of(4), inputs_of(4), "mse",
         [".keras", ".weights.h5"])


class Own(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.first = L.Dense(3, activation="relu", name="hidden")
        self.norms = [L.LayerNormalization(name="norm")]
        self.last = L.Dense(2)

    def call(self, x):
        return self.last(self.norms[0](self.first(x)))


def own():
    keras.utils.clear_session()
    save("own", Own(), keras.optimizers.SGD(0.01), inputs_of(4), inputs_of(2), "mse",
         [".weights.h5"])


def hdf5(name, version):
    """Arrays of all types that are read, and of some that are not."""
    import ml_dtypes

    with h5py.File(name, "w", libver=version) as f:
        group = f.create_group("layers/dense/vars")
        group.attrs["name"] = "hidden"
        group.attrs["bytes"] = b"text"
        group["float32"] = np.arange(6, dtype=np.float32).reshape(2, 3)
        group["float16"] = np.array([1, -0.5, 65504], np.float16)
        group["float64"] = np.array(0.1)
        group["int32"] = np.array([-3, 4], np.int32)
        more = f.create_group("more")
        more["uint64"] = np.array([2**63 + 1], np.uint64)
        more["none"] = np.zeros((0, 5), np.float32)
        more["big_endian"] = np.ones(2, ">f4")
        half = more.create_dataset("bfloat16", data=np.array([1, -2], ml_dtypes.bfloat16))
        half.attrs["dtype"] = "bfloat16"
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        values = h5py.h5d.create(
            more.id, b"compact", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((2,)), compact
        )
        values.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([7, 8], np.float32))
        for i in range(20 if version == "earliest" else 4):
            f[f"many/{i}"] = np.float32(i)


only = sys.argv[1:]
for make in [mlp, lenet, reader, items, own, twins, scaled, accumulated, parts]:
    if make.__name__ in only or (not only and (NAMED or make.__name__ in OLD)):
        keras.utils.set_random_seed(1)
        make()
with open(f"models{SUFFIX}.jsonl", "a" if only else "w") as out:
    for line in lines:
        out.write(json.dumps(line) + "\n")
if NAMED and not only:
    hdf5("h5py_earliest.h5", "earliest")
    hdf5("h5py_latest.h5", "latest")
    with h5py.File("h5py_chunks.h5", "w") as f:
        f.create_dataset("a/vars/0", data=np.ones((100, 3)), chunks=(10, 3), compression="gzip")
