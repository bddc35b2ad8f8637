// PlacementPolicy: where the next pod of the openb experiment goes.
//
// Most policies give each node that fits an integer score; the highest wins, the first node of the
// list where several have it (the list has one random order per run, and this rule decides the
// published results). Such a policy only says what one node is worth; ScoredPolicy keeps the scores
// of each shape and asks again only for nodes that changed, so a pod costs one pass over an array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "engine/policy.h"
#include "sim/openb/cluster.h"
#include "sim/openb/target.h"

namespace muster::sim {

// The largest node of the cluster that the rules were published for.
inline constexpr std::int64_t kLargestCpuMilli = 128'000;
inline constexpr std::int64_t kLargestGpuMilli = 8'000;

struct PodPlace {
  std::size_t node = 0;
  std::uint32_t gpu = 0;  // for a share
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  // Told of every pod, before it is placed and whether or not it fits.
  virtual void Arrives(std::span<const NodeState> /*nodes*/, std::span<const PodShape> /*shapes*/,
                       std::uint32_t /*shape*/) {}
  // A node that fits; nothing: there is none.
  virtual std::optional<PodPlace> Choose(std::span<const NodeState> nodes,
                                         std::span<const PodShape> shapes, std::uint32_t shape) = 0;
};

class ScoredPolicy : public PlacementPolicy {
 public:
  std::optional<PodPlace> Choose(std::span<const NodeState> nodes, std::span<const PodShape> shapes,
                                 std::uint32_t shape) final;

 protected:
  struct Judgement {
    std::int64_t score = 0;
    std::uint32_t gpu = 0;
  };
  // What the policy says of a node as it is; also kept until the node changes.
  virtual double Value(const NodeState& /*node*/) const { return 0; }
  // The pod fits on the node.
  virtual Judgement Judge(const NodeState& node, const PodShape& pod, double value) const = 0;

 private:
  struct Known {
    std::int64_t score = 0;
    std::uint32_t gpu = 0;
    std::uint32_t version = ~0U;  // of the node when it was judged
  };
  struct Valued {
    double value = 0;
    std::uint32_t version = ~0U;
  };
  std::vector<std::vector<Known>> known_;  // by shape and node
  std::vector<Valued> values_;             // by node
};

struct PolicyContext {
  const TargetWorkload& target;
  Random& random;
  engine::Policy muster = {};  // how `muster` decides
};

// An unknown name is an error that lists those there are.
Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name,
                                                             const PolicyContext& context);
std::span<const std::string_view> PlacementPolicyNames();

}  // namespace muster::sim
