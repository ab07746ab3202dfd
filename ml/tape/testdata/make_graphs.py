"""Prints random graphs of the tape's operations, differentiated by PyTorch.

  python3 make_graphs.py COUNT SEED > graphs.jsonl

Each line is a graph: its inputs (float32 values or int64), operations, which
are kinds of ml/tape/kinds.h with inputs by their numbers (inputs first, then
results) and attributes, and targets. Then, in float64: the targets' values, the
gradients of the sum of the targets times `weights` by the float inputs, and the
gradients of the sum of those times `second_weights`. `errors` says how far each
of these is from what PyTorch computes in float32.

Values stay away from where a kind has no derivative, so that rounding does not
decide which one is taken.
"""

import json
import math
import random
import sys

import torch

MARGIN = 0.02  # distance from where a kind has no derivative
MOST = 20.0  # largest value
MOST_ELEMENTS = 20


def axes_of(attributes):
    return tuple(attributes['axes'])


def segment_sum(x, ids, attributes):
    rest = x.shape[ids.dim():]
    rows = x.reshape(ids.numel(), math.prod(rest))
    flat = ids.reshape(-1)
    kept = flat >= 0
    out = torch.zeros((attributes['count'], rows.shape[1]), dtype=x.dtype)
    return out.index_add(0, flat[kept], rows[kept]).reshape(
        (attributes['count'],) + tuple(rest))


def one_hot(ids, attributes):
    places = torch.arange(attributes['count'])
    return torch.where(ids.unsqueeze(-1) == places, attributes['high'],
                       attributes['low'])


def pad(x, attributes):
    paddings = []
    for size, begin, whole in reversed(
            list(zip(x.shape, attributes['begin'], attributes['shape']))):
        paddings += [begin, whole - begin - size]
    return torch.nn.functional.pad(x, paddings)


def sliced(x, attributes):
    return x[tuple(slice(begin, begin + size) for begin, size in zip(
        attributes['begin'], attributes['shape']))]


def matmul(a, b, attributes):
    if attributes['transpose_a']:
        a = a.transpose(-1, -2)
    if attributes['transpose_b']:
        b = b.transpose(-1, -2)
    return a @ b


UNARY = {
    'negate': torch.neg, 'exp': torch.exp, 'log': torch.log,
    'log1p': torch.log1p, 'sqrt': torch.sqrt, 'square': torch.square,
    'abs': torch.abs, 'sign': torch.sign, 'tanh': torch.tanh,
    'sigmoid': torch.sigmoid, 'relu': torch.relu,
    'softplus': lambda x: torch.logaddexp(x, torch.zeros_like(x)),
}
BINARY = {
    'add': torch.add, 'subtract': torch.sub, 'multiply': torch.mul,
    'divide': torch.div, 'maximum': torch.maximum, 'minimum': torch.minimum,
}
COMPARISONS = {
    'equal': torch.eq, 'not_equal': torch.ne, 'greater': torch.gt,
    'greater_equal': torch.ge, 'less': torch.lt, 'less_equal': torch.le,
}
OTHERS = {
    'power': lambda x, a: torch.pow(x, a['low']),
    'clip_by_value': lambda x, a: torch.clamp(x, a['low'], a['high']),
    'where': lambda c, x, y, a: torch.where(c != 0, x, y),
    'broadcast_to': lambda x, a: x.broadcast_to(a['shape']),
    'reduce_sum': lambda x, a: x.sum(axes_of(a), a['keep_dims']),
    'reduce_max': lambda x, a: x.amax(axes_of(a), a['keep_dims']),
    'reduce_min': lambda x, a: x.amin(axes_of(a), a['keep_dims']),
    'argmax': lambda x, a: x.argmax(a['axes'][0], a['keep_dims']),
    'matmul': matmul,
    'softmax': lambda x, a: torch.softmax(x, -1),
    'log_softmax': lambda x, a: torch.log_softmax(x, -1),
    'reshape': lambda x, a: x.reshape(a['shape']),
    'transpose': lambda x, a: x.permute(a['axes']),
    'slice': sliced,
    'pad': pad,
    'gather': lambda x, ids, a: x[ids],
    'segment_sum': segment_sum,
    'one_hot': one_hot,
}


def apply(operation, inputs, dtype):
    kind, attributes = operation['kind'], operation['attributes']
    if kind in UNARY:
        return UNARY[kind](*inputs)
    if kind in BINARY:
        return BINARY[kind](*inputs)
    if kind in COMPARISONS:
        return COMPARISONS[kind](*inputs).to(dtype)
    if kind == 'cast':
        return inputs[0].to(
            torch.int64 if attributes['dtype'] == 'int64' else dtype)
    if kind == 'concat':
        return torch.cat(inputs, attributes['axis'])
    result = OTHERS[kind](*inputs, attributes)
    return result.to(dtype) if kind == 'one_hot' else result


def is_away(x):
    """Whether all of x are away from 0."""
    return x.numel() == 0 or bool((x.abs() > MARGIN).all())


class Maker:
    """Makes one graph; values are in float64."""

    def __init__(self, draws):
        self.draws = draws
        self.inputs = []
        self.operations = []
        self.values = []  # of inputs and results, as they were made
        self.is_result = []

    def number(self, value, is_result=False):
        self.values.append(value)
        self.is_result.append(is_result)
        return len(self.values) - 1

    def shape(self, least_axes=0, most_axes=3):
        sizes = [1, 2, 3, 4] if self.draws.random() > 0.02 else [0, 1, 2]
        return [self.draws.choice(sizes)
                for _ in range(self.draws.randint(least_axes, most_axes))]

    def exact(self, count, limit):
        """Numbers that float32 and few digits say exactly."""
        return [self.draws.randrange(-256 * limit, 256 * limit + 1) / 256
                for _ in range(count)]

    def add_input(self, shape):
        values = self.exact(math.prod(shape), 2)
        self.inputs.append({'shape': shape, 'values': values})
        return self.number(
            torch.tensor(values, dtype=torch.float64).reshape(shape))

    def floats(self, fits=lambda x: True):
        """A random value that fits, late ones more often; None if none does."""
        found = [i for i, x in enumerate(self.values)
                 if x.is_floating_point() and fits(x)]
        if not found:
            return None
        return found[min(len(found) - 1,
                         int(len(found) * self.draws.random() ** 0.6))]

    def add(self, kind, inputs, **attributes):
        operation = {'kind': kind, 'in': inputs, 'attributes': attributes}
        value = apply(operation, [self.values[i] for i in inputs],
                      torch.float64)
        if value.numel() > MOST_ELEMENTS or value.dim() > 4:
            return None
        if value.is_floating_point() and value.numel() and not (
                value.isfinite().all() and value.abs().max() < MOST):
            return None
        self.operations.append(operation)
        return self.number(value, is_result=True)

    def partner(self, a):
        """A value that broadcasts with value a."""
        def broadcasts(x):
            try:
                torch.broadcast_shapes(x.shape, self.values[a].shape)
                return True
            except RuntimeError:
                return False
        return self.floats(broadcasts)

    def add_ids(self, shape, low, high):
        """Int64 numbers from low to high - 1."""
        count = math.prod(shape)
        values = [self.draws.randrange(low, high) for _ in range(count)]
        self.inputs.append({'shape': shape, 'values': values, 'dtype': 'int64'})
        return self.number(torch.tensor(values, dtype=torch.int64)
                           .reshape(shape))


def make_unary(maker):
    kind = maker.draws.choice(sorted(UNARY))
    fits = {
        'exp': lambda x: x.numel() == 0 or x.max() < 2.5,
        'log': lambda x: x.numel() == 0 or x.min() > 0.2,
        'log1p': lambda x: x.numel() == 0 or x.min() > -0.8,
        'sqrt': lambda x: x.numel() == 0 or x.min() > 0.2,
        'abs': is_away, 'sign': is_away, 'relu': is_away,
    }.get(kind, lambda x: True)
    a = maker.floats(fits)
    if a is not None:
        maker.add(kind, [a])


def make_binary(maker):
    kind = maker.draws.choice(sorted(BINARY))
    a = maker.floats()
    b = maker.partner(a)
    x, y = maker.values[a], maker.values[b]
    if kind == 'divide' and y.numel() and y.abs().min() < 0.3:
        return
    if kind in ('maximum', 'minimum') and not is_away(x - y):
        return
    maker.add(kind, [a, b])


def make_comparison(maker):
    kind = maker.draws.choice(sorted(COMPARISONS))
    a = maker.floats()
    b = a if maker.draws.random() < 0.3 else maker.partner(a)
    if a == b or is_away(maker.values[a] - maker.values[b]):
        maker.add(kind, [a, b])


def make_where(maker):
    c = maker.floats(lambda x: x.numel() == 0 or bool(
        ((x == 0) | (x.abs() > MARGIN)).all()))
    if c is None:
        return
    a = maker.partner(c)
    both = torch.broadcast_shapes(maker.values[c].shape, maker.values[a].shape)

    def broadcasts(x):
        try:
            torch.broadcast_shapes(both, x.shape)
            return True
        except RuntimeError:
            return False
    maker.add('where', [c, a, maker.floats(broadcasts)])


def make_power(maker):
    low = maker.draws.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
    is_whole = low in (0.0, 1.0, 2.0, 3.0)
    a = maker.floats(lambda x: is_away(x) and (
        is_whole or x.numel() == 0 or x.min() > 0.3))
    if a is not None:
        maker.add('power', [a], low=low)


def make_clip(maker):
    low = maker.draws.uniform(-1.5, 0.5)
    low, high = (round(x, 2) for x in (low, low + maker.draws.uniform(0, 2)))
    low, high = torch.tensor([low, high]).tolist()  # of float32
    a = maker.floats(lambda x: is_away(x - low) and is_away(x - high))
    if a is not None:
        maker.add('clip_by_value', [a], low=low, high=high)


def make_cast(maker):
    a = maker.floats(lambda x: x.numel() == 0 or bool(
        ((x - x.round()).abs() > MARGIN).all()))
    if a is not None:
        whole = maker.add('cast', [a], dtype='int64')
        if whole is not None:
            maker.add('cast', [whole], dtype='float32')


def make_broadcast(maker):
    a = maker.floats()
    shape = [maker.draws.randint(1, 3) if size == 1 else size
             for size in maker.values[a].shape]
    while len(shape) < 3 and maker.draws.random() < 0.4:
        shape.insert(0, maker.draws.randint(1, 3))
    maker.add('broadcast_to', [a], shape=shape)


def some_axes(maker, dim):
    return sorted(maker.draws.sample(range(dim), maker.draws.randint(1, dim)))


def make_reduce(maker):
    kind = maker.draws.choice(
        ['reduce_sum', 'reduce_sum', 'reduce_max', 'reduce_min', 'argmax'])
    a = maker.floats(lambda x: x.dim() > 0)
    if a is None:
        return
    x = maker.values[a]
    axes = some_axes(maker, x.dim())
    if kind == 'argmax':
        axes = axes[:1]
    if kind != 'reduce_sum':
        size = math.prod(x.shape[axis] for axis in axes)
        if size == 0:
            return
        kept = [axis for axis in range(x.dim()) if axis not in axes]
        ordered = x.permute(kept + axes).reshape(-1, size).sort(-1).values
        if not is_away(ordered.diff()):
            return
    keep_dims = maker.draws.random() < 0.5
    result = maker.add(kind, [a], axes=axes,
                       keep_dims=keep_dims and kind != 'argmax')
    if kind == 'argmax' and result is not None:
        maker.add('one_hot', [result], count=maker.draws.randint(1, 4),
                  low=0.0, high=1.0)


def make_matmul(maker):
    a = maker.floats(lambda x: x.dim() >= 2)
    if a is None:
        return
    transpose_a = maker.draws.random() < 0.4
    transpose_b = maker.draws.random() < 0.4
    x = maker.values[a]
    inner = x.shape[-2 if transpose_a else -1]

    def fits(y):
        if y.dim() < 2 or y.shape[-1 if transpose_b else -2] != inner:
            return False
        try:
            torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
            return True
        except RuntimeError:
            return False
    b = maker.floats(fits)
    if b is None:
        outer = maker.draws.randint(1, 3)
        b = maker.add_input([outer, inner] if transpose_b else [inner, outer])
    maker.add('matmul', [a, b], transpose_a=transpose_a,
              transpose_b=transpose_b)


def make_softmax(maker):
    a = maker.floats(lambda x: x.dim() > 0 and x.shape[-1] > 0)
    if a is not None:
        maker.add(maker.draws.choice(['softmax', 'log_softmax']), [a])


def make_arranged(maker):
    kind = maker.draws.choice(['reshape', 'transpose', 'slice', 'pad'])
    a = maker.floats(lambda x: x.dim() > 0)
    if a is None:
        return
    shape = list(maker.values[a].shape)
    if kind == 'transpose':
        axes = list(range(len(shape)))
        maker.draws.shuffle(axes)
        maker.add(kind, [a], axes=axes)
    elif kind == 'reshape':
        count = math.prod(shape)
        first = maker.draws.choice([n for n in range(1, count + 1)
                                    if count % n == 0] or [0])
        rest = count // first if first else 3
        maker.add(kind, [a], shape=maker.draws.choice(
            [[count], [first, rest], [first, 1, rest]]))
    elif kind == 'slice':
        begin = [maker.draws.randint(0, size) for size in shape]
        sizes = [maker.draws.randint(min(1, size - at), size - at)
                 for size, at in zip(shape, begin)]
        maker.add(kind, [a], begin=begin, shape=sizes)
    else:
        begin = [maker.draws.randint(0, 1) for _ in shape]
        maker.add(kind, [a], begin=begin, shape=[
            size + at + maker.draws.randint(0, 1)
            for size, at in zip(shape, begin)])


def make_concat(maker):
    a = maker.floats(lambda x: x.dim() > 0)
    if a is None:
        return
    axis = maker.draws.randrange(maker.values[a].dim())

    def other(x):
        return [size for i, size in enumerate(x.shape) if i != axis] + [x.dim()]
    wanted = other(maker.values[a])
    parts = [a] + [
        maker.floats(lambda x: x.dim() > axis and other(x) == wanted)
        for _ in range(maker.draws.randint(0, 2))]
    maker.add('concat', parts, axis=axis)


def make_rows(maker):
    kind = maker.draws.choice(['gather', 'segment_sum', 'one_hot'])
    if kind == 'one_hot':
        ids = maker.add_ids(maker.shape(2), -1, 4)
        maker.add(kind, [ids], count=3, low=-0.5, high=1.5)
        return
    a = maker.floats(lambda x: x.dim() > 0)
    if a is None:
        return
    x = maker.values[a]
    if kind == 'gather':
        if x.shape[0] > 0:
            ids = maker.add_ids(maker.shape(2), 0, x.shape[0])
            maker.add(kind, [a, ids])
    else:
        ids = maker.add_ids(list(x.shape[:maker.draws.randint(0, x.dim())]),
                            -1, 3)
        maker.add(kind, [a, ids], count=3)


# Some kinds fit seldom.
MAKERS = (5 * [make_unary, make_binary, make_reduce, make_arranged] +
          2 * [make_comparison, make_where, make_power, make_matmul, make_rows]
          + [make_clip, make_cast, make_broadcast, make_softmax, make_concat])


def renumber(maker):
    """Numbers inputs first: ids and factors were made between operations.

    Returns the values' numbers as they were made, in the new order."""
    order = sorted(range(len(maker.values)), key=lambda i: maker.is_result[i])
    new = {old: number for number, old in enumerate(order)}
    for operation in maker.operations:
        operation['in'] = [new[i] for i in operation['in']]
    return order


def differentiate(graph, dtype):
    """Values of the targets, gradients, and their gradients."""
    values = []
    sources = []
    for spec in graph['inputs']:
        if spec.get('dtype') == 'int64':
            value = torch.tensor(spec['values'], dtype=torch.int64)
            values.append(value.reshape(spec['shape']))
            continue
        value = torch.tensor(spec['values'], dtype=dtype).reshape(
            spec['shape']).requires_grad_()
        values.append(value)
        sources.append(value)
    for operation in graph['operations']:
        values.append(
            apply(operation, [values[i] for i in operation['in']], dtype))
    targets = [values[i] for i in graph['targets']]

    def gradients(of, weights):
        total = sum((x * torch.tensor(w, dtype=dtype).reshape(x.shape)).sum()
                    for x, w in zip(of, weights))
        if not (torch.is_tensor(total) and total.requires_grad):
            return [torch.zeros_like(x) for x in sources]
        found = torch.autograd.grad(total, sources, create_graph=True,
                                    allow_unused=True)
        return [torch.zeros_like(x) if g is None else g
                for x, g in zip(sources, found)]
    first = gradients(targets, graph['weights'])
    second = gradients(first, graph['second_weights'])
    return [targets, first, second]


def rounded(tensor):
    # One that PyTorch knows to be 0 has no memory until it is copied.
    return [float(f'{x:.7g}')
            for x in tensor.detach().clone().reshape(-1).tolist()]


def draw(draws):
    """A graph with its results; None if rounding has too much of a say."""
    maker = Maker(draws)
    for _ in range(draws.randint(1, 3)):
        maker.add_input(maker.shape(least_axes=draws.choice([0, 1, 1, 2])))
    wanted = draws.randint(2, 12)
    for _ in range(4 * wanted):
        if len(maker.operations) < wanted:
            draws.choice(MAKERS)(maker)
    order = renumber(maker)
    used = {i for operation in maker.operations for i in operation['in']}
    targets = [new for new, old in enumerate(order)
               if maker.is_result[old] and new not in used and
               maker.values[old].is_floating_point()]
    if not targets:
        return None

    graph = {
        'inputs': maker.inputs,
        'operations': maker.operations,
        'targets': targets,
        'weights': [maker.exact(maker.values[order[i]].numel(), 1)
                    for i in targets],
        'second_weights': [maker.exact(math.prod(spec['shape']), 1)
                           for spec in maker.inputs if 'dtype' not in spec],
    }
    exact = differentiate(graph, torch.float64)
    near = differentiate(graph, torch.float32)
    graph['errors'] = []
    for name, results, others in zip(
            ('values', 'gradients', 'second_gradients'), exact, near):
        graph[name] = [rounded(x) for x in results]
        errors = [(x - y.double()).abs().max().item() if x.numel() else 0.0
                  for x, y in zip(results, others)]
        sizes = [x.abs().max().item() if x.numel() else 0.0 for x in results]
        if not all(error < 1e-3 * (1 + size)
                   for error, size in zip(errors, sizes)):
            return None
        graph['errors'].append([float(f'{x:.2g}') for x in errors])
    # Most graphs are curved; where nothing depends on an input is seen soon.
    is_flat = not any(any(g) for g in graph['second_gradients'])
    return None if is_flat and draws.random() < 0.7 else graph


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    draws = random.Random(seed)
    while count > 0:
        graph = draw(draws)
        if graph is not None:
            print(json.dumps(graph, separators=(',', ':')))
            count -= 1


if __name__ == '__main__':
    main()
