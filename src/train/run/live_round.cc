#include "train/run/live_round.h"

#include <algorithm>

namespace muster::train {

PartCut::PartCut(std::span<const Extent> buckets, int parts, int part, int planes)
    : parts_(parts), part_(part), planes_(static_cast<std::size_t>(planes)) {
  for (const auto& bucket : buckets) {
    in_column_.push_back(PartOf(bucket, parts, part));
    in_part_.push_back({floats_, floats_ + in_column_.back().size()});
    floats_ = in_part_.back().last;
  }
}

Extent PartCut::InState(std::size_t bucket) const {
  return {planes_ * in_part_[bucket].first, planes_ * in_part_[bucket].last};
}

void PartCut::Collect(std::span<const float> column, std::span<float> part) const {
  for (std::size_t i = 0; i < buckets(); ++i) {
    std::ranges::copy(column.subspan(in_column_[i].first, in_column_[i].size()),
                      part.subspan(in_part_[i].first).begin());
  }
}

void PartCut::Spread(std::span<const float> part, std::span<float> column) const {
  for (std::size_t i = 0; i < buckets(); ++i) {
    std::ranges::copy(part.subspan(in_part_[i].first, in_part_[i].size()),
                      column.subspan(in_column_[i].first).begin());
  }
}

void PartCut::Update(const Workload& workload, std::int64_t version,
                     std::span<const float> gradient, const PartValues& from,
                     PartValues& to) const {
  to.parameters.resize(from.parameters.size());
  to.state.resize(from.state.size());
  for (std::size_t i = 0; i < buckets(); ++i) {
    const auto at = in_part_[i];
    const auto state = InState(i);
    if (at.size() == 0) continue;
    workload.Update({.completed = version}, gradient.subspan(at.first, at.size()),
                    std::span(from.parameters).subspan(at.first, at.size()),
                    std::span(from.state).subspan(state.first, state.size()),
                    std::span(to.parameters).subspan(at.first, at.size()),
                    std::span(to.state).subspan(state.first, state.size()));
  }
}

}  // namespace muster::train
