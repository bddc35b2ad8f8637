#!/usr/bin/env python3
"""Each rule of tidy must be able to fail, and must leave alone what it is not about."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import tidy  # noqa: E402  (it lies beside this file)

HEADER = "// Thing: what it decides.\n//\n// Costs nothing.\n#pragma once\n"


def body(lines, head="void F() {"):
    """A function that is `lines` lines long."""
    return "\n".join([head] + ["  G();"] * (lines - 2) + ["}"]) + "\n"


class TidyTest(unittest.TestCase):
    def faults(self, files, listed=True):
        """The faults of a tree with these files, as (path, line, rule)."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            if listed:
                for path in files:
                    if path.endswith(".cc"):
                        folder = root.joinpath(*pathlib.PurePath(path).parts[:2])
                        with (folder / "CMakeLists.txt").open("a") as out:
                            out.write((root / path).relative_to(folder).as_posix() + "\n")
            _, found = tidy.check(root)
            return [(path, line, rule) for path, line, rule, _ in found]

    def assertFault(self, rule, line, path, text):
        self.assertEqual(self.faults({path: text}), [(path, line, rule)])

    def assertClean(self, path, text):
        self.assertEqual(self.faults({path: text}), [])


class Arrows(TidyTest):
    def test_a_room_may_not_include_a_room_outside_its_row(self):
        self.assertFault("arrows", 1, "src/engine/a.cc", '#include "sim/b.h"\n')
        self.assertFault("arrows", 2, "src/base/a.cc", '#include "base/b.h"\n#include "model/c.h"\n')
        self.assertFault("arrows", 1, "src/api/a.cc", '#include "engine/b.h"\n')

    def test_arrows_are_direct_only(self):
        self.assertClean("src/api/a.cc", '#include "control/b.h"\n')
        self.assertClean("src/control/a.cc", '#include "pools/b.h"\n')
        self.assertFault("arrows", 1, "src/api/a.cc", '#include "pools/b.h"\n')

    def test_model_is_closed_to_those_below_the_contract(self):
        for room in ("contract", "net", "train", "shim", "gpushare"):
            self.assertFault("arrows", 1, f"src/{room}/a.cc", '#include "model/job.h"\n')
        self.assertClean("src/state/a.cc", '#include "model/job.h"\n')

    def test_every_room_may_include_itself_and_base(self):
        for room in tidy.ARROWS:
            self.assertClean(f"src/{room}/a.cc", f'#include "{room}/a.h"\n#include "base/result.h"\n')

    def test_the_daemon_wires_everything(self):
        self.assertClean("src/daemon/a.cc", "".join(f'#include "{room}/a.h"\n' for room in tidy.ARROWS))

    def test_tests_of_a_room_obey_it_and_tests_across_rooms_do_not(self):
        self.assertFault("arrows", 1, "src/engine/a_test.cc", '#include "sim/b.h"\n')
        self.assertClean("tests/properties/a_test.cc", '#include "sim/b.h"\n#include "engine/c.h"\n')

    def test_an_include_names_its_room(self):
        self.assertFault("arrows", 1, "src/engine/a.cc", '#include "b.h"\n')
        self.assertFault("arrows", 1, "src/engine/a.cc", '#include "../sim/b.h"\n')

    def test_a_folder_that_is_no_room(self):
        self.assertFault("arrows", 1, "src/utils/a.cc", "int x = 0;\n")


class Sizes(TidyTest):
    def test_a_file_over_the_limit(self):
        self.assertFault("file-size", 1, "src/base/a.cc", "int x = 0;\n" * 701)
        self.assertClean("src/base/a.cc", "int x = 0;\n" * 700)
        self.assertClean("src/base/a_test.cc", "int x = 0;\n" * 701)

    def test_a_function_over_the_limit(self):
        self.assertFault("function-size", 1, "src/base/a.cc", body(71))
        self.assertClean("src/base/a.cc", body(70))

    def test_a_function_is_found_wherever_it_stands(self):
        heads = [
            "int Thing::Count() const {",
            "Thing::Thing(int a) : a_(a), b_{1}, c_{Two(2)} {",
            "template <typename T = int>\nauto F(T value = {}) -> std::vector<T> {",
            "bool operator==(const A& a, const B& b) noexcept {",
            "TEST(Suite, Name) {",
            "const auto f = [](int a) {",
            "static std::map<int, std::string> Table(\n    int a,\n    int b) {",
        ]
        for head in heads:
            before = '#include "base/b.h"\n\nnamespace muster {\nenum class E { kA };\nint k[] = {1, 2};\n'
            text = before + body(71 - head.count("\n"), head) + "}\n"
            self.assertFault("function-size", 6, "src/base/a.cc", text)

    def test_a_method_inside_a_class(self):
        text = HEADER + "class A final : public B {\n public:\n" + body(71, "  int F() override {") + "};\n"
        self.assertFault("function-size", 7, "src/base/a.h", text)

    def test_classes_namespaces_and_tables_are_no_functions(self):
        inner = "  int x = 0;\n" * 80
        self.assertClean("src/base/a.cc", "namespace muster {\n" + inner + "}\n")
        self.assertClean("src/base/a.cc", "struct alignas(64) A {\n" + inner + "};\n")
        self.assertClean("src/base/a.cc", "constexpr std::array<int, 80> kTable = {\n" + "  1,\n" * 80 + "};\n")
        self.assertClean("src/base/a.cc", "const Table kTable{\n" + "  {1, 2},\n" * 80 + "};\n")

    def test_braces_in_literals_and_comments_do_not_count(self):
        text = "void F() {\n  G(\"}\", '{', R\"x({{)x\");  // }\n  /* } */\n  H(1'000, '\\'');\n}\n"
        self.assertClean("src/base/a.cc", text + body(70))
        self.assertFault("function-size", 6, "src/base/a.cc", text + body(71))


class Banned(TidyTest):
    def test_ambient_time_and_randomness(self):
        for call in (
            "std::chrono::steady_clock::now()",
            "std::chrono::system_clock::now()",
            "Clock::high_resolution_clock::now()",
            "time(nullptr)",
            "std::time(nullptr)",
            "::time(0)",
            "gettimeofday(&t, nullptr)",
            "clock_gettime(CLOCK_REALTIME, &t)",
            "rand()",
            "std::srand(1)",
            "std::random_device{}()",
            "std::mt19937 g(1)",
            "std::uniform_int_distribution<int>(1, 2)",
        ):
            self.assertFault("ambient", 1, "src/engine/a.cc", f"auto x = {call};\n")
            self.assertFault("ambient", 1, "tests/properties/a_test.cc", f"auto x = {call};\n")
            self.assertClean("src/base/a.cc", f"auto x = {call};\n")

    def test_what_only_looks_ambient(self):
        for text in ("job.time(1);", "job->rand();", "RunTime(1);", "wall_time(2);", "// rand() is banned",
                     'F("time(x)");', "clock.WallMs();"):
            self.assertClean("src/engine/a.cc", text + "\n")

    def test_unordered_containers_in_the_engine(self):
        self.assertFault("unordered", 1, "src/engine/a.cc", "std::unordered_map<int, int> m;\n")
        self.assertFault("unordered", 1, "src/engine/a.cc", "#include <unordered_set>\n")
        self.assertClean("src/sim/a.cc", "std::unordered_map<int, int> m;\n")

    def test_printing_outside_the_command_line(self):
        for call in ("std::cout << 1;", "std::cerr << 1;", 'printf("x");', 'std::fprintf(stderr, "x");',
                     'fmt::print("x");'):
            self.assertFault("debugging", 1, "src/engine/a.cc", call + "\n")
            for path in ("src/cli/a.cc", "src/base/check.cc", "src/engine/a_test.cc", "tests/swarm/a.cc"):
                self.assertClean(path, call + "\n")
        self.assertClean("src/engine/a.cc", "std::snprintf(b, 9, f);\n")

    def test_what_was_left_for_later(self):
        for mark in ("TO" + "DO", "FIX" + "ME", "X" * 3):
            self.assertFault("debugging", 1, "src/cli/a.cc", f"int x = 0;  // {mark}: later\n")

    def test_code_in_comments(self):
        for text in ("// int x = 3;", "//  return x;", "// Place(job);", "// if (x) {", '// #include "a.h"', "// }",
                     "// a.b = c->d;"):
            self.assertFault("dead-code", 1, "src/engine/a.cc", text + "\n")

    def test_prose_in_comments(self):
        for text in ("// Returns the node;", "// see Place(job), which decides;", "// for (almost) all jobs",
                     "// 2500 -> 2.5", "}  // namespace muster", "// a == b here", "// If it fails, it returns."):
            self.assertClean("src/engine/a.cc", text + "\n")


class Headers(TidyTest):
    def test_a_header_without_its_comment(self):
        self.assertFault("header-comment", 1, "src/base/a.h", "#pragma once\n")
        self.assertFault("header-comment", 1, "src/base/a.h", "// Short.\n// Too short.\n#pragma once\n")
        self.assertFault("header-comment", 1, "src/base/a.h", "// Long.\n" * 11 + "#pragma once\n")
        self.assertClean("src/base/a.h", HEADER)

    def test_a_header_without_its_guard(self):
        self.assertFault("pragma-once", 1, "src/base/a.h", HEADER.replace("#pragma once\n", ""))


class Lists(TidyTest):
    def test_a_source_that_no_list_names(self):
        tree = {"src/base/a.cc": "int x = 0;\n", "src/base/CMakeLists.txt": "muster_room(SOURCES b.cc # a.cc\n)\n"}
        self.assertEqual(self.faults(tree, listed=False), [("src/base/a.cc", 1, "unlisted")])

    def test_a_source_in_a_folder_of_the_room(self):
        tree = {"src/pools/local/a.cc": "int x = 0;\n", "src/pools/CMakeLists.txt": "local/a.cc\n"}
        self.assertEqual(self.faults(tree, listed=False), [])
        tree["src/pools/CMakeLists.txt"] = "a.cc\n"
        self.assertEqual(self.faults(tree, listed=False), [("src/pools/local/a.cc", 1, "unlisted")])


class Exceptions(TidyTest):
    def test_an_exception_needs_a_reason_and_the_right_rule(self):
        self.assertClean("src/base/a.cc", "// tidy: allow function-size: reads best in one piece\n" + body(71))
        self.assertFault("function-size", 2, "src/base/a.cc", "// tidy: allow function-size:\n" + body(71))
        self.assertFault("function-size", 2, "src/base/a.cc", "// tidy: allow file-size: because\n" + body(71))

    def test_an_exception_covers_its_own_place_only(self):
        text = "rand();  // tidy: allow ambient: shows it\nrand();\n"
        self.assertFault("ambient", 2, "src/engine/a.cc", text)

    def test_an_exception_for_a_whole_file(self):
        text = "// Table.\n// tidy: allow file-size: generated facts\n" + "int x = 0;\n" * 701
        self.assertClean("src/base/a.cc", text)


class Program(TidyTest):
    def test_the_exit_status_says_whether_something_was_found(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "src/base").mkdir(parents=True)
            command = [sys.executable, "-B", str(HERE / "tidy.py"), "--root", name]
            nothing = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(nothing.returncode, 1, "no file at all is a mistake in the path")
            (root / "src/base/a.h").write_text(HEADER)
            self.assertEqual(subprocess.run(command, capture_output=True, check=False).returncode, 0)
            (root / "src/base/a.h").write_text("int x = 0;\n")
            bad = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(bad.returncode, 1)
            self.assertIn("src/base/a.h:1: pragma-once: ", bad.stdout)

    def test_every_rule_has_a_sentence(self):
        for rule in {**tidy.RULES, **tidy.TREE_RULES}.values():
            self.assertTrue(rule.__doc__)


if __name__ == "__main__":
    unittest.main()
