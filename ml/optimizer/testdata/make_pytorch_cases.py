"""Prints the cases of pytorch_cases.jsonl: AdamW by PyTorch.

  python3 make_pytorch_cases.py > pytorch_cases.jsonl

Needs PyTorch 2. A line is as in make_keras_cases.py, without slots. PyTorch adds
epsilon behind the correction of Adam's bias and not before it: these cases have
one that is next to nothing.
"""

import json

import numpy as np
import torch

random = np.random.default_rng(16)

STEPS = 8
INITIAL = np.array([[1, -2], [0.5, 0.25], [-0.75, 3], [0, 4]])


def draw(*shape):
    return random.integers(-256, 257, shape) / 128


def numbers(array):
    return [[float("%.12g" % x) for x in row] for row in array]


def torch_case(name, textproto, optimizer):
    variable = torch.tensor(INITIAL, requires_grad=True)
    one = optimizer([variable])
    gradients, trajectory = [], []
    for _ in range(STEPS):
        values = draw(*INITIAL.shape)
        gradients.append({"values": numbers(values)})
        variable.grad = torch.tensor(values)
        one.step()
        trajectory.append(variable.detach().numpy().copy())
    print(json.dumps({
        "name": name,
        "textproto": textproto,
        "mode": "dense",
        "init": numbers(INITIAL),
        "gradients": gradients,
        "var_after_each_step": [numbers(values) for values in trajectory],
    }, separators=(",", ":")))


for amsgrad in (False, True):
    torch_case(
        "torch_adamw" + ("_amsgrad" if amsgrad else ""),
        "adamw { learning_rate: 0.125 weight_decay: 0.25 epsilon: 1e-20 "
        "amsgrad: %s }" % str(amsgrad).lower(),
        lambda variables: torch.optim.AdamW(
            variables, lr=0.125, weight_decay=0.25, eps=1e-20,
            amsgrad=amsgrad))
