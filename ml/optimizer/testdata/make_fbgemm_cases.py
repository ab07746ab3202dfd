"""Prints the cases of fbgemm_cases.jsonl: EXACT_ROWWISE_ADAGRAD by FBGEMM.

  python3 make_fbgemm_cases.py > fbgemm_cases.jsonl

Needs fbgemm-gpu-cpu 1.9 with PyTorch. A line is as in make_keras_cases.py; the
gradients are of rows, and the slot has one number for each row. TorchRec's
tables are updated by this code.
"""

import json

import numpy as np
import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    EmbeddingLocation, PoolingMode)
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

random = np.random.default_rng(19)

STEPS = 8
ROWS = 5


def draw(*shape):
    return random.integers(-256, 257, shape) / 128


def numbers(array):
    return [[float("%.9g" % x) for x in row] for row in array]


def write(width, rate, epsilon, accumulator):
    table = SplitTableBatchedEmbeddingBagsCodegen(
        [(ROWS, width, EmbeddingLocation.HOST, ComputeDevice.CPU)],
        optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=rate,
        eps=epsilon, pooling_mode=PoolingMode.SUM)
    weights = table.split_embedding_weights()[0]
    initial = draw(ROWS, width)
    weights.copy_(torch.tensor(initial))
    (state,) = table.split_optimizer_states()[0]
    state.fill_(accumulator)
    gradients, trajectory = [], []
    for _ in range(STEPS):
        # Some rows come twice; the last one never.
        indices = random.integers(0, ROWS - 1, 6)
        values = draw(len(indices), width)
        gradients.append({"indices": indices.tolist(),
                          "values": numbers(values)})
        # A bag for each index.
        output = table(indices=torch.tensor(indices),
                       offsets=torch.arange(len(indices) + 1))
        output.backward(torch.tensor(values, dtype=torch.float32))
        trajectory.append(weights.numpy().copy())
    print(json.dumps({
        "name": f"fbgemm_rowwise_adagrad_{width}",
        "textproto": f"rowwise_adagrad {{ learning_rate: {rate} epsilon: "
                     f"{epsilon} initial_accumulator_value: {accumulator} }}",
        "mode": "sparse",
        "init": numbers(initial),
        "gradients": gradients,
        "var_after_each_step": [numbers(values) for values in trajectory],
        "slots": {"row_accumulator": numbers(state.numpy().reshape(-1, 1))},
    }, separators=(",", ":")))


write(4, 0.125, 1e-8, 0)
write(4, 0.25, 0.5, 0.25)
write(20, 0.125, 1e-8, 0)
write(36, 0.25, 0.0625, 1)
