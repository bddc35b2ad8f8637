#include <algorithm>
#include <map>

#include "train/collective/algorithms.h"
#include "train/collective/sum.h"

namespace muster::train {
namespace {

constexpr Tag kPhase = Tag{1} << 20U;

// Who is on which host: places of the group, hosts by their first member.
struct Layout {
  std::vector<std::vector<std::size_t>> hosts;
  std::size_t host = 0, local = 0;  // of this member
  std::size_t lanes = 0;            // members that every host has
};

Layout LayoutOf(const Group& group, const std::vector<int>& hosts) {
  Layout out;
  std::map<int, std::size_t> number;
  for (std::size_t p = 0; p < group.size(); ++p) {
    const auto [at, added] = number.try_emplace(hosts[p], out.hosts.size());
    if (added) out.hosts.emplace_back();
    auto& members = out.hosts[at->second];
    if (p == group.me) {
      out.host = at->second;
      out.local = members.size();
    }
    members.push_back(p);
  }
  out.lanes = group.size();
  for (const auto& members : out.hosts) out.lanes = std::min(out.lanes, members.size());
  return out;
}

Result<void> SumLane(const Group& group, const std::vector<std::size_t>& local, std::size_t me,
                     std::span<float> lane) {
  std::vector<const float*> parts(local.size());
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (i == me) {
      parts[i] = lane.data();
      continue;
    }
    const auto seen = group.fabric->Look(group.at(local[i]), group.base);
    if (!seen) return tl::unexpected(seen.error());
    if (seen->size() != lane.size_bytes()) {
      return Fail(ErrorCode::kInternal, "members reduce values of different lengths");
    }
    parts[i] = Floats(*seen);
  }
  SumOf(lane, parts);
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (i != me) group.fabric->Done(group.at(local[i]), group.base);
  }
  return {};
}

}  // namespace

// As many lanes as every host has members: each is summed by one member of each host, then by a
// ring of these, then fetched by the others of the host.
Result<void> AllReduceHierarchical(const Group& group, const std::vector<int>& hosts,
                                   std::span<float> values) {
  if (group.size() == 1 || values.empty()) return {};
  Fabric& fabric = *group.fabric;
  const Layout layout = LayoutOf(group, hosts);
  const auto& local = layout.hosts[layout.host];
  const std::size_t me = layout.local;
  const bool owner = me < layout.lanes;
  const auto lane = [&](std::size_t i) {
    return Cut(values, PartOf({0, values.size()}, i, layout.lanes));
  };
  for (std::size_t i = 0; i < layout.lanes; ++i) {
    if (i != me) fabric.Offer(group.at(local[i]), group.base, std::as_bytes(lane(i)));
  }
  if (owner) {
    if (auto summed = SumLane(group, local, me, lane(me)); !summed) return summed;
    Group across{&fabric, {}, layout.host, group.base + kPhase};
    for (const auto& members : layout.hosts) across.ranks.push_back(group.at(members[me]));
    if (auto summed = AllReduceRing(across, lane(me)); !summed) return summed;
    for (std::size_t i = 0; i < local.size(); ++i) {
      if (i == me) continue;
      fabric.Offer(group.at(local[i]), group.base + 2 * kPhase, std::as_bytes(lane(me)));
    }
  }
  for (std::size_t i = 0; i < layout.lanes; ++i) {
    if (i == me) continue;
    auto got =
        fabric.Fetch(group.at(local[i]), group.base + 2 * kPhase, std::as_writable_bytes(lane(i)));
    if (!got) return got;
  }
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (i == me) continue;
    if (i < layout.lanes) {
      if (auto taken = fabric.Taken(group.at(local[i]), group.base); !taken) return taken;
    }
    if (owner) {
      auto taken = fabric.Taken(group.at(local[i]), group.base + 2 * kPhase);
      if (!taken) return taken;
    }
  }
  return {};
}

}  // namespace muster::train
