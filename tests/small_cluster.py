"""A small job as processes of their own, for scripts that harm it.

Factors of users and items, by two columns of a table: its steps take
milliseconds, and it has variables and rows, checkpoints and an evaluator.
"""

import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, "bazel-bin")

JOB = """
name: "small"
seed: 7
model {
  input { name: "user" ids { column { name: "user" identity { num_ids: 50000 } } } }
  input { name: "item" ids { column { name: "item" identity { num_ids: 300 } } } }
  layer { name: "users" input: "user" embedding_bag { table: "users" } }
  layer { name: "items" input: "item" embedding_bag { table: "items" } }
  layer { name: "both" input: ["users", "items"] concatenate {} }
  layer { name: "hidden" dense { units: 1024 activation: RELU } }
  layer { name: "more" dense { units: 64 activation: RELU } }
  layer { name: "rating" dense { units: 1 } }
  loss { mean_squared_error {} }
  sparse_table { name: "users" width: 8 initializer { random_normal { stddev: 0.1 } } }
  sparse_table { name: "items" width: 8 initializer { random_normal { stddev: 0.1 } } }
}
train { csv { file: "ratings.csv" label { column: "y" } } batch_size: 32 }
optimizer { adagrad { learning_rate: 0.01 } }
end { steps: 100000000 }
"""
MEMORY_LIMIT = 8 << 30
# Its checkpoints, where nothing else is said of them.
CHECKPOINTS = "checkpoint { every_steps: 400 max_to_keep: 2 }\n"


def build(*more):
    subprocess.run(
        ["bazel", "build", "--noshow_progress", "//ps", "//worker", "//chief",
         "//evaluator", "//tool:parasol", *more], check=True, cwd=ROOT,
        stdout=sys.stderr)


def take_binaries(folder, *more):
    """Has tasks run from `folder`, which is laid out as bazel-bin is, in place
    of what `build` makes."""
    global BIN
    for name in ("ps/ps", "worker/worker", "chief/chief",
                 "evaluator/evaluator", "tool/parasol", *more):
        if not os.path.exists(os.path.join(folder, name)):
            sys.exit(f"--bin_dir={folder}: has no {name}; copy it from "
                     "bazel-bin")
    BIN = os.path.abspath(folder)


def limit_memory():
    """A task that is harmed does not take the machine's memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))


def free_ports(count):
    """Ports outside the kernel's own range: a task that restarts finds its own
    free, as nothing else that asks the kernel for one has taken it meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as text:
        first = int(text.read().split()[0])
    outside = range(10000, first)
    socks = []
    for port in random.SystemRandom().sample(
            outside, min(20 * count, len(outside))):
        sock = socket.socket()
        try:
            sock.bind(("0.0.0.0", port))
        except OSError:
            sock.close()
            continue
        socks.append(sock)
        if len(socks) == count:
            break
    ports = [sock.getsockname()[1] for sock in socks]
    for sock in socks:
        sock.close()
    if len(ports) < count:
        raise RuntimeError(
            f"{len(ports)} of {count} ports from 10000 to {first - 1} are "
            "free; net.ipv4.ip_local_port_range may begin lower than usual")
    return ports


def wait_for(fact, what, seconds, cluster=None):
    """Waits for a fact; a task of the cluster that ends meanwhile is named."""
    end = time.monotonic() + seconds
    while not fact():
        if cluster is not None:
            cluster.check()
        if time.monotonic() > end:
            sys.exit(f"no {what} within {seconds} s")
        time.sleep(.2)


def write_ratings(path, hot_share=0.0):
    """Ratings; `hot_share` of them are of user 7."""
    draw = random.Random(7)
    with open(path, "w") as out:
        out.write("user,item,y\n")
        for _ in range(20000):
            user = (7 if draw.random() < hot_share
                    else draw.randrange(50000))
            item = draw.randrange(300)
            out.write(f"{user},{item},{user % 7 * (item % 5) / 10:.3f}\n")


class SmallCluster:
    """The tasks; `hosts` has the address of each that is not on loopback. `keys`
    are none, "token" or "certificates"."""

    def __init__(self, directory, ps, workers, evaluator=False, hosts=None,
                 keys="", job=JOB + CHECKPOINTS):
        self.directory = directory
        self.job = job
        self.kind_of_keys = keys
        self.names = (["chief/0"] + [f"ps/{i}" for i in range(ps)]
                      + [f"worker/{i}" for i in range(workers)]
                      + (["evaluator/0"] if evaluator else []))
        hosts = hosts or {}
        ports = free_ports(2 * len(self.names))
        self.addresses = {
            name: f"{hosts.get(name, '127.0.0.1')}:{port}"
            for name, port in zip(self.names, ports)}
        self.metrics_ports = dict(zip(self.names, ports[len(self.names):]))
        self.is_local = not hosts
        self.cluster = {}
        for name in self.names:
            role = name.split("/")[0]
            self.cluster.setdefault(role, []).append(self.addresses[name])
        if keys == "token":
            with open(self.in_directory("token"), "w") as out:
                out.write("0123456789abcdef0123456789abcdef")
            os.chmod(self.in_directory("token"), 0o600)
        elif keys == "certificates":
            self.issue_certificates()
        self.processes = {}
        self.logs = []
        self.data = os.path.join(directory, "data")
        self.checkpoints = os.path.join(directory, "checkpoints")
        os.makedirs(self.data, exist_ok=True)
        write_ratings(os.path.join(self.data, "ratings.csv"))

    def in_directory(self, name):
        return os.path.join(self.directory, name)

    def issue_certificates(self):
        """A certificate for each task and the tool, of an authority."""
        def openssl(*arguments):
            subprocess.run(
                ["openssl", *arguments], check=True, cwd=self.directory,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-nodes"]
        openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt",
                "-subj", "/CN=authority", "-days", "3")
        for name in self.names + ["operator/0"]:
            stem = name.replace("/", "-")
            openssl("req", "-new", *new_key, "-keyout", f"{stem}.key", "-out",
                    f"{stem}.csr", "-subj", f"/CN={stem}")
            with open(self.in_directory(f"{stem}.names"), "w") as out:
                out.write(f"subjectAltName = DNS:small-{stem}.svc\n")
            openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", "ca.crt",
                    "-CAkey", "ca.key", "-CAcreateserial", "-days", "3",
                    "-extfile", f"{stem}.names", "-out", f"{stem}.crt")

    def keys_of(self, name):
        """The flags of a task's keys, or the tool's: operator/0."""
        if self.kind_of_keys == "token":
            return ["--token_file=" + self.in_directory("token")]
        if self.kind_of_keys != "certificates":
            return []
        stem = self.in_directory(name.replace("/", "-"))
        return [f"--tls_certificate={stem}.crt", f"--tls_key={stem}.key",
                "--tls_ca=" + self.in_directory("ca.crt")]

    def port(self, name):
        return int(self.addresses[name].rsplit(":", 1)[1])

    def flags(self, name):
        role = name.split("/")[0]
        host = self.addresses[name].rsplit(":", 1)[0]
        flags = [f"--metrics_address={host}:{self.metrics_ports[name]}"]
        flags += self.keys_of(name)
        if not self.is_local:
            flags.append("--insecure")
        if role == "chief":
            job = os.path.join(self.directory, "job.textproto")
            with open(job, "w") as out:
                out.write(self.job)
            flags += [f"--job={job}", f"--checkpoint_dir={self.checkpoints}"]
        if role in ("worker", "evaluator"):
            flags.append(f"--data_dir={self.data}")
        if role == "worker":
            flags.append("--threads=1")
        return flags

    def start(self, before=None, environment=None):
        """`before`: the words before a task's command, by its name."""
        for name in self.names:
            role, index = name.split("/")
            config = {"cluster": self.cluster,
                      "task": {"type": role, "index": int(index)}}
            self.spawn(
                name,
                (before or {}).get(name, []) + [f"{BIN}/{role}/{role}"]
                + self.flags(name),
                dict((environment or {}).get(name, {}),
                     TF_CONFIG=json.dumps(config)))

    def spawn(self, name, command, environment=None):
        self.logs.append(open(self.log_path(name), "w"))
        self.processes[name] = subprocess.Popen(
            command, env=dict(os.environ, **(environment or {})),
            stdout=self.logs[-1], stderr=subprocess.STDOUT,
            preexec_fn=limit_memory)
        return self.processes[name]

    def check(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                with open(self.log_path(name)) as log:
                    last = (log.read().strip().splitlines() or [""])[-1]
                sys.exit(f"{name} has ended with {process.returncode}: {last}")

    def log_path(self, name):
        return os.path.join(self.directory, name.replace("/", "_") + ".log")

    def tool(self, *arguments):
        return subprocess.run(
            [f"{BIN}/tool/parasol", *arguments, *self.keys_of("operator/0")],
            capture_output=True, text=True)

    def metrics(self, name, limit=20):
        host = self.addresses[name].rsplit(":", 1)[0]
        try:
            with urllib.request.urlopen(
                    f"http://{host}:{self.metrics_ports[name]}/metrics",
                    timeout=limit) as page:
                return page.read().decode()
        except (OSError, http.client.HTTPException):
            return None

    def steps(self):
        found = re.search(r"^parasol_chief_global_step (\S+)$",
                          self.metrics("chief/0") or "", re.M)
        return float(found[1]) if found else 0

    def rate(self, seconds=3.0):
        start, before = time.monotonic(), self.steps()
        time.sleep(seconds)
        return (self.steps() - before) / (time.monotonic() - start)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def stop(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.processes.values():
            process.wait()
