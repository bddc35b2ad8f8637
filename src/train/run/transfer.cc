#include "train/run/transfer.h"

#include <algorithm>

namespace muster::train {

namespace {

using Kind = Holding::Kind;

struct Holder {
  int rank = 0;
  bool near = false;
  Holding holding;
};

// The one that hands over what begins at `first`: the best of those who have it, then the longest.
const Holder* Source(const std::vector<Holder>& holders, const Holding& target, Extent bucket,
                     std::size_t first, int to) {
  const Holder* best = nullptr;
  const auto rank = [&](const Holder& one) {
    const auto part = PartOf(bucket, one.holding.parts, one.holding.part);
    return std::tuple(one.rank != to, !one.near, bucket.last - part.last, one.rank);
  };
  for (const auto& one : holders) {
    if (one.holding.kind != target.kind || one.holding.column != target.column) continue;
    const auto part = PartOf(bucket, one.holding.parts, one.holding.part);
    if (first < part.first || first >= part.last) continue;
    if (best == nullptr || rank(one) < rank(*best)) best = &one;
  }
  return best;
}

// False: a piece of it is held by nobody.
bool Gather(const std::vector<Holder>& holders, const Holding& target, int to,
            std::span<const Extent> buckets, std::vector<Move>& out) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const auto wanted = PartOf(buckets[bucket], target.parts, target.part);
    for (std::size_t first = wanted.first; first < wanted.last;) {
      const Holder* source = Source(holders, target, buckets[bucket], first, to);
      if (source == nullptr) return false;
      const auto part = PartOf(buckets[bucket], source->holding.parts, source->holding.part);
      const auto last = std::min(part.last, wanted.last);
      out.push_back({source->rank, to, source->holding, target, bucket, {first, last}});
      first = last;
    }
  }
  return true;
}

}  // namespace

std::vector<Holding> NeededBy(int rank, const Layout& layout, std::int64_t step) {
  std::vector<Holding> out;
  for (int column = 0; column < static_cast<int>(layout.columns.size()); ++column) {
    const bool computes = layout.At(column).Computes(rank);
    if (computes) out.push_back({Kind::kParameters, column, 1, 0, step});
    const int parts = layout.At(column).parts();
    for (const int part : layout.PartsAt(column, rank)) {
      if (!computes) out.push_back({Kind::kParameters, column, parts, part, step});
      out.push_back({Kind::kOptimizer, column, parts, part, step});
    }
  }
  return out;
}

std::optional<std::vector<Move>> PlanTransfer(const View& view, const Layout& layout,
                                              const Holdings& holdings,
                                              std::span<const Buckets> buckets) {
  std::vector<const Endpoint*> all;
  all.reserve(view.members.size() + view.leaving.size());
  for (const auto& member : view.members) all.push_back(&member);
  for (const auto& who : view.leaving) all.push_back(&who);
  std::vector<Move> out;
  for (int to = 0; to < layout.members; ++to) {
    std::vector<Holder> holders;
    for (std::size_t from = 0; from < all.size(); ++from) {
      const auto found = holdings.find(all[from]->id);
      if (found == holdings.end()) continue;
      for (const auto& holding : found->second) {
        if (holding.step != view.step) continue;
        const bool near = all[from]->host == all[static_cast<std::size_t>(to)]->host;
        holders.push_back({static_cast<int>(from), near, holding});
      }
    }
    for (const auto& target : NeededBy(to, layout, view.step)) {
      const auto column = static_cast<std::size_t>(target.column);
      if (!Gather(holders, target, to, buckets[column], out)) return std::nullopt;
    }
  }
  return out;
}

// As if one worker, who would need everything, held what all hold.
bool Recoverable(const Holdings& holdings, std::int64_t step, std::span<const Buckets> buckets) {
  View one;
  one.step = step;
  one.members.resize(1);
  Strategy alone;
  alone.grid = {.data = 1, .micro = 1, .stages = static_cast<int>(buckets.size()), .slices = 1};
  Holdings all;
  for (const auto& [id, held] : holdings) {
    all[one.members[0].id].insert(all[one.members[0].id].end(), held.begin(), held.end());
  }
  return PlanTransfer(one, LayoutFor(alone, one, 0), all, buckets).has_value();
}

}  // namespace muster::train
