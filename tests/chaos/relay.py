"""A TCP relay before a task's port, which a test cuts and holds up."""

import socket
import struct
import threading


class Relay:
    """Forwards connections to `target`, a port of this machine, once it is set.

    cut() ends all connections as a crashed machine's system does, with a reset;
    hold() forwards nothing, so that each end believes that the other one is
    there, until release().
    """

    def __init__(self):
        self.target = None
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.pairs = set()
        self.lock = threading.Lock()
        self.open = threading.Event()
        self.open.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target),
                                               timeout=5)
            except OSError:
                reset(near)
                continue
            pair = (near, far)
            for sock in pair:
                sock.settimeout(None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self.forward, daemon=True,
                                 args=(pair, source, sink)).start()

    def forward(self, pair, source, sink):
        try:
            while data := source.recv(1 << 18):
                self.open.wait()
                sink.sendall(data)
        except OSError:
            pass
        self.end(pair)

    def end(self, pair):
        with self.lock:
            if pair not in self.pairs:
                return
            self.pairs.remove(pair)
        for sock in pair:
            reset(sock)

    def cut(self):
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self.end(pair)

    def hold(self):
        self.open.clear()

    def release(self):
        self.open.set()

    def close(self):
        self.release()
        self.listener.close()
        self.cut()


def reset(sock):
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("ii", 1, 0))
        # Wakes the thread that reads.
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()
