#include "train/run/way.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "train/collective/collective.h"

namespace muster::train {
namespace {

// Tags of other calls on the fabric of a view are those of steps, which have no highest bit.
constexpr std::uint16_t kChannel = 1;

int MostOnAHost(const std::vector<int>& ranks, const std::vector<int>& hosts) {
  std::map<int, int> count;
  int most = 0;
  for (const int rank : ranks) {
    most = std::max(most, ++count[hosts[static_cast<std::size_t>(rank)]]);
  }
  return most;
}

}  // namespace

WayCost CostOf(const ColumnLayout& at, const std::vector<int>& hosts, std::size_t bytes,
               const CostModel& model) {
  const auto n = static_cast<double>(at.computers.size());
  const double w = MostOnAHost(at.computers, hosts);
  const double away = (n - w) / n * static_cast<double>(bytes);
  return {2 * model.far.message_s + 2 * w * away * model.far.byte_s,
          2 * (model.near.message_s + model.far.message_s) +
              2 * away * (model.near.byte_s + model.far.byte_s)};
}

Result<std::optional<CostModel>> ProbeLinks(Fabric& fabric, const Layout& layout) {
  std::vector<int> all(layout.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  const int most = MostOnAHost(all, layout.hosts);
  if (most < 2 || most == layout.members) return std::optional<CostModel>();
  // Those who leave are in the fabric of the view, and may be gone.
  auto group = Collective::Open(fabric, {.channel = kChannel, .members = layout.members});
  if (!group) return tl::unexpected(group.error());
  if (auto probed = (*group)->Probe(); !probed) return tl::unexpected(probed.error());
  return std::optional((*group)->model());
}

std::vector<int> HostsForRoutes(const ColumnLayout& at, const std::vector<int>& hosts,
                                std::size_t bytes, const std::optional<CostModel>& model) {
  if (!model) return hosts;
  const auto cost = CostOf(at, hosts, bytes, *model);
  if (cost.carried_s <= cost.straight_s) return hosts;
  std::vector<int> own(hosts.size());
  std::iota(own.begin(), own.end(), 0);
  return own;
}

}  // namespace muster::train
