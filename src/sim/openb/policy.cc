#include "sim/openb/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>

#include "sim/openb/best_fit.h"
#include "sim/openb/clustering.h"
#include "sim/openb/dot_product.h"
#include "sim/openb/fgd.h"
#include "sim/openb/muster_pods.h"
#include "sim/openb/packing.h"
#include "sim/openb/random_fit.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kDoesNotFit = std::numeric_limits<std::int64_t>::min();

constexpr std::array<std::string_view, 7> kNames = {
    "random", "best-fit", "dot-product", "clustering", "packing", "fgd", "muster"};

}  // namespace

std::optional<PodPlace> ScoredPolicy::Choose(std::span<const NodeState> nodes,
                                             std::span<const PodShape> shapes,
                                             std::uint32_t shape) {
  known_.resize(shapes.size());
  auto& known = known_[shape];
  known.resize(nodes.size());
  values_.resize(nodes.size());
  std::int64_t best_score = kDoesNotFit;
  std::size_t best = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Known& one = known[i];
    if (one.version != nodes[i].version) {
      one = {kDoesNotFit, 0, nodes[i].version};
      if (nodes[i].Fits(shapes[shape])) {
        Valued& valued = values_[i];
        if (valued.version != nodes[i].version) valued = {Value(nodes[i]), nodes[i].version};
        const Judgement judgement = Judge(nodes[i], shapes[shape], valued.value);
        one.score = judgement.score;
        one.gpu = judgement.gpu;
      }
    }
    if (one.score > best_score) {
      best_score = one.score;
      best = i;
    }
  }
  if (best_score == kDoesNotFit) return std::nullopt;
  return PodPlace{best, known[best].gpu};
}

Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name,
                                                             const PolicyContext& context) {
  if (name == "random") return std::make_unique<RandomFit>(context.random);
  if (name == "best-fit") return std::make_unique<BestFit>();
  if (name == "dot-product") return std::make_unique<DotProduct>();
  if (name == "clustering") return std::make_unique<Clustering>();
  if (name == "packing") return std::make_unique<Packing>();
  if (name == "fgd") return std::make_unique<Fgd>(context.target);
  if (name == "muster") return std::make_unique<MusterPods>(context.muster);
  return Fail(ErrorCode::kNotFound, fmt::format("no placement policy is called {}", name),
              fmt::format("one of {}", fmt::join(kNames, ", ")));
}

std::span<const std::string_view> PlacementPolicyNames() { return kNames; }

}  // namespace muster::sim
