#!/usr/bin/env python3
"""Kills a ps of a job that replicates, and starts no other: the ps that has its
standby acts for it to the job's end, and every value is exact. Or starts it
again later: it goes on with what the other one hands over.

    tests/chaos/acting_test.py [--bin_dir=DIR]
"""

import argparse
import json
import os
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]

import counted_job  # noqa: E402
import small_cluster  # noqa: E402

WORKERS = 2


def log_has(cluster, name, text):
    with open(cluster.log_path(name), errors="replace") as log:
        return text in log.read()


def start_again(cluster, name):
    role, index = name.split("/")
    config = {"cluster": cluster.cluster,
              "task": {"type": role, "index": int(index)}}
    cluster.spawn(name, [f"{small_cluster.BIN}/{role}/{role}"]
                  + cluster.flags(name), {"TF_CONFIG": json.dumps(config)})


def run(folder, durability, is_synchronous, keys, comes_back):
    settings = "synchronous { lost_worker: REASSIGN }" if is_synchronous else ""
    job = counted_job.CountedJob(
        ids=3072, epochs=20 if is_synchronous else 60, every=100000,
        replicas=WORKERS if is_synchronous else 1,
        settings="parameter_server {{ durability: {} {} }}\n".format(
            durability, settings))
    cluster = small_cluster.SmallCluster(folder, 2, WORKERS, job=job.text,
                                         keys=keys)
    job.write_data(cluster.data)
    cluster.start()
    try:
        small_cluster.wait_for(
            lambda: cluster.steps() > 100 and all(
                "\nparasol_ps_standby_in_sync 1" in
                (cluster.metrics(name) or "") for name in ("ps/0", "ps/1")),
            "standbys in sync", 60, cluster)
        lost = cluster.processes.pop("ps/1")
        lost.kill()
        lost.wait()
        small_cluster.wait_for(
            lambda: log_has(cluster, "ps/0", "from its standby on ps/0"),
            "ps/0 that acts for ps/1", 60)
        if comes_back:
            start_again(cluster, "ps/1")
            small_cluster.wait_for(
                lambda: log_has(cluster, "ps/0", "goes on with the checkpoint"),
                "hand-over", 60)
        for name, process in cluster.processes.items():
            if process.wait(timeout=200) != 0:
                sys.exit(f"{name} has ended with {process.returncode}")
        if log_has(cluster, "ps/0", "are lost"):
            sys.exit("ps/0 has lost pushes")
        step, bias, counts = job.read(
            f"{small_cluster.BIN}/tool/parasol", cluster.checkpoints,
            os.path.join(folder, "values"))
        if (step, bias) != (job.steps, job.steps):
            sys.exit(f"{bias} updates of the bias at step {step} of {job.steps}")
        wrong = [i for i in range(job.ids) if counts.get(i) != job.epochs]
        if wrong:
            sys.exit(f"{len(wrong)} rows have other updates: row {wrong[0]} has "
                     f"{counts.get(wrong[0])} of {job.epochs}")
    finally:
        cluster.stop()


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--bin_dir", default="")
    options = flags.parse_args()
    if options.bin_dir:
        small_cluster.take_binaries(options.bin_dir)
    else:
        small_cluster.build()
    for case in [("REPLICATE", False, "", False),
                 ("REPLICATE", True, "token", False),
                 ("REPLICATE", False, "certificates", True),
                 ("REPLICATE", True, "", True),
                 ("REPLICATE_JOURNAL", False, "", False),
                 ("REPLICATE_JOURNAL", False, "token", True)]:
        with tempfile.TemporaryDirectory(prefix="parasol_acting.") as folder:
            run(folder, *case)
        print("exact: {}, synchronous {}, keys '{}', comes back {}".format(*case),
              flush=True)


if __name__ == "__main__":
    main()
