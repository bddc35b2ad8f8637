#!/usr/bin/env python3
"""Ends well when TF_CONFIG is what TensorFlow's resolver takes: a cluster, and this task in it."""
import json
import os

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
assert set(config) == {"cluster", "task"}, config
assert set(cluster) <= {"chief", "worker", "ps", "evaluator"}, cluster
assert len(cluster.get("chief", [])) <= 1 and len(cluster.get("evaluator", [])) <= 1, cluster
addresses = [address for tasks in cluster.values() for address in tasks]
assert len(addresses) == int(os.environ["MUSTER_WORLD_SIZE"]), addresses
assert len(set(addresses)) == len(addresses), "two tasks at one address"
for address in addresses:
    host, port = address.rsplit(":", 1)
    assert host and 0 < int(port) < 65536, address
assert 0 <= task["index"] < len(cluster[task["type"]]), task
print(task["type"], task["index"], cluster[task["type"]][task["index"]])
