"""A job whose values count the pushes that are in them, exactly.

Each example's gradient moves the row of its id by 1, and each step's moves the
bias by 1: sums of small integers in float32. So what a lost update leaves, or a
doubled one, is seen in the values.
"""

import csv
import os
import subprocess

BATCH = 16

# The label is far away: the gradient of an absolute error is its sign alone.
JOB = """
name: "counts"
seed: 7
model {{
  input {{ name: "id" ids {{ column {{ name: "id" identity {{ num_ids: {ids} }} }} }} }}
  input {{ name: "zero" dense {{ column {{ name: "zero" }} }} }}
  layer {{ name: "count" input: "id" embedding_bag {{ table: "counts" }} }}
  layer {{ name: "steps" input: "zero" dense {{ units: 1 }} }}
  layer {{ name: "sum" input: ["count", "steps"] add {{}} }}
  loss {{ mean_absolute_error {{}} }}
  sparse_table {{
    name: "counts" width: 1 initializer {{ zeros {{}} }}
    optimizer {{ sgd {{ learning_rate: {rate} }} }}
  }}
}}
train {{ csv {{ file: "ids.csv" label {{ column: "y" }} }} batch_size: {batch} }}
optimizer {{ sgd {{ learning_rate: 1 }} }}
end {{ epochs: {epochs} }}
checkpoint {{ every_steps: {every} max_to_keep: 4 }}
"""


class CountedJob:
    def __init__(self, ids, epochs, every, replicas, settings):
        """`replicas`: number of replicas of a synchronous step, or 1."""
        self.ids = ids
        self.epochs = epochs
        self.steps = ids * epochs // (BATCH * replicas)
        # The gradient of a batch is a mean over its examples; a row's is one
        # over the replicas of a step that touch it, of which there is one.
        self.text = JOB.format(ids=ids, epochs=epochs, every=every, batch=BATCH,
                               rate=BATCH) + settings

    def write_data(self, folder):
        with open(os.path.join(folder, "ids.csv"), "w") as out:
            out.write("id,zero,y\n")
            for number in range(self.ids):
                out.write(f"{number},0,100000000\n")

    def read(self, parasol, checkpoints, folder):
        """Returns the newest checkpoint's step, its bias, and counts by id."""
        ended = subprocess.run(
            [parasol, "export", checkpoints, "--format=csv",
             f"--output={folder}"], capture_output=True, text=True)
        if ended.returncode != 0:
            raise RuntimeError(ended.stderr.strip())
        with open(os.path.join(folder, "tensors.csv"), newline="") as file:
            files = {row["tensor"]: row["file"]
                     for row in csv.DictReader(file)}

        def numbers(tensor):
            with open(os.path.join(folder, files[tensor])) as file:
                return [float(text)
                        for text in file.read().replace(",", " ").split()]

        ids = numbers("counts/ids")
        return (int(numbers("global_step")[0]), numbers("steps/bias")[0],
                dict(zip(map(int, ids), numbers("counts/rows"))))
