// TargetWorkload: which pods are expected, and how much idle GPU of a node they cannot use.
//
// The shapes (cores, GPUs, types; not memory) that make up 95 % of the trace, most frequent first,
// with their popularity. The fragmentation of a node is the idle GPU that an expected pod cannot
// use there, averaged by popularity: all of it where the pod cannot run or asks for no GPU,
// otherwise what is idle on GPUs with too little room for it (FGD, ATC '23). Pods that differ only
// in cores are summed up beforehand, so that a node costs one look at each kind of GPU request.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/openb/cluster.h"

namespace muster::sim {

class TargetWorkload {
 public:
  struct Expected {
    PodShape shape;  // memory_mib is 0: it does not tell shapes apart here
    double popularity = 0;
  };

  explicit TargetWorkload(const OpenbTrace& trace);

  const std::vector<Expected>& expected() const { return expected_; }
  // In milli.
  double Fragmentation(const NodeState& node) const;

 private:
  // Expected pods that ask the same of GPUs.
  struct Group {
    std::uint32_t gpus;
    std::int64_t gpu_milli;
    std::uint64_t types;
    std::vector<std::int64_t> cpu_milli;  // ascending
    std::vector<double> popularity;       // of the pods that ask for at most so many cores
    double PopularityWithin(std::int64_t cpu_milli) const;
  };

  std::vector<Expected> expected_;
  std::vector<Group> groups_;
};

}  // namespace muster::sim
