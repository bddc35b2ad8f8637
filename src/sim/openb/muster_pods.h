// MusterPods: where the engine that runs in production puts the pods.
//
// The nodes of the experiment are nodes of an engine::Cluster under the policy that is given, in
// the same order; a pod is a job of one worker that is not preemptible, in one queue whose quota is
// without end, so that nothing stands in its way but room and nobody moves. It is submitted as it
// arrives, a cycle decides, and one without room is put on hold: known, but not tried again. Of
// several GPU types that a pod names the engine prefers the first.
#pragma once

#include <memory>

#include "engine/cluster.h"
#include "engine/cycle.h"
#include "sim/openb/policy.h"

namespace muster::sim {

class MusterPods final : public PlacementPolicy {
 public:
  explicit MusterPods(const engine::Policy& policy = {}) : policy_(policy) {}
  void Arrives(std::span<const NodeState> nodes, std::span<const PodShape> shapes,
               std::uint32_t shape) override;
  std::optional<PodPlace> Choose(std::span<const NodeState> nodes, std::span<const PodShape> shapes,
                                 std::uint32_t shape) override;

 private:
  void Build(std::span<const NodeState> nodes);

  const engine::Policy policy_;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::int64_t arrived_ = 0;
  engine::JobId newest_ = engine::kNone;
};

}  // namespace muster::sim
