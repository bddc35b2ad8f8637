// The openb experiment: how much of a GPU cluster a placement policy can hand out.
//
// As published for FGD (ATC '23): to the pods of the trace further ones are drawn from it, with
// replacement, until they ask for 130 % of the GPUs (random ones are dropped where there are more);
// all are shuffled and placed one by one. Nothing leaves, nothing is tried twice. Nodes get one
// random order per run. Everything follows from the seed but wall_s.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/policy.h"
#include "sim/openb/cluster.h"
#include "sim/trace/files.h"

namespace muster::sim {

struct OpenbOptions {
  std::string nodes_path;
  std::string pods_path;
  std::string policy = "fgd";
  std::uint64_t seed = 0;
  TraceFiles files = {};
  // Told the share of pods that were looked at; its error ends the run.
  std::function<Result<void>(double)> progress = {};
  engine::Policy muster = {};  // how `muster` decides
};

struct OpenbResult {
  std::string policy;
  std::uint64_t seed = 0;
  double gpu_allocation_pct = 0;  // of all GPUs
  double fragmentation_pct = 0;   // of all GPUs, see TargetWorkload
  std::size_t placed = 0;
  std::size_t failed = 0;
  double wall_s = 0;  // reading the files included
};

Result<OpenbResult> RunOpenb(const OpenbOptions& options, Clock& clock);

// The parts, for tests and for runs over one trace: what arrives, and what becomes of it.
std::vector<std::uint32_t> DrawArrivals(const OpenbTrace& trace, Random& random);
Result<OpenbResult> PlaceOpenb(OpenbTrace trace, const std::string& policy, std::uint64_t seed,
                               const std::function<Result<void>(double)>& progress = {},
                               const engine::Policy& muster = {});

}  // namespace muster::sim
