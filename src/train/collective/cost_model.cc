#include "train/collective/cost_model.h"

#include <algorithm>
#include <bit>
#include <map>

namespace muster::train {

const char* NameOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kHierarchical:
      return "hierarchical";
  }
  return "";
}

double CostModel::Seconds(Algorithm algorithm, std::size_t bytes,
                          const std::vector<int>& hosts) const {
  std::map<int, std::size_t> members;
  for (const int host : hosts) ++members[host];
  const auto n = static_cast<double>(hosts.size());
  const auto size = static_cast<double>(bytes);
  if (hosts.size() < 2) return 0;
  const LinkCost& link = members.size() > 1 ? far : near;
  const double sum_s = size * sum_byte_s;
  const double most_s = 2 * (n - 1) / n * size * link.byte_s;
  switch (algorithm) {
    case Algorithm::kDirect:  // a message to each peer, twice; nothing is summed while it comes
      return (2 + (n - 2)) * link.message_s + most_s + sum_s;
    case Algorithm::kRing:
      return 2 * (n - 1) * link.message_s + most_s;
    case Algorithm::kTree: {
      const auto levels = static_cast<double>(std::bit_width(hosts.size() - 1));
      return levels * (2 * (link.message_s + size * link.byte_s) + sum_s);
    }
    case Algorithm::kHierarchical: {
      const auto count = static_cast<double>(members.size());
      const double local = n / count;
      const double inside =
          2 * near.message_s + 2 * (local - 1) / local * size * near.byte_s + sum_s;
      const double across_bytes = 2 * (count - 1) / count * size;
      return inside + 2 * (count - 1) * far.message_s + across_bytes * far.byte_s;
    }
    case Algorithm::kAuto:
      break;
  }
  return Seconds(Pick(bytes, hosts), bytes, hosts);
}

Algorithm CostModel::Pick(std::size_t bytes, const std::vector<int>& hosts) const {
  Algorithm best = Algorithm::kDirect;
  for (const auto other : {Algorithm::kTree, Algorithm::kRing, Algorithm::kHierarchical}) {
    const bool one_host = std::ranges::all_of(hosts, [&](int h) { return h == hosts.front(); });
    // Where all share memory a ring moves the same bytes in more turns.
    if (one_host && other != Algorithm::kTree) continue;
    if (Seconds(other, bytes, hosts) < Seconds(best, bytes, hosts)) best = other;
  }
  return best;
}

}  // namespace muster::train
