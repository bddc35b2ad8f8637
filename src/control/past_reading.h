// PastReading: the journal's jobs as a past that can be decided again under another policy.
//
// Those that ended within a stretch of time, from the history, and those that are here now. Read
// piece by piece on the controller's thread, so that the scheduler's turns come between. What an
// elastic job did is added up from its own events where the journal still has them all, otherwise
// it is taken to have had its last size all the time. A job that has not ended counts with what it
// did so far; one that never ran is left out, for nobody knows how long it would have run.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>

#include "base/result.h"
#include "control/controller.h"
#include "engine/policy_settings.h"
#include "sim/past/past.h"

namespace muster::control {

class PastReading {
 public:
  explicit PastReading(std::int64_t back_ms) : back_ms_(back_ms) {}

  // The next piece; true: that was the last.
  Result<bool> Add(Controller& control);
  // Then this may be taken, on any thread.
  sim::Past Take();
  std::string TakeFile();  // the same as a file, with the policy that is in force

 private:
  void Begin(Controller& control);
  bool AddState(const state::State& state);
  Result<bool> AddHistory(state::Store& store);
  Result<bool> AddSizes(state::Store& store);
  void AddJob(const state::JobRecord& job);

  std::int64_t back_ms_;
  sim::Past past_;
  engine::SettingValues policy_;
  enum class Part { kBegin, kState, kHistory, kSizes } part_ = Part::kBegin;
  JobNumber last_ = 0;    // of the state
  JobNumber before_ = 0;  // history from here on is still to be added
  std::size_t sized_ = 0;
  std::unordered_set<JobNumber> known_;  // jobs may move to history meanwhile
};

}  // namespace muster::control
