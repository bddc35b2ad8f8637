#!/usr/bin/env python3
"""The worker contract in thirty lines: JSON objects, one a line, on the Unix socket MUSTER_SOCKET."""
import json
import os
import queue
import socket
import threading

line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
line.connect(os.environ["MUSTER_SOCKET"])
orders = queue.Queue()


def listen():
    for text in line.makefile("r"):
        orders.put(json.loads(text))
    orders.put({"type": "stop"})  # nobody is there any more


def tell(kind, **facts):
    line.sendall((json.dumps({"type": kind, **facts}) + "\n").encode())


threading.Thread(target=listen, daemon=True).start()
tell("hello", version=1, pid=os.getpid())
welcome = orders.get()
assert welcome["type"] == "welcome", welcome
tell("ready")
value, step, stop = 1.0, 0, False
while step < int(os.environ.get("STEPS", 1000)) and not stop:
    step += 1
    value = (value + 2.0 / value) / 2.0  # the work: the root of 2
    if step % 100 == 0:
        tell("report", step=step, numbers={"value": value})
    while not orders.empty():
        order = orders.get()
        stop = stop or order["type"] in ("leave", "stop")
        if stop or order["type"] == "checkpoint":
            path = os.path.join(os.environ.get("MUSTER_CHECKPOINT_DIR", "."), "value.json")
            with open(path + ".draft", "w") as file:
                json.dump({"step": step, "value": value}, file)
            os.replace(path + ".draft", path)  # the one before stays until this one is whole
            tell("checkpointed", step=step, path=path)
print(f"{value:.6f} after {step} steps")
