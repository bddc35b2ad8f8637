// Pollux: GPUs to the jobs whose goodput gains most, by a genetic search over whole allocations.
//
// A state is a matrix of GPUs by job and node, the jobs in the order of the service that they have
// had. It is judged by two measures: the harmonic mean of the jobs' speed-ups over their fair
// share, less for jobs that would restart, and the speed-up for each GPU of the nodes in use. A
// hundred states are crossed, changed and repaired for a hundred generations; the best by the first
// measure is taken, and the best front is where the next interval begins.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "sim/pollux/policy.h"

namespace muster::sim {

class Pollux : public AllocationPolicy {
 public:
  explicit Pollux(std::uint64_t seed) : random_(seed) {}
  bool adaptive() const override { return true; }
  Allocation Decide(const Scene& scene) override;

 private:
  class Problem;
  class Search;
  using State = std::vector<std::uint8_t>;  // by job, then by node

  std::vector<State> LastFront(const Scene& scene, const std::vector<const TrainJob*>& jobs) const;

  Random random_;
  std::vector<State> front_;               // of the last interval
  std::vector<const TrainJob*> front_of_;  // its rows
};

}  // namespace muster::sim
