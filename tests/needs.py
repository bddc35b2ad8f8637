"""For tests that need what not every machine has, and not every user may do."""
import os
import unittest


def missing(what, root=False):
    """Skips the test; under CI=true it fails instead, with `root` only where root runs it."""
    counts = os.environ.get("CI") == "true" and (os.geteuid() == 0 or not root)
    raise AssertionError(what) if counts else unittest.SkipTest(what)
