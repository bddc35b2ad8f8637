// Shares of time by the rules of Gavel (OSDI '20), with one type of GPU.
//
// A share is the part of the time in which a job is to run. Max-min: the GPU-time of the job that
// gets least is as large as can be, then that of the next, and so on. With one type the linear
// program has a closed answer, which is exact: min(1, level / GPUs), and the level is where the
// cluster is full. Makespan: shares with which all jobs end soonest, remaining time / the time
// until then. Costs the logarithm of the sizes for each job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace muster::sim {

struct GavelJob {
  std::int64_t gpus = 0;
  double left = 0;  // of its time, on these; of makespan
};

// Of jobs that together ask for more than there is.
std::vector<double> MaxMinShares(std::span<const GavelJob> jobs, std::int64_t room);
std::vector<double> MakespanShares(std::span<const GavelJob> jobs, std::int64_t room);

// The order in which a round takes jobs, least first: who is furthest behind its share of the time
// since it came; of those that are equally far the larger share, then who came first (`place`).
using GavelRank = std::tuple<double, double, std::size_t>;
GavelRank RankOf(double ran, double there, double share, std::size_t place);

}  // namespace muster::sim
