#include "sim/pollux/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "base/quantile.h"
#include "sim/pollux/alnair.h"
#include "sim/pollux/fifo.h"
#include "sim/pollux/gavel.h"
#include "sim/pollux/muster_policy.h"
#include "sim/pollux/optimus.h"
#include "sim/pollux/pollux.h"
#include "sim/pollux/srtf.h"
#include "sim/pollux/tiresias.h"
#include "sim/trace/table.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kIntervalSeconds = 60;
constexpr double kLatestSeconds = 1e10;  // three hundred years

using Factory = std::unique_ptr<AllocationPolicy> (*)(const ArenaOptions&);

template <typename Policy>
std::unique_ptr<AllocationPolicy> Simple(const ArenaOptions& /*options*/) {
  return std::make_unique<Policy>();
}

template <PolluxGavel::Aim kAim>
std::unique_ptr<AllocationPolicy> Rounds(const ArenaOptions& /*options*/) {
  return std::make_unique<PolluxGavel>(kAim);
}

const std::map<std::string, Factory>& Policies() {
  static const std::map<std::string, Factory> policies = {
      {"alnair-greedy", Simple<AlnairGreedy>},
      {"fifo", Simple<PolluxFifo>},
      {"gavel-makespan", Rounds<PolluxGavel::Aim::kMakespan>},
      {"gavel-max-min", Rounds<PolluxGavel::Aim::kMaxMin>},
      {"muster",
       [](const ArenaOptions& options) -> std::unique_ptr<AllocationPolicy> {
         return std::make_unique<MusterPolicy>(options.nodes, options.gpus_per_node,
                                               options.muster);
       }},
      {"optimus-oracle", Simple<Optimus>},
      {"pollux",
       [](const ArenaOptions& options) -> std::unique_ptr<AllocationPolicy> {
         return std::make_unique<Pollux>(options.seed);
       }},
      {"srtf", Simple<PolluxSrtf>},
      {"tiresias", Simple<Tiresias>},
  };
  return policies;
}

std::vector<ArenaResult::Use> UseOf(const std::vector<ArenaResult::Job>& jobs) {
  std::map<std::int64_t, int> changes;
  for (const auto& job : jobs) {
    for (const auto& stretch : job.stretches) {
      changes[stretch.start_s] += stretch.gpus;
      changes[stretch.end_s] -= stretch.gpus;
    }
  }
  std::vector<ArenaResult::Use> use;
  int now = 0;
  for (const auto& [at_s, change] : changes) {
    if (change != 0) use.push_back({at_s, now += change});
  }
  return use;
}

double SecondsSince(std::int64_t start_ns, Clock& clock) {
  return static_cast<double>(clock.MonotonicNs() - start_ns) * 1e-9;
}

class Arena {
 public:
  static Result<std::unique_ptr<Arena>> Make(const ArenaOptions& options,
                                             const AllocationPolicy& policy);
  Result<ArenaResult> Run(AllocationPolicy& policy, Clock& clock);

 private:
  explicit Arena(const ArenaOptions& options) : options_(options) {}
  Result<void> ReadWorkload(bool adaptive);
  void Move(TrainJob& job, std::vector<int> nodes, std::int64_t now_s);
  ArenaResult Sum() const;

  const ArenaOptions& options_;
  std::map<std::string, std::unique_ptr<Application>> applications_;
  std::vector<std::unique_ptr<TrainJob>> jobs_;  // in the order of the workload
  std::map<const TrainJob*, std::vector<ArenaResult::Stretch>> stretches_;
};

Result<std::unique_ptr<Arena>> Arena::Make(const ArenaOptions& options,
                                           const AllocationPolicy& policy) {
  std::unique_ptr<Arena> arena(new Arena(options));
  if (auto done = arena->ReadWorkload(policy.adaptive()); !done)
    return tl::unexpected(done.error());
  return arena;
}

Result<void> Arena::ReadWorkload(bool adaptive) {
  const auto table = Table::Read(options_.workload, options_.files);
  if (!table) return tl::unexpected(table.error());
  std::array<std::size_t, 5> columns{};
  constexpr std::array<const char*, 5> kNames = {"name", "time", "application", "num_replicas",
                                                 "batch_size"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto column = table->Column(kNames[i]);
    if (!column) return tl::unexpected(column.error());
    columns[i] = *column;
  }
  if (options_.most_jobs > 0 && table->rows() > options_.most_jobs) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} has {} jobs, which are too many for {} nodes and so many runs",
                            options_.workload, table->rows(), options_.nodes),
                fmt::format("at most {}: fewer nodes, seeds or policies", options_.most_jobs));
  }
  std::set<std::string> names;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    JobRequest request;
    request.name = table->Text(row, columns[0]);
    if (!names.insert(request.name).second) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}there is a job {} already", table->Where(row), request.name),
                  "give each job a name of its own");
    }
    const auto submit = table->Number(row, columns[1]);
    const auto gpus = table->Integer(row, columns[3]);
    const auto batch = table->Integer(row, columns[4]);
    if (!submit) return tl::unexpected(submit.error());
    if (!gpus) return tl::unexpected(gpus.error());
    if (!batch) return tl::unexpected(batch.error());
    auto& application = applications_[table->Text(row, columns[2])];
    if (!application) {
      auto read =
          Application::Read(options_.profiles, table->Text(row, columns[2]), options_.files);
      if (!read) return tl::unexpected(read.error());
      application = std::move(*read);
    }
    request.submit_s = static_cast<std::int64_t>(*submit);
    request.application = application.get();
    request.gpus = static_cast<int>(*gpus);
    request.batch = static_cast<int>(*batch);
    request.fixed_batch = !adaptive || application->name() == "ncf";
    request.learns = adaptive;
    // A GPU without a sample would have nothing to do.
    const int all = options_.nodes * options_.gpus_per_node;
    const int most_gpus = std::min(all, application->max_batch());
    if (*submit < 0 || *submit > kLatestSeconds || *gpus < 1 || *gpus > most_gpus ||
        *batch < application->first_batch() || *batch > application->max_batch()) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}{} GPUs with a batch of {} cannot run here", table->Where(row),
                              *gpus, *batch),
                  fmt::format("1 to {} GPUs, batches from {} to {}", most_gpus,
                              application->first_batch(), application->max_batch()));
    }
    jobs_.push_back(std::make_unique<TrainJob>(std::move(request)));
  }
  if (jobs_.empty()) return Fail(ErrorCode::kInvalid, options_.workload + " has no jobs");
  return {};
}

Result<ArenaResult> Arena::Run(AllocationPolicy& policy, Clock& clock) {
  std::vector<double> decisions_ms;
  std::size_t ended = 0;
  for (std::int64_t now = 0; ended < jobs_.size(); now += kIntervalSeconds) {
    for (const auto& job : jobs_) job->Advance(now, kIntervalSeconds);
    Scene scene{now + kIntervalSeconds, options_.nodes, options_.gpus_per_node, {}};
    const auto passed = [this, &ended]() -> Result<void> {
      if (!options_.progress) return {};
      return options_.progress(static_cast<double>(ended) / static_cast<double>(jobs_.size()));
    };
    scene.goes_on = [&passed] { return passed().has_value(); };
    ended = 0;
    for (const auto& job : jobs_) {
      if (job->completed_s()) {
        Move(*job, {}, *job->completed_s());
        ++ended;
      } else if (job->request().submit_s <= scene.now_s) {
        scene.jobs.push_back(job.get());
      }
    }
    if (auto on = passed(); !on) return tl::unexpected(on.error());
    if (scene.jobs.empty()) continue;
    const auto start_ns = clock.MonotonicNs();
    auto allocation = policy.Decide(scene);
    decisions_ms.push_back(SecondsSince(start_ns, clock) * 1000);
    for (std::size_t i = 0; i < scene.jobs.size(); ++i) {
      Move(*scene.jobs[i], std::move(allocation[i]), scene.now_s);
    }
  }
  auto result = Sum();
  result.policy_ms_p50 = Quantile(std::move(decisions_ms), 0.5);
  return result;
}

// Another place ends the stretch that the job is in.
void Arena::Move(TrainJob& job, std::vector<int> nodes, std::int64_t now_s) {
  if (nodes == job.nodes()) return;
  auto& stretches = stretches_[&job];
  if (job.gpus() > 0) stretches.back().end_s = now_s;
  if (!nodes.empty()) stretches.push_back({now_s, now_s, static_cast<int>(nodes.size())});
  job.Place(std::move(nodes));
}

ArenaResult Arena::Sum() const {
  ArenaResult result;
  result.gpus = options_.nodes * options_.gpus_per_node;
  std::vector<double> times;
  for (const auto& job : jobs_) {
    const auto jct = *job->completed_s() - job->request().submit_s;
    result.jobs.push_back({job->request().name, jct, job->application().name(),
                           job->request().submit_s, stretches_.at(job.get())});
    times.push_back(static_cast<double>(jct));
    result.mean_jct_s += times.back() / static_cast<double>(jobs_.size());
    result.makespan_s = std::max(result.makespan_s, *job->completed_s());
    result.restarts += job->restarts();
  }
  result.p99_jct_s = Quantile(std::move(times), 0.99);
  result.gpus_in_use = UseOf(result.jobs);
  return result;
}

}  // namespace

std::vector<std::string> ArenaPolicies() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Policies()) names.push_back(name);
  return names;
}

Result<ArenaResult> RunArena(const ArenaOptions& options, Clock& clock) {
  const auto found = Policies().find(options.policy);
  if (found == Policies().end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("there is no policy \"{}\"", options.policy),
                fmt::format("there are {}", fmt::join(ArenaPolicies(), ", ")));
  }
  const auto start_ns = clock.MonotonicNs();
  const auto policy = found->second(options);
  auto arena = Arena::Make(options, *policy);
  if (!arena) return tl::unexpected(arena.error());
  auto result = (*arena)->Run(*policy, clock);
  if (result) result->wall_s = SecondsSince(start_ns, clock);
  return result;
}

}  // namespace muster::sim
