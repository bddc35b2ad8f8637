// Benchmarks of the engine: clusters and workloads of a known shape, and what a cycle costs on
// them.
//
// One core, in process, simulated nodes. A time runs from the event to the finished plan; loading
// the cluster is not counted. Every run builds its own cluster from the same seed, so the samples
// differ by the machine alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::sim {

struct BenchOptions {
  std::string shape;
  std::int64_t nodes = 0;  // 0: the shape's own number
  int runs = 0;            // 0: the shape's own number
  std::uint64_t seed = 1;
};

struct BenchResult {
  std::string shape;
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  std::int64_t jobs = 0;
  std::int64_t decisions = 0;  // actions and promises of one run
  std::int64_t placed = 0;     // workers that run at the end
  std::int64_t cycles = 0;
  bool settled = false;          // the last cycle's plan was empty
  bool proven = false;           // no search ran out of budget
  std::vector<double> wall_ms;   // one a run
  std::vector<double> event_ms;  // one an event, all runs together
  double peak_rss_mb = 0;
};

inline constexpr std::string_view kGrowth = "growth";  // a shape that has its own function

std::vector<std::string> BenchShapes();
Result<BenchResult> RunEngineBench(const BenchOptions& options, Clock& clock);
// `fill` on 100, 1,000, 10,000 and 100,000 nodes: what a decision costs as the cluster grows.
Result<std::vector<BenchResult>> RunGrowth(const BenchOptions& options, Clock& clock);

double Median(std::vector<double> values);
double Percentile(std::vector<double> values, int percent);  // nearest rank

}  // namespace muster::sim
