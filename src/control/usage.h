// Usage: GPU time of jobs that ended since a moment, and of those that have not ended.
//
// Jobs are added one by one, in any order and over as many turns as it takes: history may be long,
// and nobody should wait for a sum. By the places that workers had last: exact for gangs of one
// size, near for those that changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/access.h"
#include "model/document.h"

namespace muster::control {

class Usage {
 public:
  // `by` is user, queue or job; only jobs that `access` sees are counted.
  Usage(Access access, std::string by, std::int64_t since_ms);

  bool Wants(const std::string& user, const std::string& queue, std::int64_t ended_ms) const;
  void Add(const state::JobRecord& job, std::int64_t now_ms);
  std::vector<model::DocNode> View() const;
  const std::string& by() const { return by_; }

 private:
  struct Used {
    std::string name;
    std::int64_t gpu_ms = 0, jobs = 0, running = 0;
  };
  Access access_;
  std::string by_;
  std::int64_t since_ms_;
  std::map<std::string, Used> used_;  // by id: of a job its number, else the name
};

}  // namespace muster::control
