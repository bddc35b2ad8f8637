#include "sim/jobs/run_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/quantile.h"
#include "sim/jobs/demand.h"
#include "sim/jobs/fifo.h"
#include "sim/jobs/gavel.h"
#include "sim/jobs/las.h"
#include "sim/jobs/muster_jobs.h"
#include "sim/jobs/play.h"
#include "sim/jobs/read_jobs.h"
#include "sim/jobs/srtf.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;
// Nobody may end for long, and who is told how far the run is may want to end it: after so many
// decisions it is told again.
constexpr std::int64_t kTellEvery = 256;

using Made = Result<std::unique_ptr<JobPolicy>>;
// What a policy is made from.
struct Stage {
  const std::vector<TraceJob>& jobs;
  const JobsResult& cluster;
  const engine::Policy& muster;
};
using Factory = Made (*)(const Stage&);

template <typename Policy>
Made Simple(const Stage& /*stage*/) {
  return std::make_unique<Policy>();
}

template <Gavel::Aim kAim>
Made Rounds(const Stage& /*stage*/) {
  return std::make_unique<Gavel>(kAim);
}

const std::map<std::string, Factory>& Policies() {
  static const std::map<std::string, Factory> policies = {
      {"fifo", Simple<Fifo>},
      {"gavel-makespan", Rounds<Gavel::Aim::kMakespan>},
      {"gavel-max-min", Rounds<Gavel::Aim::kMaxMin>},
      {"muster",
       [](const Stage& stage) -> Made {
         return MusterJobs::Make(stage.jobs, stage.cluster.nodes, stage.cluster.gpus_per_node,
                                 {.policy = stage.muster});
       }},
      {"srtf", Simple<Srtf>},
      {"tiresias", Simple<Las>},
  };
  return policies;
}

double Seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

// Tells how far the run is, hands on to the estimates, and keeps what happened over time, where
// that is wanted.
class Reporter : public JobWatcher {
 public:
  Reporter(const JobsOptions& options, std::size_t jobs)
      : options_(options), jobs_(jobs), stretches_(options.over_time ? jobs : 0) {}

  void Submitted(const JobPlay& play, JobIndex job) override {
    if (options_.estimates) estimates_.Submitted(play, job);
  }
  void Started(const JobPlay& play, JobIndex job) override {
    if (options_.estimates) estimates_.Started(play, job);
    if (options_.over_time)
      stretches_[job].push_back({Seconds(play.now_ms()), 0, play.job(job).gpus});
  }
  void Stopped(const JobPlay& play, JobIndex job) override { Close(play, job); }
  Result<void> Decided(const JobPlay& play) override {
    if (options_.estimates) (void)estimates_.Decided(play);
    const auto used = play.gpus() - play.free_gpus();
    if (options_.over_time && (uses_.empty() || uses_.back().gpus != used)) {
      uses_.push_back({Seconds(play.now_ms()), used});
    }
    const auto percent = play.ended() * 100 / jobs_;
    if (!options_.progress || (++decisions_ % kTellEvery != 0 && percent == told_)) return {};
    told_ = percent;
    return options_.progress(static_cast<double>(percent) / 100);
  }
  void Ended(const JobPlay& play, JobIndex job) override {
    if (options_.estimates) estimates_.Ended(play, job);
    Close(play, job);
  }
  EstimateScore Score() const { return estimates_.Score(); }
  void MoveTo(JobsResult& result) {
    result.gpus_in_use = std::move(uses_);
    for (std::size_t i = 0; i < stretches_.size(); ++i)
      result.jobs[i].stretches = std::move(stretches_[i]);
  }

 private:
  void Close(const JobPlay& play, JobIndex job) {
    if (options_.over_time) stretches_[job].back().end_s = Seconds(play.now_ms());
  }

  const JobsOptions& options_;
  std::size_t jobs_;
  std::size_t told_ = 0;
  std::int64_t decisions_ = 0;
  Estimates estimates_;
  std::vector<std::vector<JobsResult::Stretch>> stretches_;  // by job
  std::vector<JobsResult::Use> uses_;
};

void Sum(const std::vector<TraceJob>& jobs, const JobPlay& play, JobsResult& result) {
  std::vector<double> waits, times;
  double used = 0;
  std::int64_t last_ms = 0, met = 0;
  for (JobIndex i = 0; i < jobs.size(); ++i) {
    const auto& track = play.track(i);
    waits.push_back(Seconds(track.started_ms - jobs[i].submit_ms));
    times.push_back(Seconds(track.ended_ms - jobs[i].submit_ms));
    result.jobs.push_back(
        {jobs[i].name, waits.back(), times.back(), jobs[i].queue, Seconds(jobs[i].submit_ms)});
    result.mean_wait_s += waits.back() / static_cast<double>(jobs.size());
    result.mean_jct_s += times.back() / static_cast<double>(jobs.size());
    result.preemptions += track.preemptions;
    used += Seconds(jobs[i].duration_ms) * static_cast<double>(jobs[i].gpus);
    last_ms = std::max(last_ms, track.ended_ms);
    if (!jobs[i].deadline_ms) continue;
    ++result.deadlines;
    met += track.ended_ms <= *jobs[i].deadline_ms ? 1 : 0;
  }
  const auto deadlines = static_cast<double>(std::max<std::int64_t>(1, result.deadlines));
  result.deadlines_met_pct = 100 * static_cast<double>(met) / deadlines;
  result.p99_wait_s = Quantile(std::move(waits), 0.99);
  result.p99_jct_s = Quantile(std::move(times), 0.99);
  result.makespan_s = Seconds(last_ms);
  result.utilisation_pct = 100 * used / (static_cast<double>(play.gpus()) * result.makespan_s);
}

Result<void> CheckFit(const JobsOptions& options, const std::vector<TraceJob>& jobs,
                      std::int64_t gpus) {
  const auto& largest = *std::ranges::max_element(jobs, {}, &TraceJob::gpus);
  if (largest.gpus <= gpus) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("{}: job {} asks for {} GPUs, and the cluster has {}", options.workload,
                          largest.name, largest.gpus, gpus),
              "give it more nodes, or leave their number out");
}

}  // namespace

std::vector<std::string> JobsPolicies() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Policies()) names.push_back(name);
  return names;
}

std::int64_t NodesFor(const std::vector<TraceJob>& jobs, std::int64_t gpus_per_node,
                      double covered) {
  const Demand demand(jobs);
  const auto wanted = std::max(demand.largest(), demand.At(covered));
  return std::min(kMostNodes, (wanted + gpus_per_node - 1) / gpus_per_node);
}

std::int64_t NodesOf(const JobTrace& trace, std::int64_t gpus_per_node) {
  if (trace.gpus == 0) return NodesFor(trace.jobs, gpus_per_node);
  return (trace.gpus + gpus_per_node - 1) / gpus_per_node;
}

Result<JobsResult> RunJobs(const JobsOptions& options, Clock& clock) {
  const auto start_ns = clock.MonotonicNs();
  const auto trace = ReadJobs(options.workload);
  if (!trace) return tl::unexpected(trace.error());
  JobsOptions here = options;
  if (here.nodes == 0) here.nodes = NodesOf(*trace, here.gpus_per_node);
  auto result = RunJobs(here, trace->jobs, clock);
  if (result) result->wall_s = static_cast<double>(clock.MonotonicNs() - start_ns) * 1e-9;
  return result;
}

Result<JobsResult> RunJobs(const JobsOptions& options, const std::vector<TraceJob>& jobs,
                           Clock& clock) {
  const auto found = Policies().find(options.policy);
  if (found == Policies().end())
    return Fail(ErrorCode::kNotFound, fmt::format("there is no policy \"{}\"", options.policy),
                fmt::format("there are {}", fmt::join(JobsPolicies(), ", ")));
  JobsResult result;
  result.gpus_per_node = options.gpus_per_node;
  result.nodes = options.nodes > 0 ? options.nodes : NodesFor(jobs, options.gpus_per_node);
  const auto gpus = result.nodes * result.gpus_per_node;
  if (auto fits = CheckFit(options, jobs, gpus); !fits) return tl::unexpected(fits.error());
  const auto start_ns = clock.MonotonicNs();
  const auto policy = found->second({jobs, result, options.muster});
  if (!policy) return tl::unexpected(policy.error());
  Reporter reporter(options, jobs.size());
  JobPlay play(jobs, gpus, &reporter);
  if (auto played = play.Run(**policy); !played) return tl::unexpected(played.error());
  Sum(jobs, play, result);
  reporter.MoveTo(result);
  if (options.estimates) result.estimates = reporter.Score();
  result.wall_s = static_cast<double>(clock.MonotonicNs() - start_ns) * 1e-9;
  return result;
}

}  // namespace muster::sim
