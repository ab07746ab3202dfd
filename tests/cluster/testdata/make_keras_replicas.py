"""Makes keras_replicas.jsonl and the digits beside it.

Usage: make_keras_replicas.py GOLDEN MNIST OUT

GOLDEN has training.json and <case>.npz of TensorFlow 2.13.1 (MirroredStrategy of
1, 2 and 4 replicas, `model.fit` of the first 2,048 digits of MNIST, no shuffling,
batches of 128 over all replicas). MNIST has its files. Each line of the result is
a case: its arguments and the weights after the last step with one replica; those
with more replicas differ from them by 3e-8 at most.
"""

import array
import ast
import gzip
import json
import pathlib
import sys
import zipfile

CASES = ["softmax_sgd", "softmax_adam"]
DIGITS = 2048


def read_npy(data):
    header_end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:header_end].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return list(array.array("f", data[header_end:]))


def cut_idx(data, count):
    dimensions = data[3]
    header = 4 + 4 * dimensions
    each = 1
    for i in range(1, dimensions):
        each *= int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big")
    return (
        data[:4]
        + count.to_bytes(4, "big")
        + data[8:header]
        + data[header : header + count * each]
    )


def main():
    golden, mnist, out = map(pathlib.Path, sys.argv[1:])
    entries = json.loads((golden / "training.json").read_text())
    with (out / "keras_replicas.jsonl").open("w") as lines:
        for entry in entries:
            if entry["name"] not in CASES:
                continue
            assert entry["examples"] == DIGITS, entry
            case = {
                key: entry[key]
                for key in ["name", "optimizer", "learning_rate",
                            "global_batch", "epochs", "steps"]
            }
            with zipfile.ZipFile(golden / (entry["name"] + ".npz")) as npz:
                for part in ["kernel", "bias"]:
                    floats = read_npy(npz.read(f"r1/logits/{part}.npy"))
                    # Nine digits are a float32.
                    case[part] = [float(f"{x:.9g}") for x in floats]
            lines.write(json.dumps(case, separators=(",", ":")) + "\n")
    for kind in ["images-idx3", "labels-idx1"]:
        name = f"train-{kind}-ubyte.gz"
        data = gzip.decompress((mnist / name).read_bytes())
        packed = gzip.compress(cut_idx(data, DIGITS), 9, mtime=0)
        (out / f"digits-{kind}-ubyte.gz").write_bytes(packed)


main()
