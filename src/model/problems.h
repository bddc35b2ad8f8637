// Problems: everything that is wrong with one file, found in one pass.
//
// A problem stands at a line and a column (both from 1, the column counted in characters), says
// what is wrong and, apart, what is allowed there, so that a screen can show both as it likes.
// Warnings do not make a file invalid. The list is bounded: a hostile file cannot make a report
// larger than it is useful to a person. Texts quoted from the file are shortened and never split a
// character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::model {

struct Mark {
  int line = 1;
  int column = 1;
  friend bool operator==(const Mark&, const Mark&) = default;
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

enum class Severity : std::uint8_t { kError, kWarning };

struct Problem {
  Mark mark;
  Severity severity = Severity::kError;
  std::string message;
  std::string allowed;    // empty where the message says it all
  std::string path = {};  // "jobs[1].resources.gpus"; empty: the file as a whole
  friend bool operator==(const Problem&, const Problem&) = default;
};

class Problems {
 public:
  static constexpr std::size_t kMost = 100;

  void Error(Mark mark, std::string message, std::string allowed = {});
  void Warning(Mark mark, std::string message, std::string allowed = {});

  bool HasErrors() const { return errors_ > 0; }
  std::size_t Errors() const { return errors_; }
  // Further ones are only counted, so that their texts need not be made.
  bool Full() const { return items_.size() >= kMost; }

  // A key that the map at `mark` must have.
  void Missing(Mark mark, std::string_view key, std::string message, std::string allowed);
  // Completes the paths, by what `path_at` says of a place and of whether a map is meant there.
  void Locate(const std::function<std::string(Mark, bool is_map)>& path_at);

  // In the order of the file, each once; a last entry says so when some were left off.
  std::vector<Problem> Sorted() const;

 private:
  void Add(Problem problem);

  std::vector<Problem> items_;
  std::size_t errors_ = 0;
  std::size_t left_off_ = 0;
};

// The first error as one of ours, with the count of the others and all of them in `all`; call it
// only when there is one.
Error ToError(const Problems& problems);

// "error: unknown key `gpu`; did you mean `gpus`? (allowed: gpus, cpus)".
std::string Describe(const Problem& problem);

// The text in back quotes, control characters replaced, cut to a readable length.
std::string Quoted(std::string_view text);

// The candidate that a typing mistake could have turned into `text`; empty when none is near.
std::string_view Nearest(std::string_view text, std::span<const std::string_view> candidates);

// "a, b or c".
std::string JoinChoices(std::span<const std::string_view> choices);

}  // namespace muster::model
