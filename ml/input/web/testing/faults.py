"""How a server for tests fails, and what was asked of it, in a folder ROOT.

ROOT/requests has a line for each request. If there is a file ROOT/faults, each
line of it is a fault, as JSON:

  {"request": "GET /key.*", "times": 2, "skip": 0, "do": "503"}

It strikes the requests whose line "METHOD /path" the regular expression matches
as a whole, but for the first `skip` ones, and then `times` of them (-1: all).
What "do" may be, the server says; "random" is one of `of`, or nothing, drawn
with `seed`.
"""

import http.server
import json
import os
import random
import re
import threading
import time


class Faults:
    """The faults of the file, and how often each has been met."""

    def __init__(self, root):
        self.path = os.path.join(root, "faults")
        self.read_as = None
        self.faults = []
        self.lock = threading.Lock()

    def strike(self, line):
        with self.lock:
            self.read()
            for fault in self.faults:
                if not re.fullmatch(fault["request"], line):
                    continue
                fault["met"] = fault.get("met", 0) + 1
                behind = fault["met"] - fault.get("skip", 0)
                times = fault.get("times", 1)
                if behind > 0 and (times < 0 or behind <= times):
                    return self.drawn(fault) if fault["do"] == "random" else fault
        return {"do": ""}

    def drawn(self, fault):
        if "draw" not in fault:
            fault["draw"] = random.Random(fault["seed"])
        return fault["draw"].choice([{"do": ""}] + fault["of"])

    def read(self):
        try:
            about = os.stat(self.path)
        except FileNotFoundError:
            self.faults, self.read_as = [], None
            return
        read_as = (about.st_mtime_ns, about.st_size, about.st_ino)
        if read_as != self.read_as:
            with open(self.path, encoding="utf-8") as file:
                self.faults = [json.loads(line) for line in file if line.strip()]
            self.read_as = read_as


class FailingHandler(http.server.BaseHTTPRequestHandler):
    """Requests that are noted, and may meet a fault; a server has answer()."""

    protocol_version = "HTTP/1.1"
    # A body does not wait for the acknowledgement of its head.
    disable_nagle_algorithm = True
    faults = None  # of the server
    notes = None

    @classmethod
    def serve_from(cls, root):
        cls.faults, cls.notes = Faults(root), Notes(root)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # nobody waits for the answer

    def do_GET(self):
        self.answer()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def meet(self, line, query):
        """Notes a request and takes its fault; true if that leaves no answer."""
        self.notes.add(f"{line} {self.headers.get('Range', '')} {query}")
        self.fault = self.faults.strike(line)
        if self.fault["do"] != "hang":
            return False
        time.sleep(self.fault["seconds"])
        self.close_connection = True
        return True


class Notes:
    """A line for each request."""

    def __init__(self, root):
        self.file = open(os.path.join(root, "requests"), "a", encoding="utf-8")
        self.lock = threading.Lock()

    def add(self, line):
        with self.lock:
            self.file.write(line + "\n")
            self.file.flush()
