#!/usr/bin/env python3
"""Ends well when it runs beside the head with the address that ray.init() reads."""
import os

assert os.environ["MUSTER_RANK"] == "0", "only the head runs the program"
host, port = os.environ["RAY_ADDRESS"].rsplit(":", 1)
assert host and 0 < int(port) < 65536
print(f"head at {host}:{port}")
