"""Writes local_steps_toy.jsonl: local steps by several methods, in numpy.

The toy of asynchronous local SGD (arXiv 2401.09135): a mixture of 32 Gaussians of
4 classes in 512 dimensions, 4 workers of different speeds that make 20 local
steps of AdamW each, and Nesterov's momentum outside. The hidden layer is
narrower, and the inner optimizer's slots stay with their worker.

    OMP_NUM_THREADS=1 python3 make_local_steps_toy.py >local_steps_toy.jsonl

Each line has a method, and the loss and accuracy over all examples after every
exchange of all workers. "blended" is there for comparison.
"""

import heapq
import json

import numpy as np

DIMENSIONS, CLASSES, CLUSTERS, HIDDEN = 512, 4, 32, 64
WORKERS, EXAMPLES, BATCH, STEPS, ROUNDS = 4, 2048, 32, 20, 40
SECONDS_PER_STEP = [0.58, 0.75, 1.51, 3.33]
RATE, DECAY, BETA_1, BETA_2, EPSILON = 2e-4, 1e-3, .9, .999, 1e-7


class Draws:
    """Numbers that C++ draws alike: splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self, count):
        with np.errstate(over="ignore"):
            states = np.uint64(self.state) + np.uint64(
                0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=np.uint64)
            self.state = int(states[-1])
            z = states
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
        return (z >> np.uint64(40)).astype(np.float64) / 2**24

    def normal(self, count):
        """Sums of 12 uniform numbers."""
        return self.uniform(12 * count).reshape(count, 12).sum(axis=1) - 6


def make_data(draws):
    centers = draws.normal(CLUSTERS * DIMENSIONS).reshape(CLUSTERS, DIMENSIONS)
    centers /= np.sqrt((centers**2).sum(axis=1, keepdims=True))
    x = np.zeros((EXAMPLES, DIMENSIONS))
    y = np.zeros(EXAMPLES, dtype=np.int64)
    for i in range(EXAMPLES):
        cluster = i * 7 % CLUSTERS
        x[i] = centers[cluster] + .5 * draws.normal(DIMENSIONS)
        y[i] = cluster % CLASSES
    return x.astype(np.float32), y


def make_values(draws):
    def drawn(inputs, outputs):
        limit = 1 / np.sqrt(inputs)
        kernel = draws.uniform(inputs * outputs) * 2 * limit - limit
        return kernel.reshape(inputs, outputs).astype(np.float32)
    return [drawn(DIMENSIONS, HIDDEN), np.zeros(HIDDEN, np.float32),
            drawn(HIDDEN, CLASSES), np.zeros(CLASSES, np.float32)]


def forward(values, x, y):
    hidden = np.maximum(x @ values[0] + values[1], 0)
    logits = hidden @ values[2] + values[3]
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    return hidden, p, -np.log(p[np.arange(len(y)), y]).mean()


def gradients(values, x, y):
    hidden, p, _ = forward(values, x, y)
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    back = (p @ values[2].T) * (hidden > 0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ p, p.sum(axis=0)]


class Worker:
    def __init__(self, index, data, values):
        x, y = data
        self.x, self.y = x[index::WORKERS], y[index::WORKERS]
        self.m = [np.zeros_like(v) for v in values]
        self.v = [np.zeros_like(v) for v in values]
        self.updates = 0
        self.begin = values
        self.local = [v.copy() for v in values]

    def step(self):
        batches = len(self.y) // BATCH
        first = self.updates % batches * BATCH
        grads = gradients(self.local, self.x[first:first + BATCH],
                          self.y[first:first + BATCH])
        self.updates += 1
        t = self.updates
        rate = RATE * np.sqrt(1 - BETA_2**t) / (1 - BETA_1**t)
        for i, g in enumerate(grads):
            self.m[i] += (g - self.m[i]) * np.float32(1 - BETA_1)
            self.v[i] += (g * g - self.v[i]) * np.float32(1 - BETA_2)
            self.local[i] -= np.float32(RATE * DECAY) * self.local[i]
            self.local[i] -= np.float32(rate) * self.m[i] / (
                np.sqrt(self.v[i]) + np.float32(EPSILON))

    def difference(self, steps):
        for _ in range(steps):
            self.step()
        return [b - l for b, l in zip(self.begin, self.local)]

    def take(self, values):
        self.begin = [v.copy() for v in values]
        self.local = [v.copy() for v in values]


class Nesterov:
    """With `delay`, the mean of so many differences moves the momentum."""

    def __init__(self, values, rate, delay=1):
        self.rate, self.delay, self.count = rate / delay, delay, 0
        self.momentum = [np.zeros_like(v) for v in values]
        self.gathered = [np.zeros_like(v) for v in values]

    def apply(self, values, differences, which=None):
        self.count += 1
        for i in which if which is not None else range(len(values)):
            g = differences[i]
            step = np.float32(self.rate) * g
            self.gathered[i] += g
            if self.count % self.delay == 0:
                self.momentum[i] = (np.float32(.9) * self.momentum[i]
                                    - np.float32(self.rate) * self.gathered[i])
                self.gathered[i][...] = 0
                values[i] += np.float32(.9) * self.momentum[i]
            values[i] -= step


def curve_point(values, data):
    _, p, loss = forward(values, *data)
    return float(loss), float((p.argmax(axis=1) == data[1]).mean())


def synchronous(data, values, rate):
    workers = [Worker(i, data, values) for i in range(WORKERS)]
    outer = Nesterov(values, rate)
    points = []
    for _ in range(ROUNDS):
        differences = [w.difference(STEPS) for w in workers]
        outer.apply(values, [sum(d) / np.float32(WORKERS)
                             for d in zip(*differences)])
        for w in workers:
            w.take(values)
        points.append(curve_point(values, data))
    return points


def asynchronous(data, values, rate, delay):
    workers = [Worker(i, data, values) for i in range(WORKERS)]
    for w in workers:
        w.take(values)
    outer = Nesterov(values, rate, delay)
    queue = [(STEPS * s, i) for i, s in enumerate(SECONDS_PER_STEP)]
    heapq.heapify(queue)
    points = []
    for update in range(1, WORKERS * ROUNDS + 1):
        now, i = heapq.heappop(queue)
        outer.apply(values, workers[i].difference(STEPS))
        workers[i].take(values)
        heapq.heappush(queue, (now + STEPS * SECONDS_PER_STEP[i], i))
        if update % WORKERS == 0:
            points.append(curve_point(values, data))
    return points


def streamed(data, values, rate, fragments, overlap, blend=None):
    """Each fragment's mean difference is applied `overlap` steps after it was
    taken, while these are made. Without `blend` they are added to what comes."""
    workers = [Worker(i, data, values) for i in range(WORKERS)]
    for w in workers:
        w.take(values)
    outer = Nesterov(values, rate)
    points = []
    for _ in range(ROUNDS):
        for part, which in enumerate(fragments):
            end = (part + 1) * STEPS // len(fragments)
            begin = part * STEPS // len(fragments)
            for w in workers:
                for _ in range(end - begin - overlap):
                    w.step()
                w.given = [v.copy() for v in w.local]
            mean = [sum(w.begin[i] - w.given[i] for w in workers)
                    / np.float32(WORKERS) for i in range(len(values))]
            outer.apply(values, mean, which)
            for w in workers:
                for _ in range(overlap):
                    w.step()
                for i in which:
                    w.begin[i] = values[i].copy()
                    if blend is None:
                        w.local[i] = values[i] + (w.local[i] - w.given[i])
                    else:
                        w.local[i] = (np.float32(blend) * w.local[i]
                                      + np.float32(1 - blend) * values[i])
        points.append(curve_point(values, data))
    return points


FRAGMENTS = [[0], [3, 2, 1]]


def main():
    draws = Draws(42)
    data = make_data(draws)
    values = make_values(draws)
    copy = lambda: [v.copy() for v in values]
    methods = {
        "synchronous": lambda: synchronous(data, copy(), .7),
        "asynchronous": lambda: asynchronous(data, copy(), .07, 1),
        "delayed": lambda: asynchronous(data, copy(), .7, 4),
        "fragments": lambda: streamed(data, copy(), .7, FRAGMENTS, 0),
        "overlap": lambda: streamed(data, copy(), .7, FRAGMENTS, 5),
        "blended": lambda: streamed(data, copy(), .7, FRAGMENTS, 5, .5),
    }
    for name, run in methods.items():
        points = run()
        print(json.dumps({"method": name,
                          "loss": [round(l, 5) for l, _ in points],
                          "accuracy": [round(a, 4) for _, a in points]}))


if __name__ == "__main__":
    main()
