"""Trains the models of compute_plane with PyTorch, when it is told to.

Writes PyTorch's version to standard output, then reads orders, lines of
"<model> <seconds>", and answers each with the median seconds of a step. The
models are those of ml/zoo, written as a user of PyTorch would. Each model is
tried as it is, and compiled (torch.compile) with the fused optimizer; on a GPU
also as one CUDA graph of the whole step. The fastest one answers, and a line on
standard error names it.
"""

import argparse
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

# Wide & Deep; compute_workload.cc has the same numbers.
CATEGORICAL_COLUMNS = 26
NUMERIC_COLUMNS = 13
IDS_PER_COLUMN = 20000
EMBEDDING_WIDTH = 16
HIDDEN = (256, 128)

WARM_UP_STEPS = 3
MIN_STEPS = 3
LEARNING_RATE = 0.001


def mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))


def convolution(channels, filters, stride=1):
    return nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False)


class Block(nn.Module):

    def __init__(self, channels, filters):
        super().__init__()
        self.missing = filters - channels
        stride = 2 if self.missing else 1
        self.conv1 = convolution(channels, filters, stride)
        self.norm1 = nn.BatchNorm2d(filters)
        self.conv2 = convolution(filters, filters)
        self.norm2 = nn.BatchNorm2d(filters)

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        if self.missing:
            half = self.missing // 2
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, half))
        return functional.relu(x + y)


def resnet56():
    layers = [convolution(3, 16), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for filters in (16, 32, 64):
        for _ in range(9):
            layers.append(Block(channels, filters))
            channels = filters
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Bottleneck(nn.Module):

    def __init__(self, channels, filters, stride):
        super().__init__()
        expanded = 4 * filters

        def normalized(inputs, outputs, window, stride=1):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, window, stride,
                          padding=window // 2, bias=False),
                nn.BatchNorm2d(outputs))

        self.main = nn.Sequential(
            normalized(channels, filters, 1), nn.ReLU(),
            normalized(filters, filters, 3, stride), nn.ReLU(),
            normalized(filters, expanded, 1))
        self.shortcut = (normalized(channels, expanded, 1, stride)
                         if channels != expanded else nn.Identity())

    def forward(self, x):
        return functional.relu(self.main(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
              nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            filters = 64 << stage
            layers.append(Bottleneck(channels, filters,
                                     2 if stage > 0 and i == 0 else 1))
            channels = 4 * filters
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class WideAndDeep(nn.Module):

    def __init__(self):
        super().__init__()
        ids = CATEGORICAL_COLUMNS * IDS_PER_COLUMN
        self.wide = nn.EmbeddingBag(ids, 1, mode="sum", sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))
        self.embedding = nn.Embedding(ids, EMBEDDING_WIDTH, sparse=True)
        layers = []
        inputs = CATEGORICAL_COLUMNS * EMBEDDING_WIDTH + NUMERIC_COLUMNS
        for units in HIDDEN:
            layers += [nn.Linear(inputs, units), nn.ReLU()]
            inputs = units
        self.deep = nn.Sequential(*layers, nn.Linear(inputs, 1, bias=False))

    def forward(self, ids, numbers):
        embedded = self.embedding(ids).flatten(1)
        deep = self.deep(torch.cat((embedded, numbers), 1))
        return (self.wide(ids) + self.bias + deep).squeeze(1)


def images(batch, *shape):
    return (torch.rand(batch, *shape),), torch.arange(batch) % 10


def columns(batch):
    ids = torch.randint(IDS_PER_COLUMN, (batch, CATEGORICAL_COLUMNS))
    ids += torch.arange(CATEGORICAL_COLUMNS) * IDS_PER_COLUMN
    numbers = torch.rand(batch, NUMERIC_COLUMNS)
    return (ids, numbers), (torch.arange(batch) % 2).float()


CLASSES = functional.cross_entropy
BINARY = functional.binary_cross_entropy_with_logits
MODELS = {
    "mlp": (mlp, CLASSES, lambda: images(128, 28, 28), 0),
    "lenet": (lenet, CLASSES, lambda: images(64, 1, 28, 28), 0),
    "resnet56": (resnet56, CLASSES, lambda: images(32, 3, 32, 32), 1e-4),
    "resnet50": (resnet50, CLASSES, lambda: images(32, 3, 224, 224), 1e-4),
    "wide_deep": (WideAndDeep, BINARY, lambda: columns(512), 0),
}


class Training:
    """One model on one batch, again and again."""

    def __init__(self, name, device, precision, variant):
        self.autocast = torch.autocast(
            device.split(":")[0], torch.bfloat16,
            enabled=precision == "bfloat16")
        model, self.loss, batch, decay = MODELS[name]
        # Images of this layout are the faster ones.
        layout = torch.channels_last
        self.model = model().to(device, memory_format=layout)
        inputs, labels = batch()
        self.inputs = [
            x.to(device, memory_format=layout) if x.dim() == 4 else x.to(device)
            for x in inputs
        ]
        self.labels = labels.to(device)
        # The fused optimizer takes no sparse gradients.
        fused = variant != "eager" and name != "wide_deep"
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), LEARNING_RATE, weight_decay=decay,
            fused=fused)
        if variant == "compiled":
            self.model = torch.compile(self.model)
        self.graph = None
        if variant == "graph":
            self.capture()
        for _ in range(WARM_UP_STEPS):
            self.step()

    def train(self):
        self.optimizer.zero_grad()
        with self.autocast:
            loss = self.loss(self.model(*self.inputs), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def capture(self):
        """Records a whole step, after some on the stream of recordings."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_STEPS):
                self.train()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss_of_graph = self.train()
        self.graph = graph

    def step(self):
        if self.graph is None:
            return self.train().item()
        self.graph.replay()
        return self.loss_of_graph.item()

    def median_step(self, seconds, clock):
        times = []
        now = clock()
        end = now + seconds
        while now < end or len(times) < MIN_STEPS:
            self.step()
            done = clock()
            times.append(done - now)
            now = done
        return statistics.median(times)


def fastest(name, device, precision, wanted, clock, seconds):
    trainings = {}
    variants = ["eager", "compiled"]
    if device.startswith("cuda"):
        variants.append("graph")
    for variant in wanted or variants:
        try:
            training = Training(name, device, precision, variant)
        except Exception as error:  # whatever a compiler may say
            print(f"{name}, {variant}: {error}", file=sys.stderr)
            continue
        trainings[variant] = (training.median_step(seconds, clock), training)
    if not trainings:
        raise SystemExit(f"{name}: PyTorch does not run it")
    best = min(trainings, key=lambda variant: trainings[variant][0])
    times = ", ".join(f"{variant} {1e3 * time:.3f} ms"
                      for variant, (time, _) in trainings.items())
    print(f"PyTorch, {name}: {best} answers ({times})", file=sys.stderr)
    return trainings[best][1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--variants", default="")
    parser.add_argument("--cpu_time", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tf32 = arguments.precision != "float32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    trainings = {}
    print(torch.__version__, flush=True)
    with open(arguments.orders) as orders:
        for order in orders:
            name, seconds = order.split()
            if name not in trainings:
                trainings[name] = fastest(
                    name, arguments.device, arguments.precision,
                    [v for v in arguments.variants.split(",") if v], clock,
                    float(seconds))
            print(trainings[name].median_step(float(seconds), clock),
                  flush=True)


if __name__ == "__main__":
    main()
