"""The golden micro-workload in SimPy.

Usage: golden_simpy.py [messages|lean] [n]

`messages` sends requests through SimPy's own queue, the Store. `lean` replaces the Store by a deque and a
wake-up event, which is about the minimum work of SimPy for this workload. In both, the client waits for the
delay of its request (it has nothing else to do), and the server schedules the reply as an event two units
later. This was the fastest of the variants tried: a callback for each message took about a tenth longer, and
a process for each message twice as long.
"""

import sys
import time
from collections import deque

import simpy

NODES = 16
MASK = (1 << 64) - 1


class Reply(simpy.Event):
    """An event that the server triggers after a delay, as `Timeout` does for its creator."""

    def send(self, delay):
        self._ok = True
        self._value = None
        self.env.schedule(self, delay=delay)


class Totals:
    def __init__(self):
        self.last_reply = 0.0
        self.response_sum = 0.0

    def add(self, now, responses):
        self.last_reply = max(self.last_reply, now)
        self.response_sum += responses


def messages(env, n, totals):
    timeout = env.timeout

    def client(i, stores):
        s = i * 2654435761 + 1
        responses = 0.0
        for k in range(n):
            s = (s * 6364136223846793005 + 1442695040888963407) & MASK
            yield timeout(1 + (s >> 33) % 1000000 * 1e-6)
            sent = env.now
            yield timeout(2)
            reply = Reply(env)
            stores[(i + k) % NODES].put(reply)
            yield reply
            responses += env.now - sent
        totals.add(env.now, responses)

    def server(store):
        while True:
            reply = yield store.get()
            yield timeout(3)
            reply.send(2)

    stores = [simpy.Store(env) for _ in range(NODES)]
    for store in stores:
        env.process(server(store))
    for i in range(NODES):
        env.process(client(i, stores))


def lean(env, n, totals):
    timeout = env.timeout

    class Server:
        def __init__(self):
            self.queue = deque()
            self.idle = None

    def client(i, servers):
        s = i * 2654435761 + 1
        responses = 0.0
        for k in range(n):
            s = (s * 6364136223846793005 + 1442695040888963407) & MASK
            yield timeout(1 + (s >> 33) % 1000000 * 1e-6)
            sent = env.now
            yield timeout(2)
            reply = Reply(env)
            server = servers[(i + k) % NODES]
            server.queue.append(reply)
            if server.idle is not None:
                server.idle.succeed()
                server.idle = None
            yield reply
            responses += env.now - sent
        totals.add(env.now, responses)

    def serve(server):
        queue = server.queue
        while True:
            if not queue:
                server.idle = env.event()
                yield server.idle
            reply = queue.popleft()
            yield timeout(3)
            reply.send(2)

    servers = [Server() for _ in range(NODES)]
    for server in servers:
        env.process(serve(server))
    for i in range(NODES):
        env.process(client(i, servers))


def main():
    idiom = sys.argv[1] if len(sys.argv) > 1 else "messages"
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    totals = Totals()
    started = time.perf_counter_ns()
    env = simpy.Environment()
    {"messages": messages, "lean": lean}[idiom](env, n, totals)
    env.run()
    elapsed = time.perf_counter_ns() - started
    events = NODES * n * 4
    print(
        f"golden: last_reply={totals.last_reply:.6f} response_sum={totals.response_sum:.6f} "
        f"events={events} ns_per_event={elapsed / events:.1f}"
    )


main()
