#!/usr/bin/env python3
"""Writes the Parquet and Arrow files of this folder, and the same rows as CSV.

    python make_files.py

with pyarrow 26.0.1, polars 2.1.0, duckdb 2.0.1 and fastparquet 2026.9.0. The rows
are drawn from a seed; `rows.csv` has them as a CSV reader of Parasol takes them:
a list is one value with "|" between its own, a null is an empty value, and in a
list "NA".
"""

import csv
import decimal
import os
import random

import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 40
random.seed(20261129)


def maybe(value, chance=0.2):
    return None if random.random() < chance else value


def draw():
    cities = ["Wien", "Zürich", "東京", "a b", "x"]
    return {
        "clicked": random.choice(["yes", "no"]),
        "weight": random.randrange(1, 9) / 4,
        "age": maybe(random.randrange(0, 100)),
        "big": random.choice([2**63 - 1, -(2**63), 0, 12345678901234]),
        "unsigned": random.choice([2**64 - 1, 0, 7]),
        "small": maybe(random.randrange(-128, 128)),
        "price": maybe(random.randrange(-4000, 4000) / 16),
        "half": random.randrange(-64, 64) / 8,
        "amount": maybe(decimal.Decimal(random.randrange(-99999, 99999)) / 100),
        "flag": maybe(random.random() < 0.5),
        "user": maybe(f"u{random.randrange(10**6)}"),
        "city": maybe(random.choice(cities)),
        "items": maybe([maybe(random.randrange(1, 50), 0.1)
                        for _ in range(random.randrange(0, 6))]),
        "words": maybe([random.choice(cities[:3])
                        for _ in range(random.randrange(0, 4))]),
        "vector": [random.randrange(-99, 99) / 4 for _ in range(4)],
    }


rows = [draw() for _ in range(ROWS)]
for row in rows:
    # In CSV a list that is only "NA" is missing as a whole.
    if row["items"] == [None]:
        row["items"] = []
schema = pa.schema([
    ("clicked", pa.string()),
    ("weight", pa.float32()),
    ("age", pa.int32()),
    ("big", pa.int64()),
    ("unsigned", pa.uint64()),
    ("small", pa.int8()),
    ("price", pa.float64()),
    ("half", pa.float16()),
    ("amount", pa.decimal128(10, 2)),
    ("flag", pa.bool_()),
    ("user", pa.string()),
    ("city", pa.dictionary(pa.int8(), pa.string())),
    ("items", pa.list_(pa.int64())),
    ("words", pa.list_(pa.string())),
    ("vector", pa.list_(pa.float32(), 4)),
])


def text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return "|".join("NA" if v is None else str(v) for v in value)
    return str(value)


with open(os.path.join(HERE, "rows.csv"), "w", newline="") as out:
    lines = csv.writer(out, lineterminator="\n")
    names = [n for n in schema.names if n != "vector"]
    lines.writerow(names + [f"v{i}" for i in range(4)])
    for row in rows:
        lines.writerow([text(row[n]) for n in names] + row["vector"])


def path(name):
    return os.path.join(HERE, name)


def table_of(some=rows, with_schema=schema):
    columns = []
    for field in with_schema:
        values = [row[field.name] for row in some]
        if pa.types.is_float16(field.type):
            columns.append(pa.array(values, pa.float32()).cast(pa.float16()))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=with_schema)


table = table_of()
for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    pq.write_table(table, path(f"{codec}.parquet"), compression=codec,
                   row_group_size=16, write_page_checksum=True)
# Pages of the second version, other encodings, small pages, one row group.
pq.write_table(
    table, path("encodings.parquet"), compression="none", use_dictionary=False,
    data_page_version="2.0", data_page_size=64, version="2.6",
    column_encoding={
        "clicked": "DELTA_BYTE_ARRAY", "weight": "BYTE_STREAM_SPLIT",
        "age": "DELTA_BINARY_PACKED", "big": "DELTA_BINARY_PACKED",
        "user": "DELTA_LENGTH_BYTE_ARRAY", "price": "BYTE_STREAM_SPLIT"})
# Without the schema of Arrow, as other writers do: no dictionary, and a list of
# any length.
pq.write_table(table, path("no_arrow_schema.parquet"), store_schema=False,
               row_group_size=7)
# Rows in two files of other sizes and codecs.
pq.write_table(table_of(rows[:11]), path("part_0.parquet"))
pq.write_table(table_of(rows[11:]), path("part_1.parquet"), compression="zstd",
               row_group_size=5)

large = schema
for name, kind in [("user", pa.large_string()), ("clicked", pa.binary()),
                   ("items", pa.large_list(pa.int64()))]:
    large = large.set(large.get_field_index(name), pa.field(name, kind))
for codec in [None, "lz4", "zstd"]:
    with ipc.new_file(path(f"{codec or 'plain'}.arrow"), schema,
                      options=ipc.IpcWriteOptions(compression=codec)) as out:
        for batch in table.to_batches(max_chunksize=16):
            out.write(batch)
with ipc.new_file(path("large.arrow"), large) as out:
    out.write_table(table_of(rows, large), max_chunksize=11)
feather.write_feather(table, path("feather.feather"))

# Other writers. fastparquet has no lists, and duckdb and polars no float16.
frame = pl.from_arrow(table.set_column(
    schema.get_field_index("half"), "half", table["half"].cast(pa.float32())))
frame.write_parquet(path("polars.parquet"), row_group_size=16)
frame.write_ipc(path("polars.arrow"), record_batch_size=16)
floats = frame.to_arrow()
duckdb.sql(f"copy floats to '{path('duckdb.parquet')}' "
           "(format parquet, row_group_size 2048)")
flat = pd.DataFrame({n: [row[n] for row in rows]
                     for n in ["clicked", "weight", "price", "user", "big"]})
fastparquet.write(path("fastparquet.parquet"), flat, compression="GZIP")

# Seeds of tests/fuzz.
seed = pa.table({
    "a": pa.array([1.5, None, -2.0], pa.float32()),
    "c": pa.array(["x", "", None]).dictionary_encode(),
    "y": pa.array([1, 0, 1], pa.int8()),
    "more": [[1, None], [], [2]],
})
pq.write_table(seed, path("seed.parquet"), compression="snappy")
feather.write_feather(seed, path("seed.arrow"), compression="lz4")

# Types that are not read, and columns of nulls.
other = pa.table({
    "y": [1.0, 0.0],
    "time": pa.array([1, 2], pa.timestamp("us")),
    "day": pa.array([1, 2], pa.date32()),
    "place": [{"x": 1}, {"x": 2}],
    "table": pa.array([[[1], [2]], [[3]]], pa.list_(pa.list_(pa.int64()))),
    "nothing": pa.nulls(2),
    "x": [1, 2],
})
pq.write_table(other, path("other_types.parquet"))
# The column x is a text here.
pq.write_table(pa.table({"y": [1.0], "x": ["2"], "nothing": [3.0]}),
               path("other_x.parquet"))

# Days whose column "extra", which jobs do not name, differs.
day = {"x": pa.array([1, 2], pa.int64()), "y": [1.0, 0.0]}
for number, extra in [(1, {"extra": pa.array([3, 4], pa.int64())}), (2, {}),
                      (9, {"extra": pa.array([.5, None], pa.float64())})]:
    pq.write_table(pa.table({**day, **extra}), path(f"day_{number}.parquet"))

# A text that is no UTF-8, and offsets and an index that point to outside.
latin = pa.Array.from_buffers(
    pa.binary(), 2, pa.array([b"M\xfcnchen", b"Wien"]).buffers()).view(pa.string())
texts = pa.array(["ab", "cd", "ef"]).buffers()
offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in [0, 2, 900, 6]))
indices = pa.py_buffer(bytes([0, 1, 77]))
city = [
    ("latin1", latin),
    ("bad_offset", pa.Array.from_buffers(pa.string(), 3, [None, offsets, texts[2]])),
    ("bad_index", pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int8(), pa.string()), 3, [None, indices],
        pa.array(["ab", "cd"]))),
]
for name, column in city:
    some = pa.record_batch({
        "y": pa.array([1.0, 0.0, 1.0][:len(column)]), "city": column})
    with ipc.new_file(path(f"{name}.arrow"), some.schema) as out:
        out.write(some)
pq.write_table(pa.table({"y": [1.0, 0.0], "city": latin}), path("latin1.parquet"))

# A row group of 300 values of 100 KB.
pq.write_table(pa.table({"y": [float(i % 2) for i in range(300)],
                         "image": [b"\0" * 100_000] * 300}),
               path("images.parquet"), compression="zstd", use_dictionary=False)
