"""Writes tensorflow_cases.jsonl, what TensorFlow's optimizers do, to stdout.

  pip install tensorflow-cpu==2.13.1
  pip install --no-deps tensorflow-addons==0.21.0 typeguard==2.13.3
  python3 tensorflow_cases.py > tensorflow_cases.jsonl

One case a line: 6 gradients applied to a variable of 4 rows of 2 by an
optimizer of tf.keras.optimizers.legacy (optimizer_v2), in float64. All inputs
are exact in float32.
"""

import json

import numpy as np
import tensorflow as tf
from tensorflow_addons.optimizers import LazyAdam

OPTIMIZERS = tf.keras.optimizers.legacy
SCHEDULES = tf.keras.optimizers.schedules

INITIAL = [[1., -2.], [.5, .25], [-.75, 3.], [0., 4.]]
# Duplicates, and a step that touches no row.
INDICES = [[2, 0, 2], [1], [3, 1], [0, 0, 0, 3], [], [2, 1]]

_random = np.random.RandomState(3)


def gradient(rows):
  return np.round(_random.randn(rows, 2) * .5 * 64) / 64


DENSE = [(None, gradient(len(INITIAL))) for _ in INDICES]
SPARSE = [(rows, gradient(len(rows))) for rows in INDICES]

# Our names of Keras's optimizers, and short names of its hyperparameters.
MESSAGES = {
    'SGD': 'sgd', 'Adagrad': 'adagrad', 'Adam': 'adam',
    'LazyAdam': 'lazy_adam', 'RMSprop': 'rmsprop', 'Adadelta': 'adadelta',
    'Adamax': 'adamax', 'Nadam': 'nadam', 'Ftrl': 'ftrl',
}
HYPERPARAMETERS = {
    'lr': 'learning_rate',
    'init': 'initial_accumulator_value',
    'l1': 'l1_regularization_strength',
    'l2': 'l2_regularization_strength',
    'shrinkage': 'l2_shrinkage_regularization_strength',
    'power': 'learning_rate_power',
}


def schedule_of(name, lr):
  """Keras's class and its arguments but for the initial rate."""
  return {
      'exp': ('ExponentialDecay', {'decay_steps': 2, 'decay_rate': .5}),
      'expstair': ('ExponentialDecay',
                   {'decay_steps': 2, 'decay_rate': .5, 'staircase': True}),
      'piecewise': ('PiecewiseConstantDecay',
                    {'boundaries': [1, 3], 'values': [lr, lr * .5, lr * .25]}),
      'poly': ('PolynomialDecay', {'decay_steps': 4,
                                   'end_learning_rate': lr * .125,
                                   'power': 2.}),
      'polycycle': ('PolynomialDecay', {'decay_steps': 2,
                                        'end_learning_rate': lr * .125,
                                        'cycle': True}),
      'inv': ('InverseTimeDecay', {'decay_steps': 2, 'decay_rate': .5}),
      'cos': ('CosineDecay', {'decay_steps': 4, 'alpha': .25}),
  }[name]


def make_schedule(name, lr):
  kind, arguments = schedule_of(name, lr)
  make = getattr(SCHEDULES, kind)
  if kind == 'PiecewiseConstantDecay':
    return make(**arguments)
  return make(lr, **arguments)


def make_optimizer(name, hyper, schedule):
  arguments = {HYPERPARAMETERS.get(k, k): v for k, v in hyper.items()}
  if schedule:
    arguments['learning_rate'] = make_schedule(schedule, hyper['lr'])
  if name == 'LazyAdam':
    return LazyAdam(**arguments)
  return getattr(OPTIMIZERS, name)(**arguments)


def fields(values):
  return ' '.join(f'{k}: {json.dumps(v)}' for k, v in values.items())


def textproto(name, hyper, schedule):
  """The job.Optimizer that is to do the same."""
  named = {HYPERPARAMETERS.get(k, k): v for k, v in hyper.items()}
  text = f'{MESSAGES[name]} {{ {fields(named)} }}'
  if schedule:
    kind, arguments = schedule_of(schedule, hyper['lr'])
    message = ''.join('_' + c.lower() if c.isupper() else c for c in kind)[1:]
    body = fields(arguments)
    if 'boundaries' in arguments:
      body = ' '.join([f'boundary: {b}' for b in arguments['boundaries']] +
                      [f'value: {v}' for v in arguments['values'][1:]])
    text += f' learning_rate_schedule {{ {message} {{ {body} }} }}'
  return text.replace('{  }', '{}')


def run(optimizer, gradients):
  """The variable after each step, and the slots after the last one."""
  variable = tf.Variable(np.array(INITIAL))
  trajectory = []
  for rows, values in gradients:
    g = tf.constant(values)
    if rows is not None:
      g = tf.IndexedSlices(g, tf.constant(rows, tf.int64),
                           tf.constant(variable.shape.as_list(), tf.int64))
    optimizer.apply_gradients([(g, variable)])
    trajectory.append(rounded(variable))
  slots = {name: rounded(optimizer.get_slot(variable, name))
           for name in optimizer.get_slot_names()}
  return trajectory, slots


def rounded(variable):
  return [[float(f'{x:.12g}') for x in row] for row in variable.numpy()]


def case(name, hyper, schedule, mode):
  gradients = DENSE if mode == 'dense' else SPARSE
  trajectory, slots = run(make_optimizer(name, hyper, schedule), gradients)
  basis = f'TensorFlow {tf.__version__} tf.keras.optimizers.legacy, float64'
  if name == 'LazyAdam':
    basis = f'TensorFlow {tf.__version__}, tensorflow-addons 0.21.0, float64'
  hypers = ''.join(f'_{k}{v}' for k, v in hyper.items())
  scheduled = '_' + schedule if schedule else ''
  return {
      'name': f'{name}{hypers}{scheduled}_{mode}'.lower(),
      'optimizer': name,
      'hyper': hyper,
      'textproto': textproto(name, hyper, schedule),
      'mode': mode,
      'init': INITIAL,
      'gradients': [
          {'values': values.tolist()} if rows is None else
          {'indices': rows, 'values': values.tolist()}
          for rows, values in gradients
      ],
      'var_after_each_step': trajectory,
      'slots': slots,
      'iterations': len(gradients),
      'basis': basis,
  }


# Dense and sparse each; with the first schedule dense, the second sparse.
VARIANTS = [
    ('SGD', {'lr': .5}, ['exp']),
    ('SGD', {'lr': .25, 'momentum': .9}, ['expstair', 'piecewise']),
    ('SGD', {'lr': .25, 'momentum': .9, 'nesterov': True}, ['inv', 'cos']),
    ('Adagrad', {}, []),
    ('Adagrad', {'lr': .5, 'init': .25, 'epsilon': 1e-4},
     ['poly', 'polycycle']),
    ('Adam', {}, []),
    ('Adam', {'lr': .125, 'beta_1': .75, 'beta_2': .9375, 'epsilon': 1e-4},
     ['exp', 'piecewise']),
    ('Adam', {'lr': .125, 'beta_1': .75, 'beta_2': .5, 'amsgrad': True}, []),
    ('LazyAdam', {}, []),
    ('LazyAdam', {'lr': .125, 'beta_1': .75, 'beta_2': .9375, 'epsilon': 1e-4},
     ['cos', 'exp']),
    ('RMSprop', {}, []),
    ('RMSprop', {'lr': .125, 'rho': .75, 'epsilon': 1e-3}, ['inv', 'exp']),
    ('RMSprop', {'lr': .125, 'rho': .75, 'centered': True}, []),
    ('RMSprop', {'lr': .125, 'momentum': .5}, ['poly', 'exp']),
    ('RMSprop', {'lr': .125, 'rho': .75, 'momentum': .5, 'centered': True,
                 'epsilon': 1e-3}, []),
    ('Adadelta', {}, []),
    ('Adadelta', {'lr': 1., 'rho': .75, 'epsilon': 1e-3}, ['exp', 'cos']),
    ('Adamax', {}, []),
    ('Adamax', {'lr': .125, 'beta_1': .75, 'beta_2': .9375, 'epsilon': 1e-3},
     ['exp', 'piecewise']),
    ('Nadam', {}, []),
    ('Nadam', {'lr': .125, 'beta_1': .75, 'beta_2': .9375, 'epsilon': 1e-3},
     []),
    ('Ftrl', {}, []),
    ('Ftrl', {'lr': .5, 'l1': .125, 'init': .25}, ['exp', 'inv']),
    ('Ftrl', {'lr': .5, 'l2': .25}, []),
    ('Ftrl', {'lr': .5, 'shrinkage': .125}, ['poly', 'cos']),
    ('Ftrl', {'lr': .5, 'beta': .5}, ['exp', 'exp']),
    ('Ftrl', {'lr': .5, 'power': -.75}, []),
    ('Ftrl', {'lr': .5, 'power': 0.}, []),
    ('Ftrl', {'lr': .5, 'l1': .0625, 'l2': .25, 'shrinkage': .125, 'beta': .5,
              'init': .25, 'power': -.625}, ['piecewise', 'polycycle']),
]


def main():
  for name, hyper, schedules in VARIANTS:
    runs = [(None, 'dense'), (None, 'sparse')]
    runs += zip(schedules, ['dense', 'sparse'])
    for schedule, mode in runs:
      line = case(name, hyper, schedule, mode)
      print(json.dumps(line, separators=(',', ':')))


if __name__ == '__main__':
  main()
