"""Trains a model of docs/examples under MultiWorkerMirroredStrategy, when told.

One worker of those that TF_CONFIG names. Reads orders, lines with a number of
steps, and answers each with its elapsed seconds and the processor seconds that
the process took. Model, optimizer, data and batch are those of the example; the
loop is that of TensorFlow's tutorial "Custom training loop with Keras and
MultiWorkerMirroredStrategy", with all steps of an order in one tf.function,
which is the fastest way.
"""

import argparse
import gzip
import os
import pathlib
import resource
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers

MEAN = (.4914, .4822, .4465)
STDDEV = (.2470, .2435, .2616)


def read_idx(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def mnist(folder):
    images = read_idx(folder / "train-images-idx3-ubyte.gz", 16)
    labels = read_idx(folder / "train-labels-idx1-ubyte.gz", 8)
    return images.reshape(-1, 28, 28, 1), labels.astype(np.int32)


def cifar(folder):
    records = np.concatenate([
        np.fromfile(path, np.uint8).reshape(-1, 3073)
        for path in sorted(folder.glob("data_batch_*.bin"))])
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, 0].astype(np.int32)


def scaled(images):
    return tf.cast(images, tf.float32) / 255


def augmented(images):
    """Crops and flips each image of a batch by itself, in few operations."""
    count = tf.shape(images)[0]
    padded = tf.pad(scaled(images), ((0, 0), (4, 4), (4, 4), (0, 0)))
    first = tf.random.uniform((2, count, 1), 0, 9, tf.int32)
    rows = first[0] + tf.range(32)
    columns = first[1] + tf.range(32)
    flips = tf.random.uniform((count, 1), 0, 2, tf.int32)
    columns = tf.where(flips == 1, columns[:, ::-1], columns)
    cropped = tf.gather(padded, rows, axis=1, batch_dims=1)
    cropped = tf.gather(cropped, columns, axis=2, batch_dims=1)
    return (cropped - MEAN) / STDDEV


def mlp():
    return keras.Sequential([
        keras.Input((28, 28, 1)), layers.Flatten(),
        layers.Dense(512, "relu"), layers.Dense(10)])


def lenet():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(6, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(2), layers.Conv2D(16, 5, activation="relu"),
        layers.MaxPooling2D(2), layers.Flatten(),
        layers.Dense(120, "relu"), layers.Dense(84, "relu"),
        layers.Dense(10)])


def resnet56():
    weights = {"kernel_initializer": "he_normal",
               "kernel_regularizer": keras.regularizers.L2(5e-5)}

    def convolution(x, filters, stride=1):
        return layers.Conv2D(filters, 3, stride, "same", use_bias=False,
                             **weights)(x)

    def norm(x, gamma="ones"):
        return layers.BatchNormalization(
            momentum=.9, gamma_initializer=gamma)(x)

    inputs = keras.Input((32, 32, 3))
    x = layers.ReLU()(norm(convolution(inputs, 16)))
    for filters in (16, 32, 64):
        for block in range(9):
            shortcut = x
            stride = 1
            if block == 0 and filters > 16:
                stride = 2
                shortcut = layers.AveragePooling2D(1, 2)(x)
                # Channels are padded where ZeroPadding2D pads columns.
                shortcut = layers.Permute((1, 3, 2))(shortcut)
                shortcut = layers.ZeroPadding2D(
                    ((0, 0), (filters // 4, filters // 4)))(shortcut)
                shortcut = layers.Permute((1, 3, 2))(shortcut)
            x = layers.ReLU()(norm(convolution(x, filters, stride)))
            x = norm(convolution(x, filters), "zeros")
            x = layers.ReLU()(layers.Add()([x, shortcut]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10, **weights)(x))


def adam(steps):
    return keras.optimizers.Adam(
        keras.optimizers.schedules.PolynomialDecay(.002, steps, .0001))


def momentum(steps):
    return keras.optimizers.SGD(
        keras.optimizers.schedules.CosineDecay(.1, steps), momentum=.9)


# Each model: its data, what is done with images, its layers, its optimizer with
# the length of the schedule. compare has the batches.
MODELS = {
    "mlp": (mnist, scaled, mlp, lambda: adam(2344)),
    "lenet": (mnist, scaled, lenet, lambda: adam(4690)),
    "resnet56": (cifar, augmented, resnet56, lambda: momentum(1172)),
}


class Training:

    def __init__(self, options):
        load, prepare, model, optimizer = MODELS[options.model]
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.replicas = self.strategy.num_replicas_in_sync
        with self.strategy.scope():
            self.model = model()
            self.optimizer = optimizer()
            self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="sum")
        self.batch = options.batch
        images, labels = load(pathlib.Path(options.data_dir))

        def dataset(context):
            data = tf.data.Dataset.from_tensor_slices((images, labels))
            data = data.shard(context.num_input_pipelines,
                              context.input_pipeline_id)
            data = data.shuffle(len(labels)).repeat()
            data = data.batch(self.batch, drop_remainder=True)
            return data.map(lambda x, y: (prepare(x), y)).prefetch(2)

        self.batches = iter(
            self.strategy.distribute_datasets_from_function(dataset))

    def step(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = self.loss(labels, logits) / (self.batch * self.replicas)
            loss += sum(self.model.losses) / self.replicas
        variables = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    @tf.function
    def train(self, batches, steps):
        loss = 0.
        for _ in tf.range(steps):
            loss = self.strategy.run(self.step, args=next(batches))
        return self.strategy.reduce("SUM", loss, axis=None)

    def measured(self, steps):
        before = resource.getrusage(resource.RUSAGE_SELF)
        begin = time.perf_counter()
        loss = float(self.train(self.batches, tf.constant(steps)))
        seconds = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_SELF)
        processor = (after.ru_utime + after.ru_stime - before.ru_utime -
                     before.ru_stime)
        print(f"loss {loss}", file=sys.stderr)
        return f"{seconds} {processor}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=0,
                        help="of an operation, and of operations; 0: "
                        "TensorFlow chooses")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    training = Training(options)
    print(tf.__version__, flush=True)
    for order in sys.stdin:
        print(training.measured(int(order)), flush=True)


if __name__ == "__main__":
    main()
