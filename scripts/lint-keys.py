#!/usr/bin/env python3
"""lint-keys.py RULES FILE.cc...: a key for each file, one a line, from all that its result depends on.

That is RULES (a text of the caller's), the file, and the headers of ours that it includes, directly
or through others: of a header that changed, only the files that see it are looked at again.
"""
import functools
import hashlib
import pathlib
import re
import sys

INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.cache
def content(path):
    return path.read_bytes()


def closure(path):
    """The file and every header of ours below it."""
    seen, open_ = {path}, [path]
    while open_:
        includer = open_.pop()
        for name in INCLUDE.findall(content(includer)):
            for folder in (pathlib.Path("src"), includer.parent):
                header = folder / name.decode()
                if header not in seen and header.is_file():
                    seen.add(header)
                    open_.append(header)
    return sorted(seen)


def main():
    rules, *files = sys.argv[1:]
    for file in files:
        digest = hashlib.sha256(rules.encode())
        for path in closure(pathlib.Path(file)):
            digest.update(f"{path} {len(content(path))}\n".encode() + content(path))
        print(digest.hexdigest())


main()
