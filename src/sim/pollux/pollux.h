// Pollux: GPUs to the jobs whose goodput gains most, by a genetic search over whole allocations.
//
// A state is a matrix of GPUs by job and node. Its fitness is the harmonic mean of the jobs'
// speed-ups over their fair share, less for jobs that would restart. A hundred states are crossed,
// changed and repaired for a hundred generations; the last interval's states are where it begins.
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
  class Search;
  using State = std::vector<std::uint8_t>;  // by job, then by node

  Random random_;
  std::vector<State> population_;               // of the last interval
  std::vector<const TrainJob*> population_of_;  // its rows
};

}  // namespace muster::sim
