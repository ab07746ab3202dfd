"""Prints the cases of pytorch_cases.jsonl: losses and gradients by PyTorch.

  python3 make_pytorch_cases.py > pytorch_cases.jsonl

Each line has a job's loss as textproto, [examples, outputs] outputs, labels,
perhaps weights, and in float64: the losses of the examples times their weights,
and the gradient of their mean (which divides by the number of examples) by the
outputs.
"""

import json

import torch
import torch.nn.functional as F

EXAMPLES = 4


def binary(outputs, labels, smoothing):
    smooth = labels * (1 - smoothing) + smoothing / 2
    losses = F.binary_cross_entropy_with_logits(
        outputs, smooth, reduction='none')
    return losses.mean(dim=1)


def categorical(outputs, labels, smoothing):
    return F.cross_entropy(
        outputs, labels, reduction='none', label_smoothing=smoothing)


def sparse(outputs, labels, smoothing):
    return categorical(outputs, labels.flatten().long(), smoothing)


def squared(outputs, labels, _):
    return F.mse_loss(outputs, labels, reduction='none').mean(dim=1)


def case(kind, compute, outputs, labels, smoothing, weights):
    z = outputs.clone().requires_grad_()
    losses = compute(z, labels, smoothing) * weights
    losses.mean().backward()
    option = f'label_smoothing: {smoothing}' if smoothing else ''
    print(json.dumps({
        'loss': f'{kind} {{ {option} }}',
        'outputs': outputs.tolist(),
        'labels': labels.tolist(),
        'weights': weights.tolist(),
        'losses': losses.tolist(),
        'gradient': z.grad.tolist(),
    }))


def float32(tensor):
    """Values that the tests read without rounding them."""
    return tensor.float().double()


def main():
    generator = torch.Generator().manual_seed(4)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    for width in (1, 3, 20):
        outputs = float32(3 * normal(EXAMPLES, width))
        weights = float32(normal(EXAMPLES).abs())
        ones = torch.ones_like(weights)
        case('mean_squared_error', squared, outputs,
             float32(normal(EXAMPLES, width)), 0, weights)
        probabilities = float32(torch.sigmoid(normal(EXAMPLES, width)))
        for smoothing in (0, 0.125):
            case('binary_crossentropy', binary, outputs, probabilities,
                 smoothing, weights)
            case('binary_crossentropy', binary, outputs,
                 probabilities.round(), smoothing, ones)
            if width == 1:
                continue
            case('categorical_crossentropy', categorical, outputs,
                 float32(torch.softmax(normal(EXAMPLES, width), dim=1)),
                 smoothing, weights)
            classes = torch.randint(
                width, (EXAMPLES, 1), generator=generator).double()
            case('sparse_categorical_crossentropy', sparse, outputs, classes,
                 smoothing, weights)
            case('sparse_categorical_crossentropy', sparse, outputs, classes,
                 smoothing, ones)


if __name__ == '__main__':
    main()
