"""A cable between this network namespace and another one, which is slow and long.

    tests/benchmark/cable.py NAME NAMESPACE MBITS_PER_S DELAY_MS LOSS

Makes the interfaces NAME0 here and NAME1 there and carries IP packets between
them: each direction by itself, MBITS_PER_S (0: no limit), DELAY_MS later, but for
a share of LOSS and for what finds more than 100 ms of others before it. It is for
kernels without netem. Prints "ready" once there are interfaces; these go with
the process. Needs root.
"""

import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
TUN_SET_INTERFACE = 0x400454ca  # TUNSETIFF
TUN, NO_PACKET_INFORMATION = 1, 0x1000
LONGEST_QUEUE = .1  # seconds
PACKETS = 64  # that are read before others are written


def interface(name):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUN_SET_INTERFACE, struct.pack(
        "16sH", name.encode(), TUN | NO_PACKET_INFORMATION))
    return end


def enter(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"can't enter {namespace}")


class Direction:
    """What was read at one end and is on its way to the other one."""

    def __init__(self, bits_per_second, delay, loss):
        self.bits_per_second = bits_per_second
        self.delay = delay
        self.loss = loss
        self.is_free_at = 0
        self.packets = collections.deque()  # (when it arrives, its bytes)

    def take(self, packet, now):
        begin = max(now, self.is_free_at)
        if begin - now > LONGEST_QUEUE:
            return
        if self.bits_per_second:
            self.is_free_at = begin + 8 * len(packet) / self.bits_per_second
        else:
            self.is_free_at = begin
        if random.random() >= self.loss:
            self.packets.append((self.is_free_at + self.delay, packet))


def carry(source, sink, direction):
    """Reads and writes what is there; returns when the next packet arrives."""
    for _ in range(PACKETS):
        try:
            packet = os.read(source, 65536)
        except BlockingIOError:
            break
        direction.take(packet, time.monotonic())
    while direction.packets and direction.packets[0][0] <= time.monotonic():
        try:
            os.write(sink, direction.packets.popleft()[1])
        except OSError:
            pass  # An interface that is down loses what comes.
    return direction.packets[0][0] if direction.packets else float("inf")


def main():
    name, namespace = sys.argv[1:3]
    rate, delay, loss = map(float, sys.argv[3:])
    # Ahead of all that it connects.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(20))
    here = interface(name + "0")
    enter(namespace)
    there = interface(name + "1")
    print("ready", flush=True)
    ways = [(a, b, Direction(rate * 1e6, delay / 1e3, loss))
            for a, b in ((here, there), (there, here))]
    while True:
        arrives = min(carry(*way) for way in ways)
        wait = max(0, arrives - time.monotonic())
        select.select([here, there], [], [], min(wait, 1))


if __name__ == "__main__":
    main()
