"""The models of docs/examples/custom_loop/characters.cc in PyTorch.

Takes the flags of that program, reads the text and draws the windows as it
does, and writes the same lines. Initial values are drawn as Keras draws them.
"""

import argparse
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

MASK = (1 << 64) - 1


def mixed(x):
    """splitmix64"""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def windows_of(text, begin, end, first, count, steps):
    starts = [begin + mixed(first + i) % (end - begin - steps)
              for i in range(count)]
    places = torch.tensor(starts)[:, None] + torch.arange(steps + 1)
    both = text[places]
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()


def dense(inputs, outputs):
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def uniform(layer, fans):
    limit = math.sqrt(6 / fans)
    nn.init.uniform_(layer.weight, -limit, limit)


def rows(kinds, width):
    layer = nn.Embedding(kinds, width)
    nn.init.uniform_(layer.weight, -.05, .05)
    return layer


class Lstm(nn.Module):
    def __init__(self, kinds, flags):
        super().__init__()
        self.rows = rows(kinds, flags.width)
        self.lstm = nn.LSTM(flags.width, flags.units, batch_first=True)
        nn.init.xavier_uniform_(self.lstm.weight_ih_l0)
        nn.init.orthogonal_(self.lstm.weight_hh_l0)
        with torch.no_grad():
            self.lstm.bias_ih_l0.zero_()
            self.lstm.bias_hh_l0.zero_()
            self.lstm.bias_ih_l0[flags.units:2 * flags.units] = 1
        self.last = dense(flags.units, kinds)

    def forward(self, x):
        return self.last(self.lstm(self.rows(x))[0])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.seen = nn.LayerNorm(width, eps=1e-3)
        self.parts = dense(width, 3 * width)
        self.attended = dense(width, width)
        # Keras's kernels are [width, heads, width of a head] and the reverse:
        # all but two axes are a window, of which each place counts.
        uniform(self.parts, width * heads + width * (width // heads))
        uniform(self.attended, width + width * heads)
        self.normal = nn.LayerNorm(width, eps=1e-3)
        self.hidden = dense(width, 4 * width)
        self.network = dense(4 * width, width)

    def forward(self, x):
        n, steps, width = x.shape
        q, k, v = self.parts(self.seen(x)).view(
            n, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attended(y.transpose(1, 2).reshape(n, steps, width))
        return x + self.network(F.gelu(self.hidden(self.normal(x))))


class Transformer(nn.Module):
    def __init__(self, kinds, flags):
        super().__init__()
        self.rows = rows(kinds, flags.width)
        self.places = nn.Parameter(torch.empty(flags.steps, flags.width))
        nn.init.xavier_uniform_(self.places)
        self.blocks = nn.Sequential(*[Block(flags.width, flags.heads)
                                      for _ in range(flags.blocks)])
        self.normal = nn.LayerNorm(flags.width, eps=1e-3)
        self.last = dense(flags.width, kinds)

    def forward(self, x):
        return self.last(self.normal(self.blocks(self.rows(x) + self.places)))


def loss_of(model, x, y):
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--text')
    parser.add_argument('--model', default='lstm')
    parser.add_argument('--learning_rate', type=float, default=.002)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--compile', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    for name, default in [('steps', 64), ('batch', 32), ('width', 128),
                          ('units', 256), ('blocks', 4), ('heads', 4),
                          ('iterations', 1000), ('report', 100)]:
        parser.add_argument('--' + name, type=int, default=default)
    return parser.parse_args()


def main():
    flags = parse()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(flags.seed)
    data = open(flags.text, 'rb').read()
    number = {c: i for i, c in enumerate(sorted(set(data)))}
    text = torch.tensor([number[c] for c in data])
    trained = len(data) * 9 // 10
    kind = {'lstm': Lstm, 'transformer': Transformer}[flags.model]
    model = kind(len(number), flags)
    call = torch.compile(model) if flags.compile else model
    adam = torch.optim.Adam(model.parameters(), lr=flags.learning_rate,
                            eps=1e-7, fused=True)
    losses, times = [], []
    for i in range(flags.iterations):
        begin = time.perf_counter()
        x, y = windows_of(text, 0, trained, i * flags.batch, flags.batch,
                          flags.steps)
        adam.zero_grad(set_to_none=True)
        loss = loss_of(call, x, y)
        loss.backward()
        adam.step()
        losses.append(loss.item())
        times.append(1000 * (time.perf_counter() - begin))
        if (i + 1) % flags.report == 0:
            print('iteration %d: loss %.4f, %.2f ms' % (
                i + 1, statistics.fmean(losses), statistics.median(times)),
                flush=True)
            losses, times = [], []
    with torch.no_grad():
        rest = [loss_of(model, *windows_of(text, trained, len(data),
                                           i * flags.batch, flags.batch,
                                           flags.steps)).item()
                for i in range(20)]
    assert not math.isnan(sum(rest))
    print('loss of the rest of the text: %.4f' % statistics.fmean(rest))


main()
