"""Prints the cases of tensorflow_cases.jsonl.

  python3 make_tensorflow_cases.py GOLDEN > tensorflow_cases.jsonl

GOLDEN has losses.json and losses.npz of TensorFlow 2.13.1 with Keras 2.13.1, in
float64: label, output, the loss of each example, and the gradient of their mean
by the output. The lines of the result are as in make_keras_cases.py.
"""

import json
import pathlib
import sys

import numpy as np

LOSSES = {
    "huber_1": "huber {}",
    "mean_absolute_error_1": "mean_absolute_error {}",
    "hinge_1": "hinge {}",
    "poisson_1": "poisson {}",
    "binary_focal_crossentropy_1": "binary_focal_crossentropy {}",
}


def main():
    golden = pathlib.Path(sys.argv[1])
    arrays = np.load(golden / "losses.npz")
    configurations = {
        loss["name"]: loss["config"]
        for loss in json.loads((golden / "losses.json").read_text())
    }
    assert configurations["huber_1"] == {"delta": 1.0}
    focal = configurations["binary_focal_crossentropy_1"]
    assert focal == {"gamma": 2.0, "from_logits": True, "class_balancing": False}
    for name, text in LOSSES.items():
        outputs = arrays[name + "/output"]
        weight = name + "/weight"
        weights = arrays[weight] if weight in arrays else np.ones(len(outputs))
        print(json.dumps({
            "loss": text,
            "outputs": outputs.tolist(),
            "labels": arrays[name + "/label"].reshape(outputs.shape).tolist(),
            "weights": weights.ravel().tolist(),
            "losses": (arrays[name + "/loss_of_each"].ravel() *
                       weights.ravel()).tolist(),
            "gradient": arrays[name + "/gradient"].tolist(),
        }))


main()
