// RuntimeHistory: how long a job will run, from how long jobs like it have run.
//
// Like it are, as far as there are enough of them: those of its user and queue with its name
// (numbers at the end of a name make no difference) and its GPUs; with its name; with its GPUs;
// those of its queue with its GPUs; all with its GPUs. The latest of them count, and the one in the
// middle is the answer. A wrong answer may cost the order of things, never their correctness.
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
  std::int64_t jobs = 0;  // that it follows from
};

class RuntimeHistory {
 public:
  void Add(const RuntimeKind& kind, std::int64_t ran_ms);
  std::optional<RuntimeGuess> Guess(const RuntimeKind& kind) const;

 private:
  std::map<std::string, std::deque<std::int64_t>> by_key_;
  std::deque<std::string> keys_;  // in the order in which they came; the oldest are forgotten
};

}  // namespace muster::engine
