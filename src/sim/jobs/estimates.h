// Estimates: what forecasts of the start are worth, over the jobs of a trace that had to wait.
//
// Asks the engine's forecast (engine/wait_forecast.h) for each job that does not start in the
// moment in which it comes, and compares with its first start. Beside it, as the least that a
// forecast must beat: the 0.9 quantile of all waits that the job's queue has seen so far. Likewise
// the guess of each job's run time (engine/runtime_history.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/runtime_history.h"
#include "engine/wait_forecast.h"
#include "sim/jobs/play.h"

namespace muster::sim {

struct EstimateScore {
  std::int64_t waited = 0;     // jobs
  double coverage_pct = 0;     // started within their bound
  double pinball_s = 0;        // mean loss of the bound at 0.9
  double queue_pinball_s = 0;  // of the quantile of their queue
  std::int64_t runtimes = 0;   // jobs whose run time was guessed when they came
  // By how much a guess is wrong, up or down, in the middle of all: 2 is twice or half as long.
  double runtime_factor = 0;
  double plain_factor = 0;  // of the middle run time of all jobs before
};

class Estimates : public JobWatcher {
 public:
  void Submitted(const JobPlay& play, JobIndex job) override;
  void Started(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  Result<void> Decided(const JobPlay& play) override;
  EstimateScore Score() const;

 private:
  struct Bounds {
    double ours_s = 0;
    double queue_s = 0;
  };
  struct Guess {
    double ours_ms = 0;
    double plain_ms = 0;
  };
  void Ask(const JobPlay& play, JobIndex job);
  double EndsIn(const JobPlay& play, JobIndex job) const;
  void GuessRuntime(const TraceJob& job, JobIndex index);

  engine::WaitForecast forecast_;
  std::vector<JobIndex> fresh_;  // of this moment
  std::set<JobIndex> waiting_;   // for their first start
  std::unordered_map<JobIndex, Bounds> bounds_;
  std::map<std::string, std::vector<double>> waits_;  // by queue, sorted
  std::vector<double> all_waits_;                     // sorted
  engine::RuntimeHistory runtimes_;
  std::vector<double> all_runtimes_;  // sorted
  std::unordered_map<JobIndex, Guess> guesses_;
  std::vector<double> factors_, plain_factors_;
  std::int64_t covered_ = 0, waited_ = 0;
  double loss_ = 0, queue_loss_ = 0;
};

}  // namespace muster::sim
