#include "sim/openb/target.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace muster::sim {
namespace {

constexpr double kCovered = 0.95;  // of the pods

}  // namespace

TargetWorkload::TargetWorkload(const OpenbTrace& trace) {
  std::map<std::tuple<std::int64_t, std::uint32_t, std::int64_t, std::uint64_t>, std::size_t> known;
  for (const std::uint32_t pod : trace.pods) {
    PodShape shape = trace.shapes[pod];
    shape.memory_mib = 0;
    const auto [at, fresh] = known.emplace(
        std::tuple(shape.cpu_milli, shape.gpus, shape.gpu_milli, shape.types), expected_.size());
    if (fresh) expected_.push_back({shape, 0});
    expected_[at->second].popularity += 1;
  }
  std::stable_sort(expected_.begin(), expected_.end(), [](const Expected& a, const Expected& b) {
    return a.popularity > b.popularity;
  });
  const double enough = kCovered * static_cast<double>(trace.pods.size());
  double covered = 0;
  std::size_t used = 0;
  while (used < expected_.size() && covered < enough) covered += expected_[used++].popularity;
  expected_.resize(used);
  for (Expected& one : expected_) one.popularity /= covered;

  std::vector<Expected> by_cpu = expected_;
  std::stable_sort(by_cpu.begin(), by_cpu.end(), [](const Expected& a, const Expected& b) {
    return a.shape.cpu_milli < b.shape.cpu_milli;
  });
  for (const auto& [shape, popularity] : by_cpu) {
    if (shape.gpus == 0) continue;
    auto group = std::find_if(groups_.begin(), groups_.end(), [&shape = shape](const Group& one) {
      return one.gpus == shape.gpus && one.gpu_milli == shape.gpu_milli && one.types == shape.types;
    });
    if (group == groups_.end())
      group = groups_.insert(groups_.end(), {shape.gpus, shape.gpu_milli, shape.types, {}, {}});
    const double before = group->popularity.empty() ? 0 : group->popularity.back();
    group->cpu_milli.push_back(shape.cpu_milli);
    group->popularity.push_back(before + popularity);
  }
}

double TargetWorkload::Group::PopularityWithin(std::int64_t free_milli) const {
  const auto end = std::upper_bound(cpu_milli.begin(), cpu_milli.end(), free_milli);
  return end == cpu_milli.begin()
             ? 0
             : popularity[static_cast<std::size_t>(end - cpu_milli.begin()) - 1];
}

double TargetWorkload::Fragmentation(const NodeState& node) const {
  const std::int64_t idle = node.idle_milli();
  if (idle == 0) return 0;
  auto stranded = static_cast<double>(idle);
  for (const Group& group : groups_) {
    if (!node.Offers(group.types)) continue;
    std::int64_t useful = 0;  // idle on GPUs with enough room
    std::uint32_t fitting = 0;
    for (const std::int32_t room : node.rooms()) {
      if (room < group.gpu_milli) continue;
      useful += room;
      ++fitting;
    }
    if (fitting >= group.gpus)
      stranded -= group.PopularityWithin(node.cpu_milli) * static_cast<double>(useful);
  }
  return stranded;
}

}  // namespace muster::sim
