"""What the comparisons of this folder share: jobs of Parasol, other programs'
processes that wait for orders, and tables of ratios."""

import dataclasses
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


@dataclasses.dataclass(frozen=True)
class Use:
    """Seconds of a contender for one example."""
    wall: float
    processor: float


def build():
    """Builds what launch_job() starts."""
    subprocess.run(
        ["bazel", "build", "--noshow_progress", "//ps", "//worker", "//chief",
         "//deploy/local:launcher"], cwd=ROOT, check=True,
        stdout=subprocess.DEVNULL)


def launch_job(job, data, flags):
    """Returns the elapsed seconds of a job, which is a file."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        launcher = subprocess.Popen(
            [ROOT / "bazel-bin/deploy/local/launcher", f"--job={job}",
             f"--data_dir={data}", f"--checkpoint_dir={folder}",
             "--evaluator=false",
             "--set=checkpoint={every_steps: 1000000}",
             # nice(1) then holds for all threads, as for other programs'.
             "--set=worker.compute_niceness=0", *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, errors = launcher.communicate()
        seconds = time.perf_counter() - begin
        if launcher.returncode != 0:
            raise SystemExit(f"{job}: the job failed\n{errors}")
    return seconds


def children_seconds():
    """Returns the processor time of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def processor_seconds_of(process):
    """Returns the processor time of a process that runs, without children's."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def use_of_jobs(short, long, examples_of_a_step, job, data, flags):
    """Returns the difference of a job of `long` steps and one of `short` steps
    for each example: that leaves out start, first and last checkpoint."""
    figures = []
    for steps in (short, long):
        before = children_seconds()
        wall = launch_job(job, data, [f"--set=end={{steps: {steps}}}", *flags])
        figures.append((wall, children_seconds() - before))
    examples = (long - short) * examples_of_a_step
    return Use(*((of_long - of_short) / examples
                 for of_short, of_long in zip(*figures)))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start_waiting(arguments, environment):
    """Starts a process that waits for orders and answers in lines."""
    errors = tempfile.TemporaryFile(mode="w+", errors="replace")
    process = subprocess.Popen(
        arguments, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=errors, text=True)
    process.errors = errors
    return process


def answer_of(process, program):
    """Returns the next line of a process that start_waiting() has started."""
    line = process.stdout.readline().strip()
    if not line:
        process.errors.seek(0)
        lines = process.errors.read().split("\n")
        why = next((line for line in reversed(lines) if line.strip()), "no word")
        raise SystemExit(f"{program} ended: {why}")
    return line


def check_peer(parser, python, folders):
    """Ends with what is missing: TensorFlow, or a file of a data set. Data sets
    are (flag, folder, file)."""
    if shutil.which(python) is None:
        parser.error(f"--python: {python} is no program")
    if subprocess.run([python, "-c", "import tensorflow"],
                      stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        parser.error(f"--python: {python} has no tensorflow; "
                     "pip install tensorflow-cpu")
    for flag, folder, file in folders:
        if not (pathlib.Path(folder) / file).exists():
            parser.error(f"{flag}: {folder} has no {file}; name the folder "
                         "that has the data set")


def take_turns(name, turns, rounds, log):
    """Returns the uses of each contender, a list of rounds; each round begins
    with another one."""
    uses = {contender: [] for contender in turns}
    order = list(turns)
    for i in range(rounds):
        first = i % len(order)
        for contender in order[first:] + order[:first]:
            uses[contender].append(turns[contender]())
            print(f"{name}, round {i + 1}, {contender}: "
                  f"{uses[contender][-1]}", file=log)
    return uses


def median_of(uses, kind):
    return statistics.median(getattr(use, kind) for use in uses)


def ratio_of(numerators, denominators, kind):
    """Returns the median of the rounds' ratios, and words with the least and
    the greatest."""
    ratios = [getattr(a, kind) / getattr(b, kind)
              for a, b in zip(numerators, denominators)]
    middle = statistics.median(ratios)
    return middle, f"{middle:.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def rows_of(name, uses, base):
    """Returns a table's rows: name, contender, examples/s, CPU time, ratios of
    wall and CPU time to those of `base`."""
    rows = []
    for contender, figures in uses.items():
        ratios = " | ".join(ratio_of(figures, uses[base], kind)[1]
                            for kind in ("wall", "processor"))
        rows.append(f"| {name} | {contender} | "
                    f"{1 / median_of(figures, 'wall'):,.0f} | "
                    f"{1e6 * median_of(figures, 'processor'):.1f} µs | "
                    f"{ratios} |")
    return rows


def heading(base):
    return ("| model | contender | examples/s | CPU time of an example | "
            f"wall / {base} | CPU / {base} |\n|---|---|---|---|---|---|")


def processor_name():
    with open("/proc/cpuinfo") as file:
        return next(line.split(":")[1].strip() for line in file
                    if line.startswith("model name"))
