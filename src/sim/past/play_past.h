// PlayPast: a past decided again, by the engine that runs in production, under a given policy.
//
// A virtual clock, a state of its own and an EngineView: the same events in the same order as the
// controller makes them, and the engine is asked where the controller would ask it. Workers start
// the moment they get their places and take as long as their work; what that assumes is in
// docs/lab.md. Nothing but the past and the policy decides, so the same inputs give the same
// result. A week of ten thousand jobs takes seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/policy.h"
#include "sim/past/past.h"

namespace muster::sim {

struct PlayedJob {
  std::int64_t started_ms = -1;  // for the first time; -1: never
  std::int64_t ended_ms = -1;    // -1: never
  std::int64_t lost_gpu_ms = 0;  // work that was thrown away
  std::int32_t pauses = 0;
  std::int32_t moves = 0;
  std::int32_t resizes = 0;
};

struct HeldStep {
  std::int64_t at_ms = 0;
  std::int64_t gpu_milli = 0;  // held from then on
};

struct Played {
  std::vector<PlayedJob> jobs;  // by their place in the past
  std::vector<HeldStep> held;
  std::int64_t last_ms = 0;  // the last end
  std::int64_t cycles = 0;
  std::int64_t stuck = 0;  // jobs that could not run to their end
};

// Told the share of the work that is done, now and then; its error ends the play.
using PlayProgress = std::function<Result<void>(double share)>;

Result<Played> PlayPast(const Past& past, const engine::Policy& policy,
                        const PlayProgress& progress = {});

// GPU-milliseconds held between two moments.
std::int64_t HeldBetween(const std::vector<HeldStep>& held, std::int64_t from_ms,
                         std::int64_t to_ms);

}  // namespace muster::sim
