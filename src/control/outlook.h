// Outlook: how long jobs will run, and when those that wait will start, learned as they come and
// go.
//
// Advice: the run time that is to be expected of a new job is written into the journal with its
// submission, so that a replay decides the same; nothing else depends on what is known here. Each
// cycle some of the jobs that have just come and have to wait are asked about, and what becomes of
// them teaches the forecast. Of a job that names GPU types only those count: who else waits for
// them and who holds some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/explain.h"
#include "engine/runtime_history.h"
#include "engine/wait_forecast.h"
#include "model/document.h"
#include "sim/engine_view.h"
#include "state/state.h"

namespace muster::control {

class Outlook {
 public:
  // --- What happens
  void Ended(const state::JobRecord& job, const state::State& state);
  void Submitted(model::JobNumber job) { fresh_.push_back(job); }
  void Started(model::JobNumber job, std::int64_t now_ms);
  void Cycled(const state::State& state, const sim::EngineView& engine, std::int64_t now_ms);

  // --- What is to be expected
  std::optional<engine::RuntimeGuess> Runtime(const model::Job& spec,
                                              const std::string& user) const;
  // By how much guesses such as the one that the job was given were wrong.
  std::optional<engine::RuntimeError> RuntimeError(const state::JobRecord& job) const;
  struct Start {
    std::int64_t likely_ms = 0;  // from now
    std::int64_t by_ms = -1;     // nine times out of ten; -1: too few have waited to say
    std::int64_t waits = 0;      // that were learned from
    bool reserved = false;       // room is kept for it from the likely moment on
  };
  // Of a job that waits; `known` where it is among those that the engine looks at.
  Start StartOf(const model::Job& spec, std::optional<model::JobNumber> known,
                const sim::EngineView& engine, std::int64_t now_ms) const;

 private:
  engine::RuntimeHistory runtimes_;
  engine::WaitForecast forecast_;
  std::vector<model::JobNumber> fresh_;
};

// When a job that waits will start, with the confidence; or that it never will, and why.
model::DocNode StartView(const Outlook::Start& start, const engine::Cluster& cluster,
                         const engine::Explanation& why, std::int64_t now_ms);

}  // namespace muster::control
