"""Makes optimizer_references.jsonl from the digits beside it.

Usage: make_optimizer_references.py FOLDER   (needs numpy)

Each line is a case: an optimizer, a factor for the kernel's squares (kernel_l2),
and the weights after three epochs of a softmax of 784 pixels / 255 from zeros,
2,048 digits in their order, batches of 128. The rules are those of Keras 2.13
(tf.keras.optimizers), computed in float64; of the kernel every 17th weight is
kept.
"""

import gzip
import json
import pathlib
import sys

import numpy as np

EPOCHS = 3
BATCH = 128
STRIDE = 17


class Sgd:
    text = "sgd { learning_rate: 0.1 }"

    def update(self, w, g):
        return w - 0.1 * g


class Nesterov:
    text = "sgd { learning_rate: 0.05 momentum: 0.9 nesterov: true }"

    def __init__(self):
        self.m = 0.0

    def update(self, w, g):
        self.m = 0.9 * self.m - 0.05 * g
        return w + 0.9 * self.m - 0.05 * g


class Adagrad:
    text = "adagrad { learning_rate: 0.05 }"

    def __init__(self):
        self.n = 0.1

    def update(self, w, g):
        self.n = self.n + g * g
        return w - 0.05 * g / np.sqrt(self.n + 1e-7)


class Adam:
    text = "adam { learning_rate: 0.002 }"

    def __init__(self):
        self.m = self.v = 0.0
        self.t = 0

    def update(self, w, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        rate = 0.002 * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        return w - rate * self.m / (np.sqrt(self.v) + 1e-7)


class Ftrl:
    text = ("ftrl { learning_rate: 0.2 l1_regularization_strength: 0.001 "
            "l2_regularization_strength: 0.01 }")

    def __init__(self):
        self.n = 0.1
        self.z = 0.0

    def update(self, w, g):
        n = self.n + g * g
        self.z = self.z + g - (np.sqrt(n) - np.sqrt(self.n)) / 0.2 * w
        self.n = n
        quadratic = np.sqrt(n) / 0.2 + 2 * 0.01
        return (np.clip(self.z, -0.001, 0.001) - self.z) / quadratic


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big")
             for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def train(optimizer, kernel_l2, images, labels):
    kernel, bias = np.zeros((784, 10)), np.zeros(10)
    of_kernel, of_bias = optimizer(), optimizer()
    for _ in range(EPOCHS):
        for first in range(0, len(images), BATCH):
            x = images[first : first + BATCH]
            logits = x @ kernel + bias
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(x)), labels[first : first + BATCH]] -= 1
            p /= len(x)
            kernel_gradient = x.T @ p + 2 * kernel_l2 * kernel
            bias = of_bias.update(bias, p.sum(axis=0))
            kernel = of_kernel.update(kernel, kernel_gradient)
    return kernel, bias


def main():
    folder = pathlib.Path(sys.argv[1])
    images = read_idx(folder / "digits-images-idx3-ubyte.gz") / 255.0
    labels = read_idx(folder / "digits-labels-idx1-ubyte.gz")
    images = images.reshape(len(images), 784)
    with (folder / "optimizer_references.jsonl").open("w") as lines:
        for optimizer in [Sgd, Nesterov, Adagrad, Adam, Ftrl]:
            for kernel_l2 in [0, 0.01]:
                if optimizer in (Sgd, Adam) and kernel_l2 == 0:
                    continue  # keras_replicas.jsonl has them
                kernel, bias = train(optimizer, kernel_l2, images, labels)
                case = {
                    "name": optimizer.__name__.lower() + ("_l2" if kernel_l2 else ""),
                    "optimizer": optimizer.text,
                    "kernel_l2": kernel_l2,
                    "global_batch": BATCH,
                    "epochs": EPOCHS,
                    "steps": EPOCHS * len(images) // BATCH,
                    "stride": STRIDE,
                    "kernel": [float(f"{x:.9g}") for x in kernel.ravel()[::STRIDE]],
                    "bias": [float(f"{x:.9g}") for x in bias],
                }
                lines.write(json.dumps(case, separators=(",", ":")) + "\n")


main()
