#!/usr/bin/env python3
"""Ends well when HOROVOD_* is consistent and the workers meet in the store, as Horovod's would."""
import os
import subprocess
import time
import urllib.error
import urllib.request


def number(name):
    return int(os.environ["HOROVOD_" + name])


rank, size = number("RANK"), number("SIZE")
assert 0 <= rank < size == int(os.environ["MUSTER_WORLD_SIZE"])
assert 0 <= number("LOCAL_RANK") < number("LOCAL_SIZE") <= size
assert 0 <= number("CROSS_RANK") < number("CROSS_SIZE") <= size
assert os.environ["HOROVOD_CONTROLLER"] == os.environ["HOROVOD_CPU_OPERATIONS"] == "gloo"
store = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{number('GLOO_RENDEZVOUS_PORT')}/global/"


def ask(method, key, body=None):
    """Horovod asks again too while there is no answer; the end is the time limit of whoever runs this."""
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(store + key, body, method=method)) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
        except urllib.error.URLError as error:
            assert isinstance(error.reason, ConnectionRefusedError), error
        time.sleep(0.02)


ask("PUT", str(rank), f"here is {rank}".encode())
for other in range(size):
    assert ask("GET", str(other)) == f"here is {other}".encode()
ask("PUT", f"read-{rank}", b"")
if rank == 0:  # it serves the store and leaves last
    for other in range(size):
        ask("GET", f"read-{other}")
    hosts = subprocess.run([os.environ["MUSTER_HOROVOD_DISCOVERY"]], check=True, capture_output=True, text=True).stdout
    assert sum(int(line.rsplit(":", 1)[1]) for line in hosts.splitlines()) == size, hosts
print(f"rank {rank} met {size}")
