// MusterFit: the node, and for a share the GPU, where the pods to come lose the least.
//
// Against FGD: a rest of a GPU is judged by all that may still fill it, not by the next pod alone,
// and cores and memory count before they are used up. So pods that ask for many cores go where
// cores are plenty, and pods without GPU to where no idle GPU needs the cores. Nothing is known in
// advance: shapes are counted as they arrive, and the tables made anew whenever there are four
// times as many pods. A score costs a pass over the node's GPUs and the shapes seen.
#pragma once

#include <vector>

#include "sim/openb/policy.h"

namespace muster::sim {

// What a node is worth is the GPU that pods can still use on it: the mean over the shapes m seen,
// by popularity, of min(fillable, cores * GPU per core of m, memory * GPU per memory of m), 0 where
// m lacks the GPUs or the type. `fillable` is the room of its GPUs less the waste W that each has
// to expect: offered kOffers more shares, by popularity, it takes those that make its waste
// smaller. W(0, r) is r, and W(k, r) the mean over shares s of the smaller of W(k-1, r) and W(k-1,
// r - s). A whole GPU wastes nothing where whole ones are asked for. A share takes the GPU where
// waste grows least; a pod goes where worth falls least, in steps of kStep, to the first of equals.
class MusterFit final : public ScoredPolicy {
 public:
  MusterFit();

  void Arrives(std::span<const PodShape> shapes, std::uint32_t shape) override;
  // What a GPU with this much room will probably never give away, in milli.
  double ExpectedWaste(std::int64_t room) const { return waste_[static_cast<std::size_t>(room)]; }

 protected:
  double Value(const NodeState& node) const override;
  Judgement Judge(const NodeState& node, const PodShape& pod, double value) const override;

 private:
  // Shapes that ask the same of GPUs.
  struct Kind {
    std::uint32_t gpus;
    std::int64_t gpu_milli;
    std::uint64_t types;
    struct One {
      double popularity;
      double gpu_per_cpu;
      double gpu_per_memory;
    };
    std::vector<One> shapes;
  };

  void Learn(std::span<const PodShape> shapes);
  void LearnWaste(std::span<const PodShape> shapes);

  std::vector<std::uint32_t> seen_;  // by shape
  std::uint32_t arrived_ = 0;
  std::uint32_t learn_at_ = 1;
  std::vector<Kind> kinds_;
  std::vector<double> waste_;  // by room
};

}  // namespace muster::sim
