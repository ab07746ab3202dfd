"""Writes pytorch_cases.jsonl: what PyTorch makes of every layer, in float64.

  python3 make_pytorch_cases.py > pytorch_cases.jsonl

Run once, with PyTorch 2; the test reads the file. A line is one layer with its
inputs, variables and the gradient of its output, in the project's layouts
(images height, width, channels; kernels height, width, in, out), and what comes
out: the output in training, in evaluation where it is another one, and all
gradients. Inputs are multiples of 1/256, so that float32 has them exactly.
Dropout is not here: it draws other random numbers.
"""

import json

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(4)

ACTIVATIONS = {
    "ACTIVATION_UNSPECIFIED": lambda x: x,
    "RELU": F.relu,
    "SIGMOID": torch.sigmoid,
    "TANH": torch.tanh,
    "GELU": F.gelu,
    "SOFTMAX": lambda x: F.softmax(x, dim=-1),
}


def draw(*shape):
    numbers = torch.randint(-256, 257, shape, generator=generator) / 256
    return numbers.requires_grad_()


def numbers(tensor):
    return [float("%.9g" % x) for x in tensor.detach().flatten().tolist()]


def gradients(tensors):
    return [numbers(torch.zeros_like(t) if t.grad is None else t.grad)
            for t in tensors]


def write(name, layer, inputs, variables, function, evaluation=None,
          untrained=None, rows=None):
    """`function(*inputs, *variables[, rows])` is the layer.

    `untrained`: after it has run, what is subtracted from further variables,
    {name: (value, subtracted)}. `rows`: {"rows", "offsets", "positions",
    "weights"} of a layer that looks ids up.
    """
    tensors = [rows["rows"]] if rows else []
    y = function(*inputs, *variables, *tensors)
    dy = draw(*y.shape).detach()
    y.backward(dy)
    case = {
        "name": name,
        "layer": layer,
        "examples": y.shape[0],
        "inputs": [{"shape": list(x.shape[1:]), "values": numbers(x)}
                   for x in inputs],
        "variables": [numbers(v) for v in variables],
        "y": numbers(y),
        "dy": numbers(dy),
        "dx": gradients(inputs),
        "gradients": gradients(variables),
    }
    for value, subtracted in untrained() if untrained else []:
        case["variables"].append(numbers(value))
        case["gradients"].append(numbers(subtracted))
    if evaluation is not None:
        case["y_evaluation"] = numbers(evaluation())
    if rows:
        case.update(
            offsets=rows["offsets"],
            positions=rows["positions"],
            weights=numbers(rows["weights"]) if "weights" in rows else [],
            ids_per_example=rows.get("ids_per_example", 0),
            width=rows["rows"].shape[1],
            rows=numbers(rows["rows"]),
            row_gradients=gradients([rows["rows"]])[0])
    print(json.dumps(case))


def dense():
    for name, function in ACTIVATIONS.items():
        write("dense " + name, "dense { units: 4 activation: %s }" % name,
              [draw(3, 5)], [draw(5, 4), draw(4)],
              lambda x, kernel, bias: function(x @ kernel + bias))
    write("dense without bias", "dense { units: 4 use_bias: false }",
          [draw(3, 5)], [draw(5, 4)], lambda x, kernel: x @ kernel)


def activations():
    for name, function in ACTIVATIONS.items():
        if name != "ACTIVATION_UNSPECIFIED":
            write("activation " + name, "activation: " + name,
                  [draw(2, 3, 5)], [], function)


def same_padding(size, window, stride):
    """Of one axis: before and after, as TensorFlow pads."""
    missing = max((-(-size // stride) - 1) * stride + window - size, 0)
    return missing // 2, missing - missing // 2


def padded(x, window, stride, padding, value=0.0):
    """x [examples, height, width, channels] with channels second, padded."""
    x = x.permute(0, 3, 1, 2)
    if padding == "VALID":
        return x
    rows = same_padding(x.shape[2], window[0], stride[0])
    columns = same_padding(x.shape[3], window[1], stride[1])
    return F.pad(x, [*columns, *rows], value=value)


def channels_last(x):
    return x.permute(0, 2, 3, 1)


def convolution(x, kernel, bias, stride, padding):
    x = padded(x, kernel.shape[:2], stride, padding)
    y = F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride)
    return channels_last(y)


def conv2d():
    cases = [
        # image, window, filters, stride, padding, bias, activation
        ([5, 5, 2], [3, 3], 3, [1, 1], "VALID", True, "ACTIVATION_UNSPECIFIED"),
        ([6, 4, 2], [3, 3], 2, [2, 2], "SAME", True, "RELU"),
        ([5, 4, 3], [2, 3], 2, [1, 2], "SAME", False, "TANH"),
        ([4, 4, 2], [1, 1], 3, [2, 2], "VALID", False,
         "ACTIVATION_UNSPECIFIED"),
        ([4, 5, 1], [3, 2], 3, [2, 1], "VALID", True, "GELU"),
        ([3, 3, 2], [3, 3], 4, [1, 1], "SAME", True, "SOFTMAX"),
    ]
    for image, window, filters, stride, padding, bias, activation in cases:
        variables = [draw(*window, image[2], filters)]
        if bias:
            variables.append(draw(filters))
        write(
            "conv2d of %s by %s, stride %s, %s, %s" %
            (image, window, stride, padding, activation),
            "conv2d { filters: %d kernel_size: %s stride: %s padding: %s "
            "use_bias: %s activation: %s }" %
            (filters, window, stride, padding, str(bias).lower(), activation),
            [draw(2, *image)], variables,
            lambda x, kernel, bias=None: ACTIVATIONS[activation](convolution(
                x, kernel, bias, stride, padding)))


def max_pooling(x, window, stride, padding):
    x = padded(x, window, stride, padding, value=-float("inf"))
    return channels_last(F.max_pool2d(x, window, stride))


def average_pooling(x, window, stride, padding):
    """The sum of a window over how many of its pixels are the image's."""
    ones = padded(torch.ones_like(x), window, stride, padding)
    x = padded(x, window, stride, padding)
    return channels_last(
        F.avg_pool2d(x, window, stride) / F.avg_pool2d(ones, window, stride))


def pools():
    for kind, function in [("max_pool", max_pooling),
                           ("average_pool", average_pooling)]:
        for image, window, stride, padding in [
            ([4, 4, 2], [2, 2], [2, 2], "VALID"),
            ([5, 4, 3], [3, 2], [2, 1], "VALID"),
            ([5, 6, 2], [3, 3], [2, 2], "SAME"),
        ]:
            write("%s of %s by %s, stride %s, %s" %
                  (kind, image, window, stride, padding),
                  "%s { pool_size: %s stride: %s padding: %s }" %
                  (kind, window, stride, padding), [draw(2, *image)], [],
                  lambda x: function(x, window, stride, padding))
    write("global_average_pool", "global_average_pool {}", [draw(2, 3, 4, 5)],
          [], lambda x: x.mean(dim=(1, 2)))


def batch_normalization():
    for shape in [[6], [3, 2, 4]]:
        for scale, center in [(True, True), (True, False), (False, True)]:
            channels = shape[-1]
            momentum, epsilon = 0.75, 0.01
            x = draw(5, *shape)
            mean = draw(channels).detach()
            variance = draw(channels).detach().abs() + 0.5
            moved = [mean.clone(), variance.clone()]

            def function(x, *variables, training=True, moments=moved):
                left = list(variables)
                gamma = left.pop(0) if scale else None
                beta = left.pop(0) if center else None
                y = F.batch_norm(x.reshape(-1, channels), moments[0],
                                 moments[1], gamma, beta, training,
                                 1 - momentum, epsilon)
                return y.reshape(x.shape)

            variables = [draw(channels) for has in (scale, center) if has]
            write(
                "batch_normalization of %s, scale %s, center %s" %
                (shape, scale, center),
                "batch_normalization { momentum: %g epsilon: %g scale: %s "
                "center: %s }" % (momentum, epsilon, str(scale).lower(),
                                  str(center).lower()), [x], variables,
                function,
                evaluation=lambda: function(x, *variables, training=False,
                                            moments=[mean, variance]),
                untrained=lambda: [(mean, mean - moved[0]),
                                   (variance, variance - moved[1])])


def layer_normalization():
    for shape in [[6], [2, 3, 5]]:
        columns = shape[-1]
        write("layer_normalization of %s" % shape,
              "layer_normalization { epsilon: 0.01 }", [draw(3, *shape)],
              [draw(columns), draw(columns)],
              lambda x, gamma, beta: F.layer_norm(x, [columns], gamma, beta,
                                                  0.01))
    write("layer_normalization without gamma",
          "layer_normalization { scale: false }", [draw(3, 4)], [draw(4)],
          lambda x, beta: F.layer_norm(x, [4], None, beta, 0.001))


def merges():
    write("add", "add {}", [draw(2, 3, 2) for _ in range(3)], [],
          lambda a, b, c: a + b + c)
    write("concatenate, last axis", "concatenate {}",
          [draw(2, 3, 2), draw(2, 3, 1), draw(2, 3, 4)], [],
          lambda *x: torch.cat(x, dim=-1))
    write("concatenate, axis 0", "concatenate { axis: 0 }",
          [draw(2, 3, 2), draw(2, 1, 2)], [], lambda *x: torch.cat(x, dim=1))
    write("pad", "pad { before: [1, 0, 2] after: [0, 1, 1] }",
          [draw(2, 2, 3, 2)], [], lambda x: F.pad(x, [2, 1, 0, 1, 1, 0]))
    write("factorization_machine", "factorization_machine {}",
          [draw(3, 4, 5)], [],
          lambda x: 0.5 * (x.sum(1).square() - x.square().sum(1)).sum(
              dim=1, keepdim=True))


def embeddings():
    ids = [0, 3, 3, 1, 4, 0]
    write("embedding", "embedding { table: 't' }", [], [],
          lambda rows: F.embedding(torch.tensor(ids).reshape(3, 2), rows),
          rows={"rows": draw(5, 3), "offsets": [0, 2, 4, 6],
                "positions": ids, "ids_per_example": 2})
    offsets, positions = [0, 3, 3, 4, 6], [1, 1, 4, 0, 2, 4]
    example = torch.tensor([0, 0, 0, 2, 3, 3])
    weights = draw(6).detach().abs() + 0.25

    def bag(rows, mode, weights=None):
        return F.embedding_bag(torch.tensor(positions), rows,
                               torch.tensor(offsets[:-1]), mode=mode,
                               per_sample_weights=weights)

    plain = {"offsets": offsets, "positions": positions}
    weighted = dict(plain, weights=weights)
    write("embedding_bag, sum", "embedding_bag { table: 't' }", [], [],
          lambda rows: bag(rows, "sum"), rows=dict(plain, rows=draw(5, 3)))
    write("embedding_bag, mean and bias",
          "embedding_bag { table: 't' combiner: MEAN use_bias: true }", [],
          [draw(3)], lambda bias, rows: bag(rows, "mean") + bias,
          rows=dict(plain, rows=draw(5, 3)))
    write("embedding_bag, weighted sum", "embedding_bag { table: 't' }", [],
          [], lambda rows: bag(rows, "sum", weights),
          rows=dict(weighted, rows=draw(5, 3)))
    totals = torch.zeros(4).index_add(0, example, weights)
    totals = torch.where(totals == 0, torch.ones(4), totals)
    write("embedding_bag, weighted mean",
          "embedding_bag { table: 't' combiner: MEAN }", [], [],
          lambda rows: bag(rows, "sum", weights) / totals[:, None],
          rows=dict(weighted, rows=draw(5, 3)))


dense()
activations()
conv2d()
pools()
batch_normalization()
layer_normalization()
merges()
embeddings()
