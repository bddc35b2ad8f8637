// Way: whether what a step exchanges goes between hosts straight, or carried (routes.h).
//
// Straight, every worker sends to every owner itself: one hop, and all workers of a host share its
// link. Carried, a part crosses once for each host, after a hop inside. Where several hosts have
// several workers each, members measure both kinds of link when a view begins, some milliseconds,
// and all take what rank 0 and its peers saw, so all pick alike: straight for small columns and
// where memory inside is no faster than the link, else carried. In exact mode the bits are the
// same.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "train/collective/cost_model.h"
#include "train/mesh/fabric.h"
#include "train/run/layout.h"

namespace muster::train {

// n computers, at most w on a host; S bytes; see cost_model.h for the numbers.
struct WayCost {
  double straight_s = 0;  // 2 a_far + 2 w (n-w)/n S b_far
  double carried_s = 0;   // 2 (a_near + a_far) + 2 (n-w)/n S (b_near + b_far)
};
WayCost CostOf(const ColumnLayout& at, const std::vector<int>& hosts, std::size_t bytes,
               const CostModel& model);

// All members call it at the same place. Nothing where there is no choice.
Result<std::optional<CostModel>> ProbeLinks(Fabric& fabric, const Layout& layout);

// The hosts to make Routes with: those that there are, or as if each worker had one of its own.
// `bytes`: of the largest bucket.
std::vector<int> HostsForRoutes(const ColumnLayout& at, const std::vector<int>& hosts,
                                std::size_t bytes, const std::optional<CostModel>& model);

}  // namespace muster::train
