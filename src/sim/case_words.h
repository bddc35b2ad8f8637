// Lines of a case file: words, and the values that stand in them.
//
// A line is a verb, plain words and `key=value` pairs; `#` begins a comment. A LineReader hands out
// what a verb asks for by name and reports the rest: whatever was never asked for is an error, and
// what was asked for is the list of what is allowed. All mistakes of a file are collected, each
// with its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/node.h"
#include "model/resources.h"

namespace muster::sim {

struct CaseProblems {
  std::vector<std::string> lines;  // "12: what is wrong; allowed: ..."
  void Add(int line, const std::string& what, const std::string& allowed = {});
};

struct CaseWords {
  int line = 0;
  std::string verb;
  std::vector<std::string> plain;
  std::vector<std::pair<std::string, std::string>> pairs;
};

// The lines that say something.
std::vector<CaseWords> CutCase(std::string_view text, CaseProblems& problems);

struct CountRange {
  int least = 1;
  int most = 1;
};

// "a:0-1+4" is one worker on GPUs 0, 1 and 4 of node a; "a" lets the runner choose; "a*4" is that
// four times.
struct CasePlace {
  std::string node;
  std::uint64_t devices = 0;
  bool chosen = false;  // `devices` are stated
};

class LineReader {
 public:
  LineReader(const CaseWords& words, CaseProblems& problems)
      : words_(words), problems_(problems), taken_(words.pairs.size(), false) {}

  int line() const { return words_.line; }
  const std::vector<std::string>& plain() const { return words_.plain; }

  // Plain words: all of them are names, or only the first, the others being flags.
  std::vector<std::string> Names(std::string_view what);
  std::string Name(std::string_view what);
  bool Flag(std::string_view word);

  std::optional<std::string> Text(std::string_view key);
  std::optional<std::int64_t> Whole(std::string_view key);
  std::optional<std::int64_t> Milli(std::string_view key);
  std::optional<std::int64_t> Bytes(std::string_view key);
  std::optional<std::int64_t> DurationMs(std::string_view key);
  std::optional<CountRange> Range(std::string_view key);
  std::vector<std::string> List(std::string_view key);  // a,b
  model::Labels Labels(std::string_view key);           // zone:a,rack:r1
  model::Amounts Amounts(std::string_view key);         // 4,H100:2,fpga:1
  std::vector<CasePlace> Places(std::string_view key);  // a:0-1,b*2
  // The position of the value among the choices.
  std::optional<std::size_t> Choice(std::string_view key, const std::vector<std::string>& choices);

  void Problem(const std::string& what, const std::string& allowed = {}) {
    problems_.Add(words_.line, what, allowed);
  }
  void Finish();  // complains about what nobody asked for

 private:
  template <typename Parse>
  auto Parsed(std::string_view key, Parse parse, const char* allowed)
      -> decltype(parse(std::string_view{}));

  const CaseWords& words_;
  CaseProblems& problems_;
  std::vector<bool> taken_;
  std::size_t names_ = 0;           // plain words that are names
  std::vector<std::string> flags_;  // asked for
  std::vector<std::string> keys_;   // asked for
};

std::optional<std::int64_t> ParseWhole(std::string_view text);
std::vector<std::string> SplitAt(std::string_view text, char separator);

}  // namespace muster::sim
