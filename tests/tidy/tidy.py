#!/usr/bin/env python3
"""tidy: the house rules that a machine can check.

    tidy.py [--root DIR] [--rules]

Prints `path:line: rule: what is wrong` for each fault, exits 1 when there is one. The rules are in
RULES at the end. When a rule makes the code worse, break it and say why, on the line or in the
comment right above it (in the opening comment for a rule about a whole file):

    // tidy: allow function-size: one flat switch over all reasons reads best in one piece
"""
import argparse
import bisect
import pathlib
import re
import sys
from dataclasses import dataclass, field

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70
HEADER_COMMENT_MIN, HEADER_COMMENT_MAX = 3, 10
OPENING_LINES = 15  # where an exception for a whole file is looked for

# The arrows: which rooms a room may include, beside itself, `base` and (mostly) `model`.
ARROWS = {
    "base": [],
    "model": [],
    "contract": [],
    "net": [],
    "engine": [],
    "state": [],
    "sim": ["engine", "state"],
    "device": [],
    "monitor": ["device"],
    "pools": ["device", "contract", "net"],
    "tune": [],
    "planner": [],
    "control": ["engine", "state", "sim", "pools", "monitor", "contract", "tune", "planner"],
    "api": ["net", "control"],
    "train": ["contract"],
    "gpushare": [],
    "shim": ["contract"],
    "client": ["net", "contract"],
    "cli": ["client", "sim", "engine", "state", "tune", "planner"],
    "daemon": None,  # wires everything
}
WITHOUT_MODEL = {"base", "contract", "net", "train", "shim", "gpushare"}

AMBIENT = re.compile(
    r"\b\w+_clock::now\b"
    r"|(?:(?<![\w.>:])(?<!Random )|\bstd::|(?<!\w)::)(?:time|rand|srand|random|srandom)\s*\("
    r"|\b(?:gettimeofday|clock_gettime|timespec_get|getrandom)\s*\("
    r"|\brandom_device\b|\bmt19937(?:_64)?\b|\bdefault_random_engine\b|\bminstd_rand0?\b"
    r"|\bstd::\w+_distribution\b"
)
OUTPUT = re.compile(
    r"\bstd::(?:cout|cerr|clog)\b"
    r"|(?:(?<![\w.>:])(?<!Random )|\bstd::|(?<!\w)::)(?:printf|fprintf|puts|fputs|putchar|vprintf|vfprintf)\s*\("
    r"|\bfmt::print(?:ln)?\s*\("
)
LEFTOVER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
DEAD_CODE = re.compile(
    r"^\s*//+\s*(?:"
    r"#\s*(?:include|if|ifdef|define|endif)\b"
    r"|(?:return|break|continue|delete|using namespace)\b[^.]*;\s*$"
    r"|(?:if|for|while|switch)\s*\(.*\)\s*\{\s*$"
    r"|[\w:<>,*&\[\]().>-]+\s*(?:[-+*/|&]?=)[^=].*;\s*$"
    r"|(?:const\s+)?[\w:<>]+[*&]?\s+\w+\s*(?:=.*|\{.*\});\s*$"
    r"|[\w:.>-]+\(.*\);\s*$"
    r"|\}\s*(?:else\s*\{)?\s*$"
    r")"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ALLOW = re.compile(r"//\s*tidy: allow ([\w-]+): \S")


def is_test(path):
    return path.name.endswith("_test.cc") or path.name.endswith("_fuzz.cc") or path.parts[0] == "tests"


@dataclass
class Source:
    """One C++ file: its lines, and the same lines with comments and literals blanked out."""

    path: pathlib.PurePath  # from the root of the tree
    text: str
    lines: list = field(init=False)
    code: str = field(init=False)
    code_lines: list = field(init=False)

    def __post_init__(self):
        self.lines = self.text.splitlines()
        self.code = blank(self.text)
        self.code_lines = self.code.splitlines()

    @property
    def room(self):
        """The room it lives in, or None outside src/."""
        return self.path.parts[1] if self.path.parts[0] == "src" and len(self.path.parts) > 2 else None

    def allows(self, rule, line):
        """Whether an exception with a reason covers `line`; line 1 is the file as a whole."""
        def names(text):
            found = ALLOW.search(text)
            return found is not None and found.group(1) == rule

        if line <= 1 and any(names(text) for text in self.lines[:OPENING_LINES]):
            return True
        if 0 < line <= len(self.lines) and names(self.lines[line - 1]):
            return True
        above = line - 2
        while 0 <= above < len(self.lines) and self.lines[above].lstrip().startswith("//"):
            if names(self.lines[above]):
                return True
            above -= 1
        return False


# Raw strings first: what they hold looks like anything. A quote between digits is a separator.
TOKENS = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def blank(text):
    """The text with comments and literals replaced by spaces; every character keeps its place."""

    def spaces(found):
        token = found.group(0)
        kept = re.sub(r"[^\n]", " ", token)
        return kept if token.startswith("/") else '"' + kept[1:-1] + '"'

    # An include is the one literal whose content matters; INCLUDE reads it from the raw lines.
    return TOKENS.sub(spaces, text)


def without_parentheses(text):
    """What stands outside all parentheses."""
    out, depth = [], 0
    for char in text:
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif depth == 0:
            out.append(char)
    return "".join(out)


SCOPE = re.compile(r"(?:^|\s)(?:namespace|class|struct|union|enum|extern)\b")
FUNCTION_END = re.compile(
    r"\)\s*(?:const|noexcept(?:\s*\(.*\))?|override|final|mutable|&&?|try|\s)*"
    r"(?:->\s*[\w:<>,*&\s()\[\]]+|requires\b.*|:[^:].*)?\s*$",
    re.DOTALL,
)


def opens(head, before):
    """What a `{` outside functions begins: "scope", "function" or "data".

    `head` is the code since the last statement ended, `before` the character in front of the brace.
    """
    head = re.sub(r"^(?:\s*(?:#[^\n]*\n|public:|private:|protected:))+", "", head).strip()
    if re.match(r"\w|>|\(|,", before) or before in "=\"":
        return "data"  # a braced value: clang-format puts a space before a body
    plain = without_parentheses(re.sub(r"operator\s*[^\s\w(]+", "operator", head))
    plain = re.sub(r"^template\s*<.*?>\s*(?=[\w\[:])", "", plain, flags=re.DOTALL)
    if "=" in plain:
        return "function" if re.search(r"=\s*\[[^\]]*\]\s*(?:\(|$|mutable|->)", head) else "data"
    if FUNCTION_END.search(head):
        return "function"
    return "scope" if SCOPE.search(head) else "data"


def functions(code):
    """(first line, last line) of each outermost function body with its head, by matching braces."""
    starts = [0] + [i + 1 for i, char in enumerate(code) if char == "\n"]

    def line_of(offset):
        return bisect.bisect_right(starts, offset)

    stack, head_from, found, parentheses = [], 0, [], 0
    for offset, char in enumerate(code):
        inside = any(kind != "scope" for kind, _ in stack)
        if char == "{":
            kind = "block"
            if not inside:
                kind = "data" if parentheses else opens(code[head_from:offset], code[max(0, offset - 1)])
            stack.append((kind, head_from))
            if kind == "scope":
                head_from = offset + 1
        elif char == "}" and stack:
            kind, begun = stack.pop()
            if kind == "function":
                head = re.match(r"(?:\s|#[^\n]*\n|public:|private:|protected:|;)*", code[begun:])
                found.append((line_of(begun + head.end()), line_of(offset)))
            if kind in ("function", "scope"):
                head_from = offset + 1
        elif inside:
            continue
        elif char == "(":
            parentheses += 1
        elif char == ")":
            parentheses = max(0, parentheses - 1)
        elif char == ";" and parentheses == 0:
            head_from = offset + 1
    return found


# Rules over one file yield (line, message).


def arrows(source):
    """a room includes itself, base, model where it may, and the rooms in its row"""
    if source.path.parts[0] != "src":
        return
    room = source.room
    if room not in ARROWS:
        yield 1, f"src/{room} is no room of the house; add it to ARROWS and to docs/architecture.md"
        return
    allowed = set(ARROWS) if ARROWS[room] is None else {room, "base", *ARROWS[room]}
    if room not in WITHOUT_MODEL:
        allowed.add("model")
    for number, line in enumerate(source.lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(1).split("/")[0]
        if "/" not in found.group(1) or target not in ARROWS:
            yield number, f'include "{found.group(1)}" by the name of its room, from src/'
        elif target not in allowed:
            yield number, f"{room} may not include {target}; it may include {', '.join(sorted(allowed - {room}))}"


def file_size(source):
    """a file that is no test has at most 700 lines"""
    if not is_test(source.path) and len(source.lines) > FILE_LINES_MAX:
        yield 1, f"{len(source.lines)} lines; {FILE_LINES_MAX} is the most, under 400 is the aim"


def function_size(source):
    """a function has at most 70 lines"""
    for first, last in functions(source.code):
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield first, f"a function of {last - first + 1} lines; {FUNCTION_LINES_MAX} is the most"


def ambient(source):
    """time and randomness come from base: Clock and Random"""
    if source.room == "base":
        return
    for number, line in enumerate(source.code_lines, 1):
        found = AMBIENT.search(line)
        if found:
            yield number, f"{found.group(0).strip()}: take a Clock or a Random from base"


def unordered(source):
    """the engine iterates in one order on every machine"""
    if source.room != "engine":
        return
    for number, line in enumerate(source.code_lines, 1):
        found = re.search(r"\bunordered_(?:multi)?(?:map|set)\b", line)
        if found:
            yield number, f"{found.group(0)}: its order differs between libraries; use a vector or a map"


def header_comment(source):
    """a header opens with a comment of three to ten lines"""
    if source.path.suffix != ".h":
        return
    count = 0
    while count < len(source.lines) and source.lines[count].startswith("//"):
        count += 1
    if not HEADER_COMMENT_MIN <= count <= HEADER_COMMENT_MAX:
        yield 1, (f"opens with {count} lines of // comment; {HEADER_COMMENT_MIN} to {HEADER_COMMENT_MAX} say what "
                  "it decides, under which assumptions, which invariant it keeps, what it costs")


def pragma_once(source):
    """a header says #pragma once"""
    if source.path.suffix == ".h" and "#pragma once" not in source.lines:
        yield 1, "no #pragma once"


def debugging(source):
    """nothing prints but the programs; nothing is left for later"""
    prints = (source.room in ("cli", "daemon") or source.path.name == "main.cc"
              or source.path.as_posix() == "src/base/check.cc" or source.room is None)
    for number, line in enumerate(source.code_lines, 1):
        found = None if prints or is_test(source.path) else OUTPUT.search(line)
        if found:
            yield number, f"{found.group(0).strip()}: return values; only the programs print"
    for number, line in enumerate(source.lines, 1):
        found = LEFTOVER.search(line)
        if found:
            yield number, f"{found.group(0)}: finish it or open an issue"


def dead_code(source):
    """no code in comments"""
    for number, line in enumerate(source.lines, 1):
        if DEAD_CODE.match(line):
            yield number, "this comment reads like code; the history keeps what was deleted"


# Rules over the tree yield (path, line, message).


def unlisted(root, sources):
    """every .cc file is in a CMakeLists.txt, so that it is built"""
    lists = {}
    for source in sources:
        if source.path.suffix != ".cc":
            continue
        folder = source.path.parent
        while folder.parts and not (root / folder / "CMakeLists.txt").is_file():
            folder = folder.parent
        if folder not in lists:
            file = root / folder / "CMakeLists.txt"
            lines = file.read_text().splitlines() if file.is_file() else []
            lists[folder] = set(re.split(r"[\s()\"]+", "\n".join(line.split("#")[0] for line in lines)))
        if source.path.relative_to(folder).as_posix() not in lists[folder]:
            yield source.path, 1, f"not listed in {(folder / 'CMakeLists.txt').as_posix()}"


RULES = {
    "arrows": arrows,
    "file-size": file_size,
    "function-size": function_size,
    "ambient": ambient,
    "unordered": unordered,
    "header-comment": header_comment,
    "pragma-once": pragma_once,
    "debugging": debugging,
    "dead-code": dead_code,
}
TREE_RULES = {"unlisted": unlisted}


def read_sources(root):
    for top in ("src", "tests", "bench"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc") and path.is_file():
                yield Source(path.relative_to(root), path.read_text(encoding="utf-8"))


def check(root):
    """(number of files, faults as (path, line, rule, message))"""
    sources = list(read_sources(root))
    faults = []
    for source in sources:
        for name, rule in RULES.items():
            for line, message in rule(source):
                if not source.allows(name, line):
                    faults.append((source.path.as_posix(), line, name, message))
    for name, rule in TREE_RULES.items():
        for path, line, message in rule(root, sources):
            faults.append((path.as_posix(), line, name, message))
    return len(sources), sorted(faults)


def main():
    parser = argparse.ArgumentParser(description="checks the house rules")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--rules", action="store_true", help="print the rules and stop")
    options = parser.parse_args()
    if options.rules:
        for name, rule in {**RULES, **TREE_RULES}.items():
            print(f"{name:16} {rule.__doc__}")
        return 0
    count, faults = check(options.root)
    for path, line, name, message in faults:
        print(f"{path}:{line}: {name}: {message}")
    print(f"tidy: {count} files, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
