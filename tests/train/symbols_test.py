#!/usr/bin/env python3
"""symbols_test.py LIBRARY: no code of one level of the CPU can be linked into another.

The linker keeps one copy of a function that several files define, whichever it likes. A copy that was
compiled for AVX-512 and is called on a CPU without it ends the program. So what the files of the
kernels share with any other file must not be there.
"""
import re
import subprocess
import sys


def main():
    names = subprocess.run(["nm", "--defined-only", "--demangle", sys.argv[1]], check=True, capture_output=True,
                           text=True).stdout
    level, seen, faults = None, set(), []
    for line in names.splitlines():
        member = re.match(r"(\S+)\.cc\.o:$", line)
        if member:
            found = re.match(r"kernels_(base|avx2|avx512)$", member.group(1))
            level = found.group(1) if found else None
            continue
        symbol = re.match(r"[0-9a-f]* *([WVu]) (.*)", line)
        if level and symbol:
            seen.add(level)
            # The reference to the routine that unwinds is data, and the same in every file.
            if f"eigen_{level}::" not in symbol.group(2) and symbol.group(2) != "DW.ref.__gxx_personality_v0":
                faults.append(f"{level}: {symbol.group(2)}")
    if seen != {"base", "avx2", "avx512"}:
        faults.append(f"symbols of {sorted(seen)} only: was the library built as this test thinks?")
    print("\n".join(faults) or "each level keeps to itself")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
