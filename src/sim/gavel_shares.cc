#include "sim/gavel_shares.h"

#include <algorithm>
#include <limits>
#include <map>

namespace muster::sim {

// The level is raised until the cluster is full; those that ask for no more than it run always.
std::vector<double> MaxMinShares(std::span<const GavelJob> jobs, std::int64_t room) {
  std::map<std::int64_t, std::int64_t> sizes;
  for (const auto& job : jobs) ++sizes[job.gpus];
  auto above = static_cast<std::int64_t>(jobs.size());
  double level = std::numeric_limits<double>::infinity();
  for (const auto& [gpus, count] : sizes) {
    if (above * gpus > room) {
      level = static_cast<double>(room) / static_cast<double>(above);
      break;
    }
    room -= count * gpus;
    above -= count;
  }
  std::vector<double> shares;
  shares.reserve(jobs.size());
  for (const auto& job : jobs) {
    shares.push_back(std::min(1.0, level / static_cast<double>(job.gpus)));
  }
  return shares;
}

std::vector<double> MakespanShares(std::span<const GavelJob> jobs, std::int64_t room) {
  double longest = 0, work = 0;
  for (const auto& job : jobs) {
    longest = std::max(longest, job.left);
    work += job.left * static_cast<double>(job.gpus);
  }
  const double end = std::max(longest, work / static_cast<double>(room));
  std::vector<double> shares;
  shares.reserve(jobs.size());
  for (const auto& job : jobs) shares.push_back(job.left / end);
  return shares;
}

GavelRank RankOf(double ran, double there, double share, std::size_t place) {
  return {ran / (share * std::max(1.0, there)), -share, place};
}

}  // namespace muster::sim
