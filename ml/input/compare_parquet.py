#!/usr/bin/env python3
"""Reads one click log as CSV and as Parquet, and beside it by pyarrow alone.

    /path/to/python ml/input/compare_parquet.py DIR [ROWS]

with pyarrow. Writes ROWS (4 million) rows of a label, 13 numbers and 26 ids of 8
hexadecimal digits into two files of each format, unless they are there, and has
large_set_benchmark, which is built before, open them and read an epoch in order
and a shuffled one. Prints the seconds and the processor's time of each.
"""

import os
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

BENCHMARK = "bazel-bin/ml/input/large_set_benchmark"
ROW_GROUP = 250_000


def table_of(rows, seed):
    import random
    draw = random.Random(seed)
    columns = {"label": pa.array(draw.choices([0, 1], k=rows), pa.int32())}
    for i in range(13):
        columns[f"I{i + 1}"] = pa.array(draw.choices(range(1000), k=rows),
                                        pa.int64())
    for i in range(26):
        values = pa.array([f"{draw.getrandbits(32):08x}" for _ in range(50_000)])
        columns[f"C{i + 1}"] = pc.take(
            values, pa.array(draw.choices(range(50_000), k=rows), pa.int32()))
    return pa.table(columns)


def write(folder, rows):
    for part in range(2):
        names = [f"{folder}/clicks_{part}.{kind}" for kind in ("csv", "parquet")]
        if all(os.path.exists(name) for name in names):
            continue
        table = table_of(rows // 2, part)
        csv.write_csv(table, names[0],
                      csv.WriteOptions(quoting_style="none"))
        pq.write_table(table, names[1], row_group_size=ROW_GROUP)


def by_pyarrow(folder):
    """Reads the same 27 columns, batch by batch, and counts the rows."""
    columns = ["label"] + [f"C{i + 1}" for i in range(26)]
    start, processor = time.time(), time.process_time()
    rows = 0
    for part in range(2):
        file = pq.ParquetFile(f"{folder}/clicks_{part}.parquet")
        for batch in file.iter_batches(4096, columns=columns, use_threads=False):
            rows += batch.num_rows
    print(f"pyarrow: {rows} rows in {time.time() - start:.2f} s, "
          f"{1e6 * (time.process_time() - processor) / rows:.2f} us of "
          "processors each", flush=True)


def main():
    folder, rows = sys.argv[1], int((sys.argv[2:] or ["4000000"])[0])
    os.makedirs(folder, exist_ok=True)
    write(folder, rows)
    for name in sorted(os.listdir(folder)):
        print(name, os.path.getsize(f"{folder}/{name}"), "bytes")
    for shuffle in "0", "10000":
        for kind in "csv", "parquet":
            print(f"{kind}, shuffle_buffer {shuffle}:", flush=True)
            subprocess.run([BENCHMARK, folder, "0", shuffle, kind], check=True)
        by_pyarrow(folder)


if __name__ == "__main__":
    main()
