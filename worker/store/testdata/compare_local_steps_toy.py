"""Compares local_steps_toy.jsonl with the same schedules in PyTorch, on one thread.

    PYTHON worker/store/testdata/compare_local_steps_toy.py [--seeds=42,1,2]

Data and first values are those of make_local_steps_toy.py; model, gradients,
AdamW and Nesterov's momentum are PyTorch's own. Prints for each seed and method
the loss after the last exchange, in PyTorch and in numpy, and the greatest
difference after any exchange. Ends with 1 if one is above .002, which the test of
Parasol allows, or if the file is not what numpy makes of its seed, 42.
"""

import argparse
import heapq
import json
import pathlib

import numpy as np
import torch
from torch.nn import functional as F

import make_local_steps_toy as toy

FILE = pathlib.Path(__file__).with_name("local_steps_toy.jsonl")
ALLOWED = 2e-3


def parameters_of(values):
    return [torch.nn.Parameter(torch.from_numpy(v.copy())) for v in values]


def logits_of(parameters, x):
    kernel_1, bias_1, kernel_2, bias_2 = parameters
    return torch.relu(x @ kernel_1 + bias_1) @ kernel_2 + bias_2


class Worker:
    def __init__(self, index, data, values):
        self.x, self.y = (torch.from_numpy(d[index::toy.WORKERS]) for d in data)
        self.local = parameters_of(values)
        self.inner = torch.optim.AdamW(
            self.local, lr=toy.RATE, betas=(toy.BETA_1, toy.BETA_2),
            eps=toy.EPSILON, weight_decay=toy.DECAY)
        self.updates = 0
        self.begin = [p.detach().clone() for p in self.local]

    def make_steps(self, count):
        for _ in range(count):
            first = self.updates % (len(self.y) // toy.BATCH) * toy.BATCH
            batch = slice(first, first + toy.BATCH)
            self.inner.zero_grad()
            F.cross_entropy(logits_of(self.local, self.x[batch]),
                            self.y[batch]).backward()
            self.inner.step()
            self.updates += 1

    def differences(self):
        return [b - p.detach() for b, p in zip(self.begin, self.local)]

    @torch.no_grad()
    def take(self, values, which=None, since=None):
        """New values; what was changed `since` the difference is added."""
        for i in range(len(values)) if which is None else which:
            self.begin[i] = values[i].detach().clone()
            later = 0 if since is None else self.local[i] - since[i]
            self.local[i].copy_(values[i] + later)


class DelayedNesterov:
    """Algorithm 3 of arXiv 2401.09135 with c = 0."""

    def __init__(self, values, rate, delay):
        self.values, self.rate, self.delay, self.count = values, rate, delay, 0
        self.momentum = [torch.zeros_like(v) for v in values]
        self.buffer = [torch.zeros_like(v) for v in values]

    @torch.no_grad()
    def step(self):
        self.count += 1
        for v, m, b in zip(self.values, self.momentum, self.buffer):
            b += v.grad
            change = v.grad / self.delay
            if self.count % self.delay == 0:
                m.mul_(.9).add_(b, alpha=1 / self.delay)
                b.zero_()
                change = change + .9 * m
            v -= self.rate * change


def nesterov(values, rate):
    return torch.optim.SGD(values, lr=rate, momentum=.9, nesterov=True)


def apply(outer, values, differences, which=None):
    for i, value in enumerate(values):
        taken = which is None or i in which
        value.grad = differences[i] if taken else None
    outer.step()


@torch.no_grad()
def loss_of(values, data):
    x, y = (torch.from_numpy(d) for d in data)
    return float(F.cross_entropy(logits_of(values, x), y))


def one_by_one(data, first, outer_of):
    workers = [Worker(i, data, first) for i in range(toy.WORKERS)]
    values = parameters_of(first)
    outer = outer_of(values)
    queue = [(toy.STEPS * s, i) for i, s in enumerate(toy.SECONDS_PER_STEP)]
    heapq.heapify(queue)
    losses = []
    for update in range(1, toy.WORKERS * toy.ROUNDS + 1):
        now, i = heapq.heappop(queue)
        workers[i].make_steps(toy.STEPS)
        apply(outer, values, workers[i].differences())
        workers[i].take(values)
        heapq.heappush(queue, (now + toy.STEPS * toy.SECONDS_PER_STEP[i], i))
        if update % toy.WORKERS == 0:
            losses.append(loss_of(values, data))
    return losses


def in_step(data, first, fragments, overlap):
    workers = [Worker(i, data, first) for i in range(toy.WORKERS)]
    values = parameters_of(first)
    outer = nesterov(values, .7)
    losses = []
    for _ in range(toy.ROUNDS):
        for which in fragments:
            for w in workers:
                w.make_steps(toy.STEPS // len(fragments) - overlap)
                w.given = [p.detach().clone() for p in w.local]
            mean = [sum(d) / toy.WORKERS
                    for d in zip(*(w.differences() for w in workers))]
            apply(outer, values, mean, which)
            for w in workers:
                w.make_steps(overlap)
                w.take(values, which, w.given)
        losses.append(loss_of(values, data))
    return losses


WHOLE = [[0, 1, 2, 3]]
METHODS = {
    "synchronous": (
        lambda data, first: in_step(data, first, WHOLE, 0),
        lambda data, first: toy.synchronous(data, first, .7)),
    "fragments": (
        lambda data, first: in_step(data, first, toy.FRAGMENTS, 0),
        lambda data, first: toy.streamed(data, first, .7, toy.FRAGMENTS, 0)),
    "overlap": (
        lambda data, first: in_step(data, first, toy.FRAGMENTS, 5),
        lambda data, first: toy.streamed(data, first, .7, toy.FRAGMENTS, 5)),
    "delayed": (
        lambda data, first: one_by_one(
            data, first, lambda values: DelayedNesterov(values, .7, 4)),
        lambda data, first: toy.asynchronous(data, first, .7, 4)),
    "asynchronous": (
        lambda data, first: one_by_one(
            data, first, lambda values: nesterov(values, .07)),
        lambda data, first: toy.asynchronous(data, first, .07, 1)),
}


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--seeds", default="42")
    seeds = [int(s) for s in flags.parse_args().seeds.split(",")]
    torch.set_num_threads(1)
    kept = {}
    for line in FILE.read_text().splitlines():
        curve = json.loads(line)
        kept[curve["method"]] = curve["loss"]
    is_same = True
    print(f"{'seed':>6}  {'method':<14} {'PyTorch':>8} {'numpy':>8} "
          f"{'difference':>10}")
    for seed in seeds:
        draws = toy.Draws(seed)
        data = toy.make_data(draws)
        first = toy.make_values(draws)
        for name, (by_torch, by_numpy) in METHODS.items():
            theirs = np.array(by_torch(data, first))
            ours = np.array([loss for loss, _ in by_numpy(
                data, [v.copy() for v in first])])
            difference = np.abs(theirs - ours).max()
            print(f"{seed:>6}  {name:<14} {theirs[-1]:>8.4f} {ours[-1]:>8.4f} "
                  f"{difference:>10.5f}", flush=True)
            is_same &= difference <= ALLOWED
            if seed == 42:
                is_same &= np.abs(ours - kept[name]).max() <= ALLOWED
    raise SystemExit(0 if is_same else 1)


if __name__ == "__main__":
    main()
