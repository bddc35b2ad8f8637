#include "sim/openb/experiment.h"

#include <algorithm>
#include <utility>

#include "sim/openb/policy.h"
#include "sim/openb/trace.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kDemandPct = 130;
constexpr std::size_t kTellEvery = 256;
constexpr std::int64_t kMostArrivals = 10'000'000;
constexpr std::size_t kMostJudged = 50'000'000;  // nodes times kinds of pods

template <typename T>
void Shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[random.Index(left)]);
}

double Percent(double part, std::int64_t whole) { return 100 * part / static_cast<double>(whole); }

// Tiny pods on many GPUs would be drawn for ever, and many kinds of them fill the memory.
Result<void> CheckSize(const OpenbTrace& trace) {
  std::int64_t demand = 0;
  for (const std::uint32_t pod : trace.pods) demand += trace.shapes[pod].total_gpu_milli();
  const auto mean = std::max<std::int64_t>(demand / std::ssize(trace.pods), 1);
  if (trace.gpu_milli() / mean > kMostArrivals || std::ssize(trace.pods) > kMostArrivals ||
      trace.nodes.size() * trace.shapes.size() > kMostJudged) {
    return Fail(ErrorCode::kInvalid,
                "the nodes are too many, or the pods too small or of too many kinds",
                "leave out some of the nodes");
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> DrawArrivals(const OpenbTrace& trace, Random& random) {
  const std::int64_t wanted = trace.gpu_milli() * kDemandPct / 100;
  std::vector<std::uint32_t> arrivals = trace.pods;
  std::int64_t demand = 0;
  for (const std::uint32_t pod : arrivals) demand += trace.shapes[pod].total_gpu_milli();
  while (demand < wanted) {
    arrivals.push_back(trace.pods[random.Index(trace.pods.size())]);
    demand += trace.shapes[arrivals.back()].total_gpu_milli();
  }
  Shuffle(arrivals, random);
  while (demand - trace.shapes[arrivals.back()].total_gpu_milli() >= wanted) {
    demand -= trace.shapes[arrivals.back()].total_gpu_milli();
    arrivals.pop_back();
  }
  return arrivals;
}

Result<OpenbResult> PlaceOpenb(OpenbTrace trace, const std::string& policy, std::uint64_t seed,
                               const std::function<Result<void>(double)>& progress,
                               const engine::Policy& muster) {
  if (auto small = CheckSize(trace); !small) return tl::unexpected(small.error());
  Random random(seed);
  const TargetWorkload target(trace);
  auto chooser = MakePlacementPolicy(policy, {target, random, muster});
  if (!chooser) return tl::unexpected(chooser.error());
  const std::vector<std::uint32_t> arrivals = DrawArrivals(trace, random);
  Shuffle(trace.nodes, random);

  OpenbResult result{policy, seed};
  std::vector<char> fits_nowhere(trace.shapes.size(), 0);  // and never will: nothing leaves
  std::int64_t allocated = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (progress && i % kTellEvery == 0) {
      const auto share = static_cast<double>(i) / static_cast<double>(arrivals.size());
      if (auto on = progress(share); !on) return tl::unexpected(on.error());
    }
    const std::uint32_t shape = arrivals[i];
    (*chooser)->Arrives(trace.nodes, trace.shapes, shape);
    std::optional<PodPlace> place;
    if (fits_nowhere[shape] == 0) place = (*chooser)->Choose(trace.nodes, trace.shapes, shape);
    if (!place) {
      fits_nowhere[shape] = 1;
      ++result.failed;
      continue;
    }
    trace.nodes[place->node].Take(trace.shapes[shape], place->gpu);
    allocated += trace.shapes[shape].total_gpu_milli();
    ++result.placed;
  }
  double fragmented = 0;
  for (const NodeState& node : trace.nodes) fragmented += target.Fragmentation(node);
  result.gpu_allocation_pct = Percent(static_cast<double>(allocated), trace.gpu_milli());
  result.fragmentation_pct = Percent(fragmented, trace.gpu_milli());
  return result;
}

Result<OpenbResult> RunOpenb(const OpenbOptions& options, Clock& clock) {
  const std::int64_t start_ns = clock.MonotonicNs();
  auto trace = ReadOpenb(options.nodes_path, options.pods_path, options.files);
  if (!trace) return tl::unexpected(trace.error());
  auto result =
      PlaceOpenb(*std::move(trace), options.policy, options.seed, options.progress, options.muster);
  if (result) result->wall_s = static_cast<double>(clock.MonotonicNs() - start_ns) / 1e9;
  return result;
}

}  // namespace muster::sim
