"""Makes keras_fits.jsonl from the digits beside it.

  python3 make_keras_fits.py FOLDER > keras_fits.jsonl

Needs TensorFlow 2.21 with Keras 3.15. Each line is a case: what is added to the
job, and what Keras's `fit` has after three epochs of a softmax of 784 pixels /
255 from zeros, 2,048 digits in their order, batches of 128, in float64: the
weights, and with `use_ema` their averages. In the case "accumulation" Keras
accumulates gradients of smaller batches. The warm-up is that of its CosineDecay,
whose decay begins behind the last step. Of the kernel every 17th weight is kept.
"""

import gzip
import json
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

keras.config.set_floatx("float64")
EPOCHS = 3
BATCH = 128
STRIDE = 17
CLASS_WEIGHT = {0: 2.0, 3: 0.5, 7: 0.0}


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big")
             for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def numbers(array):
    return [float("%.9g" % x) for x in np.ravel(array)]


class LastWeights(keras.callbacks.Callback):
    """The weights before `fit` puts their averages in their place."""

    def on_train_batch_end(self, batch, logs=None):
        self.weights = self.model.get_weights()


def fit(images, labels, optimizer, micro_batch, class_weight):
    model = keras.Sequential([
        keras.layers.Input((784,)),
        keras.layers.Dense(10, kernel_initializer="zeros", name="logits"),
    ])
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    last = LastWeights()
    model.fit(images, labels, micro_batch, EPOCHS, shuffle=False, verbose=0,
              class_weight=class_weight, callbacks=[last])
    return last.weights, model.get_weights()


def main():
    folder = pathlib.Path(sys.argv[1])
    images = read_idx(folder / "digits-images-idx3-ubyte.gz") / 255.0
    images = images.reshape(len(images), 784)
    labels = read_idx(folder / "digits-labels-idx1-ubyte.gz").astype("int64")

    def case(name, job, optimizer, micro_batch=BATCH, class_weight=None):
        (kernel, bias), averages = fit(
            images, labels, optimizer, micro_batch, class_weight)
        line = {
            "name": name,
            "job": job,
            "global_batch": BATCH,
            "epochs": EPOCHS,
            "steps": EPOCHS * len(images) // BATCH,
            "stride": STRIDE,
            "kernel": numbers(kernel.ravel()[::STRIDE]),
            "bias": numbers(bias),
        }
        if optimizer.use_ema:
            line["kernel_average"] = numbers(averages[0].ravel()[::STRIDE])
            line["bias_average"] = numbers(averages[1])
        print(json.dumps(line, separators=(",", ":")))

    weights = " ".join("class_weight { class: %d weight: %g }" % item
                       for item in CLASS_WEIGHT.items())
    weights = "model { loss { %s } }" % weights
    optimizers = keras.optimizers
    case("class_weight", weights + " optimizer { sgd { learning_rate: 0.1 } }",
         optimizers.SGD(0.1), class_weight=CLASS_WEIGHT)
    case("accumulation",
         "train { micro_batch_size: 32 } optimizer { sgd { learning_rate: 0.1 "
         "momentum: 0.9 } }",
         optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=4),
         micro_batch=32)
    case("ema",
         "optimizer { sgd { learning_rate: 0.1 } ema { decay: 0.9 } }",
         optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9))

    def warmup():
        return optimizers.schedules.CosineDecay(
            0.0005, decay_steps=1000, warmup_target=0.002, warmup_steps=64)

    adamw = ("adamw { learning_rate: 0.002 weight_decay: 0.25 } "
             "learning_rate_schedule { warmup { steps: 64 start: 0.0005 } }")
    case("adamw_warmup", "optimizer { %s }" % adamw,
         optimizers.AdamW(warmup(), weight_decay=0.25))
    # Keras moves averages at each small batch when it accumulates.
    case("adamw_all",
         weights + " train { micro_batch_size: 16 } "
         "optimizer { %s ema { decay: 0.75 } }" % adamw,
         optimizers.AdamW(warmup(), weight_decay=0.25, use_ema=True,
                          ema_momentum=0.75),
         class_weight=CLASS_WEIGHT)


main()
