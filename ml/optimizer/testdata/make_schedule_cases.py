"""Prints the cases of schedule_cases.jsonl: rates with a warm-up, by PyTorch's
and Keras's schedules.

  python3 make_schedule_cases.py > schedule_cases.jsonl

Needs PyTorch 2 and Keras 3.15. A line has the rate, the
job's schedule as textproto, and the rate of each update from the first.

- To a constant rate: LinearLR, from start / rate, and Keras's CosineDecay with
  warmup_target up to the warm-up's end.
- From 0 to a decay that goes on meanwhile: LinearLR together with the decay, as
  each PyTorch schedule multiplies the rate. LinearLR does not begin with 0, but
  with next to nothing.
- Without a warm-up: CosineDecay, to see that the warm-up leaves it alone.
"""

import json
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch

keras.config.set_floatx("float64")
STEPS = 12
NOTHING = 1e-300


def write(rate, schedule, rates):
    print(json.dumps({"rate": rate, "schedule": schedule, "rates": rates}))


def rates_of(rate, *schedules):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
    parts = [schedule(optimizer) for schedule in schedules]
    rates = []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for part in parts:
            part.step()
    return rates


def linear(start, steps):
    return lambda optimizer: torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=start, total_iters=steps)


for steps in (1, 4, 20):
    for start in (0.05, 0.2):
        write(0.2, "warmup { steps: %d start: %g }" % (steps, start),
              rates_of(0.2, linear(start / 0.2, steps)))
    write(0.2, "warmup { steps: %d }" % steps, rates_of(0.2, linear(NOTHING, steps)))
    write(0.2,
          "warmup { steps: %d } exponential_decay { decay_steps: 1 "
          "decay_rate: 0.75 }" % steps,
          rates_of(0.2, linear(NOTHING, steps),
                   lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.75)))
    write(0.2,
          "warmup { steps: %d } exponential_decay { decay_steps: 3 "
          "decay_rate: 0.5 staircase: true }" % steps,
          rates_of(0.2, linear(NOTHING, steps),
                   lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5)))
    write(0.2,
          "warmup { steps: %d } cosine_decay { decay_steps: 30 }" % steps,
          rates_of(0.2, linear(NOTHING, steps),
                   lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 30)))
    write(0.2,
          "warmup { steps: %d } polynomial_decay { decay_steps: 9 "
          "end_learning_rate: 0 power: 2 }" % steps,
          rates_of(0.2, linear(NOTHING, steps),
                   lambda o: torch.optim.lr_scheduler.PolynomialLR(o, 9, 2.0)))
for start in (0.0, 0.05):
    schedule = keras.optimizers.schedules.CosineDecay(
        start, decay_steps=100, warmup_target=0.2, warmup_steps=STEPS)
    write(0.2, "warmup { steps: %d start: %g }" % (STEPS, start),
          [float(schedule(step)) for step in range(STEPS)])
schedule = keras.optimizers.schedules.CosineDecay(0.2, decay_steps=9, alpha=0.125)
write(0.2, "cosine_decay { decay_steps: 9 alpha: 0.125 }",
      [float(schedule(step)) for step in range(STEPS)])
