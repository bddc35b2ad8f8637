// RuntimeHistory: how long a job will run, from how long jobs like it have run.
//
// Like it are, as far as there are enough of them: (1) those of its user and queue with its name
// (numbers at the end of a name make no difference) and its GPUs; (2) with its name; (3) with its
// GPUs; (4) those of its queue with its GPUs; (5) all with its GPUs. The latest of them count, and
// the one in the middle is the answer. A wrong answer may cost the order of things, never their
// correctness. How wrong answers are is measured when a job ends that had been given one, for each
// kind of likeness apart: a guess from the name is no excuse for one from the GPUs alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/job.h"

namespace muster::engine {

struct RuntimeKind {
  std::string user, queue, name;
  std::int64_t gpu_milli = 0;  // of all its workers
};

RuntimeKind KindOf(const model::Job& spec, const std::string& user);

struct RuntimeGuess {
  std::int64_t likely_ms = 0;
  std::int64_t jobs = 0;   // that it follows from
  std::uint32_t from = 0;  // the likeness of those, as counted above; 0: there is no guess
};

// Up or down, in the middle of those guesses: 2000 is twice or half as long.
struct RuntimeError {
  std::int64_t factor_milli = 0;
  std::int64_t guesses = 0;
};

class RuntimeHistory {
 public:
  // `given`: what had been guessed of it.
  void Add(const RuntimeKind& kind, std::int64_t ran_ms, const RuntimeGuess& given = {});
  std::optional<RuntimeGuess> Guess(const RuntimeKind& kind) const;
  // Of the latest such guesses; none while they are few.
  std::optional<RuntimeError> ErrorOf(const RuntimeKind& kind, std::uint32_t from) const;

 private:
  struct Known {
    std::deque<std::int64_t> ran_ms;
    std::vector<std::int64_t> factors_milli;  // most kinds have none: a deque is never small
    bool again = false;                       // it came again since it was last looked at
  };

  std::map<std::string, Known> by_key_;
  std::deque<std::string> keys_;  // in the order in which they came; what came once is forgotten
};

}  // namespace muster::engine
