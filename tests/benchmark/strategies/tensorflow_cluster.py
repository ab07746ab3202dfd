"""One task of a cluster under ParameterServerStrategy: a ps, a worker, or the
coordinator, which trains when told.

The coordinator reads orders, lines with a number of steps, and answers each
with its elapsed seconds. Variables lie on the ps, each worker's steps are
scheduled many at a time, as the strategy's guide advises, and updates are
TensorFlow's own fused operations, which run on the ps and take less time than
Keras's optimizers. A batch's ids are made distinct before rows are fetched, so
that rows and gradients travel once; a table is divided among the ps.
"""

import argparse
import gzip
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

STEPS_AT_A_TIME = 50


def read_idx(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def images_of(folder):
    images = read_idx(folder / "train-images-idx3-ubyte.gz", 16)
    labels = read_idx(folder / "train-labels-idx1-ubyte.gz", 8)
    return images.reshape(-1, 784), labels.astype(np.int32)


def clicks_of(folder):
    """Returns ids in Criteo's format, each field's in a range of its own."""
    labels, rows = [], []
    with open(folder / "clicks.txt") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            labels.append(float(fields[0]))
            rows.append([int(field, 16) for field in fields[14:]])
    return np.array(rows, np.int64), np.array(labels, np.float32)


def glorot(rows, columns):
    limit = (6 / (rows + columns)) ** .5
    return tf.random.uniform((rows, columns), -limit, limit)


class Perceptron:
    """Dense layers, Adam."""

    def __init__(self, *sizes):
        self.sizes = sizes

    data = staticmethod(images_of)

    def build(self, strategy):
        self.variables = []
        for rows, columns in zip(self.sizes, self.sizes[1:]):
            self.variables.append(tf.Variable(glorot(rows, columns)))
            self.variables.append(tf.Variable(tf.zeros(columns)))
        self.slots = []
        for variable in self.variables:
            with strategy.extended.colocate_vars_with(variable):
                self.slots.append([tf.Variable(tf.zeros(variable.shape))
                                   for _ in range(2)])

    def step(self, batch, steps_before):
        images, labels = batch
        values = [variable.read_value() for variable in self.variables]
        with tf.GradientTape() as tape:
            tape.watch(values)
            x = tf.cast(images, tf.float32) / 255
            for kernel, bias in zip(values[:-2:2], values[1:-2:2]):
                x = tf.nn.relu(tf.matmul(x, kernel) + bias)
            logits = tf.matmul(x, values[-2]) + values[-1]
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        time_step = tf.cast(steps_before + 1, tf.float32)
        for variable, (m, v), gradient in zip(
                self.variables, self.slots, tape.gradient(loss, values)):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=m.handle, v=v.handle,
                beta1_power=.9 ** time_step, beta2_power=.999 ** time_step,
                lr=.001, beta1=.9, beta2=.999, epsilon=1e-7, grad=gradient)
        return loss


class Clicks:
    """A table of rows of 16 and one dense unit, Adagrad."""

    FIELDS = 26
    IDS = 20000
    WIDTH = 16

    data = staticmethod(clicks_of)

    def build(self, strategy):
        shards = max(1, strategy._num_ps)  # pylint: disable=protected-access
        rows = self.FIELDS * self.IDS
        self.rows_of_shard = -(-rows // shards)
        self.tables = [tf.Variable(tf.random.normal(
            (self.rows_of_shard, self.WIDTH), stddev=.01))
                       for _ in range(shards)]
        self.dense = [tf.Variable(glorot(self.FIELDS * self.WIDTH, 1)),
                      tf.Variable(tf.zeros(1))]
        self.sums = {}
        for variable in self.tables + self.dense:
            with strategy.extended.colocate_vars_with(variable):
                self.sums[id(variable)] = tf.Variable(
                    tf.fill(variable.shape, .1))

    def step(self, batch, _):
        ids, labels = batch
        ids += tf.range(self.FIELDS, dtype=tf.int64) * self.IDS
        distinct, places = tf.unique(tf.reshape(ids, [-1]))
        if len(self.tables) == 1:
            ids_of, order = [distinct], [tf.range(tf.size(distinct))]
        else:
            shard_of = tf.cast(distinct // self.rows_of_shard, tf.int32)
            count = len(self.tables)
            ids_of = tf.dynamic_partition(
                distinct % self.rows_of_shard, shard_of, count)
            order = tf.dynamic_partition(
                tf.range(tf.size(distinct)), shard_of, count)
        rows = [tf.raw_ops.ResourceGather(
            resource=table.handle, indices=ids_of_table, dtype=tf.float32)
                for table, ids_of_table in zip(self.tables, ids_of)]
        dense = [variable.read_value() for variable in self.dense]
        with tf.GradientTape() as tape:
            tape.watch([rows, dense])
            table = tf.dynamic_stitch(order, rows)
            embedded = tf.reshape(tf.gather(table, places),
                                  [-1, self.FIELDS * self.WIDTH])
            logits = tf.squeeze(tf.matmul(embedded, dense[0]) + dense[1], 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
                labels, logits))
        of_rows, of_dense = tape.gradient(loss, [rows, dense])
        for table, ids_of_table, gradient in zip(self.tables, ids_of, of_rows):
            tf.raw_ops.ResourceSparseApplyAdagradV2(
                var=table.handle, accum=self.sums[id(table)].handle, lr=.01,
                epsilon=1e-7, grad=tf.convert_to_tensor(gradient),
                indices=ids_of_table)
        for variable, gradient in zip(self.dense, of_dense):
            tf.raw_ops.ResourceApplyAdagradV2(
                var=variable.handle, accum=self.sums[id(variable)].handle,
                lr=.01, epsilon=1e-7, grad=gradient)
        return loss


MODELS = {
    "mlp": lambda: Perceptron(784, 512, 10),
    "large_mlp": lambda: Perceptron(784, 2048, 2048, 10),
    "sparse": Clicks,
}


class Coordinator:

    def __init__(self, options, resolver):
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(
            strategy)
        self.workers = resolver.cluster_spec().num_tasks("worker")
        with strategy.scope():
            self.model = MODELS[options.model]()
            self.model.build(strategy)
        folder = pathlib.Path(options.data_dir)
        model, batch = self.model, options.batch

        def dataset():
            xs, ys = model.data(folder)
            data = tf.data.Dataset.from_tensor_slices((xs, ys))
            data = data.shuffle(len(ys)).repeat()
            return data.batch(batch, drop_remainder=True).prefetch(2)

        @tf.function
        def train(batches, steps, steps_before):
            loss = 0.
            for i in tf.range(steps):
                loss = model.step(next(batches), steps_before + i)
            return loss

        self.train = train
        self.batches = iter(
            self.coordinator.create_per_worker_dataset(dataset))
        self.steps = 0

    def measured(self, steps):
        begin = time.perf_counter()
        left = steps
        loss = None
        while left > 0:
            some = min(left, STEPS_AT_A_TIME)
            loss = self.coordinator.schedule(
                self.train, args=(self.batches, tf.constant(some),
                                  tf.constant(self.steps)))
            self.steps += some
            left -= some
        self.coordinator.join()
        seconds = time.perf_counter() - begin
        print(f"loss {float(loss.fetch())}", file=sys.stderr)
        return seconds


def serve(role, index, threads, resolver):
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        # A worker whose only thread waits for a ps would wait for ever.
        inter_op_parallelism_threads=max(threads, 2) if threads else 0)
    tf.distribute.Server(resolver.cluster_spec(), job_name=role,
                         task_index=index, config=config,
                         protocol="grpc").join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=0,
                        help="of an operation; 0: TensorFlow chooses")
    options = parser.parse_args()
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    if task["type"] != "chief":
        serve(task["type"], task["index"], options.threads, resolver)
    coordinator = Coordinator(options, resolver)
    print(tf.__version__, flush=True)
    for order in sys.stdin:
        print(coordinator.measured(int(order)), flush=True)


if __name__ == "__main__":
    main()
