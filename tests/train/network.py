"""Two hosts for a test, as network namespaces with a cable between them that can be cut. Needs root."""
import os
import subprocess


def possible():
    """Whether this process may make namespaces."""
    name = f"muster-try-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
        if made.returncode == 0:
            subprocess.run(["ip", "netns", "del", name], check=True)
        return made.returncode == 0
    except FileNotFoundError:
        return False


class TwoHosts:
    """Addresses lie on the loopback of each host, so that those of one host reach each other whatever becomes of the cable."""

    def __init__(self):
        self.names = [f"muster-{os.getpid()}-{side}" for side in "ab"]
        self.addresses = ["10.117.0.1", "10.117.0.2"]

    def __enter__(self):
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            self.ip("link", "add", "cable", "netns", self.names[0], "type", "veth", "peer", "name", "cable", "netns", self.names[1])
            for name, address in zip(self.names, self.addresses):
                self.ip("-n", name, "link", "set", "lo", "up")
                self.ip("-n", name, "addr", "add", f"{address}/32", "dev", "lo")
            self.join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def on(self, side):
        """Words before a command that is to run on this host."""
        return ["ip", "netns", "exec", self.names[side]]

    def cut(self):
        """One end is gone: what the other one sends is lost without a word."""
        self.ip("-n", self.names[1], "link", "set", "cable", "down")

    def throttle(self, bytes_a_second):
        """In each direction, from now on; the cable's ends have addresses then, for who looks for one there."""
        for name, address in zip(self.names, self.addresses):
            self.ip("-n", name, "addr", "add", f"{address}/32", "dev", "cable")
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "cable", "root", "tbf", "rate", f"{8 * bytes_a_second}bit",
                            "burst", "256kb", "latency", "50ms"], check=True, capture_output=True)

    def join(self):
        for name, other in zip(self.names, reversed(self.addresses)):
            self.ip("-n", name, "link", "set", "cable", "up")
        for name, mine, other in zip(self.names, self.addresses, reversed(self.addresses)):
            self.ip("-n", name, "route", "replace", f"{other}/32", "dev", "cable", "src", mine)
