#include "engine/fair_share.h"

#include <algorithm>

#include "model/resources.h"

namespace muster::engine {
namespace {

std::int64_t Usable(const ShareClaim& claim) { return std::min(claim.request, claim.limit); }

std::int64_t Hunger(const ShareClaim& claim) {
  return std::max<std::int64_t>(0, Usable(claim) - claim.share);
}

}  // namespace

std::int64_t ShareDivider::Divide(std::int64_t total, std::int64_t unit,
                                  std::span<ShareClaim> claims) {
  std::int64_t left = total;
  for (auto& claim : claims) {
    const auto quota = claim.quota == model::kUnlimited ? total : claim.quota;
    claim.share = std::min(quota, Usable(claim));
    left -= claim.share;
  }
  return left > 0 ? DivideOver(left, unit, claims) : 0;
}

std::int64_t ShareDivider::DivideOver(std::int64_t total, std::int64_t unit,
                                      std::span<ShareClaim> claims) {
  order_.resize(claims.size());
  cut_off_.assign(claims.size(), 0);
  for (std::uint32_t i = 0; i < claims.size(); ++i) order_[i] = i;
  const auto by_priority = [&](std::uint32_t a, std::uint32_t b) {
    return claims[a].priority > claims[b].priority;
  };
  std::stable_sort(order_.begin(), order_.end(), by_priority);
  const auto each_band = [&](auto&& visit) {
    for (std::size_t first = 0; first < order_.size() && total > 0;) {
      std::size_t last = first;
      while (last < order_.size() && !by_priority(order_[first], order_[last])) ++last;
      total = visit(Band(order_).subspan(first, last - first));
      first = last;
    }
  };
  each_band([&](Band band) { return DivideBand(total, unit, claims, band); });
  each_band([&](Band band) { return HandOutCutOffs(total, unit, claims, band); });
  return total;
}

std::int64_t ShareDivider::DivideBand(std::int64_t total, std::int64_t unit,
                                      std::span<ShareClaim> claims, Band band) {
  for (bool again = true; again && total > 0;) {
    again = false;
    Wide weights = 0;
    for (const auto i : band) {
      if (Hunger(claims[i]) > 0) weights += claims[i].weight;
    }
    if (weights == 0) break;
    const std::int64_t offered = total;
    for (const auto i : band) {
      auto& claim = claims[i];
      const auto hunger = Hunger(claim);
      if (hunger == 0 || claim.weight == 0) continue;
      const Wide fair = static_cast<Wide>(offered) * claim.weight;  // over `weights`
      std::int64_t give = hunger;
      cut_off_[i] = 0;
      if (static_cast<Wide>(hunger) * weights <= fair) {
        again = true;
      } else {
        const Wide whole = fair / (weights * unit) * unit;
        give = static_cast<std::int64_t>(whole);
        cut_off_[i] = fair - whole * weights;
      }
      claim.share += give;
      total -= give;
    }
  }
  return total;
}

std::int64_t ShareDivider::HandOutCutOffs(std::int64_t total, std::int64_t unit,
                                          std::span<ShareClaim> claims, Band band) {
  hungry_.clear();
  for (const auto i : band) {
    if (cut_off_[i] > 0 && Hunger(claims[i]) > 0) hungry_.push_back(i);
  }
  std::sort(hungry_.begin(), hungry_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (cut_off_[a] != cut_off_[b]) return cut_off_[a] > cut_off_[b];
    if (claims[a].created_order != claims[b].created_order) {
      return claims[a].created_order < claims[b].created_order;
    }
    return a < b;
  });
  for (const auto i : hungry_) {
    const auto give = std::min({unit, total, Hunger(claims[i])});
    claims[i].share += give;
    total -= give;
  }
  return total;
}

}  // namespace muster::engine
