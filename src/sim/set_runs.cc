#include "sim/set_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/policy_file.h"
#include "model/document_writer.h"
#include "sim/openb/policy.h"
#include "sim/oracles.h"

namespace muster::sim {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kMostJobsKept = 200'000;  // of all runs together
constexpr std::size_t kMostPlaces = 500'000;    // jobs times nodes: a search keeps some hundreds

model::DocNode RealNode(double value) { return model::PlainNode(fmt::format("{}", value)); }

model::DocNode CountNode(std::size_t count) { return NumberNode(static_cast<std::int64_t>(count)); }

void PutPolicy(model::DocNode& node, const std::string& policy, std::int64_t seed) {
  Put(node, "policy", TextNode(policy));
  if (IsOracle(policy)) Put(node, "oracle", model::BoolNode(true));
  Put(node, "seed", NumberNode(seed));
}

// As SetWish has it.
Result<engine::Policy> MusterOf(const SetWish& wish) {
  if (wish.policy_file.empty()) return engine::Policy{};
  if (std::ranges::find(wish.policies, "muster") == wish.policies.end()) {
    return Fail(ErrorCode::kInvalid, "settings are for `muster`, which is not played",
                "name it among the policies, or leave the settings out");
  }
  const auto file = engine::ReadPolicyFile(wish.policy_file);
  if (!file) return tl::unexpected(file.error());
  return engine::ApplySettings(file->settings);
}

Result<void> CheckCount(std::size_t jobs, std::size_t runs) {
  if (jobs * runs <= kMostJobsKept) return {};
  return Fail(ErrorCode::kInvalid, fmt::format("{} jobs in {} runs are too many", jobs, runs),
              fmt::format("at most {} together: fewer seeds or policies", kMostJobsKept));
}

struct SetPlay {
  const SetWish& wish;
  const engine::Policy muster;
  report::Origin origin;
  const TraceFiles& files;
  Clock& clock;
  const std::function<Result<void>(double)>& pass;
};

// One run after the other; `play(policy, seed, progress)` does one and says whether it went well.
template <typename Play>
Result<void> EachRun(const SetPlay& set, Play play) {
  const auto& wish = set.wish;
  const auto all = static_cast<double>(wish.seeds) * static_cast<double>(wish.policies.size());
  double done = 0;
  for (const auto& policy : wish.policies) {
    for (std::int64_t i = 0; i < wish.seeds; ++i, ++done) {
      const auto progress = [&](double share) { return set.pass((done + share) / all); };
      if (auto played = play(policy, wish.seed + i, progress); !played) return played;
    }
  }
  return {};
}

Result<SetRuns> PlayOpenbSet(SetPlay set) {
  const auto& wish = set.wish;
  SetRuns out;
  std::vector<report::OpenbRuns> all;
  auto done = EachRun(
      set, [&](const std::string& policy, std::int64_t seed, const auto& progress) -> Result<void> {
        const auto run = RunOpenb({wish.nodes, wish.pods, policy, static_cast<std::uint64_t>(seed),
                                   set.files, progress, set.muster},
                                  set.clock);
        if (!run) return tl::unexpected(run.error());
        if (seed == wish.seed) all.push_back({policy, {}});
        all.back().runs.push_back(*run);
        out.runs.push_back(OpenbNode(policy, seed, *run));
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  set.origin.files = {{"nodes", wish.nodes}, {"pods", wish.pods}};
  PutSettings(set.origin, set.muster);
  out.page = report::OpenbReport(set.origin, all).front().text;
  return out;
}

Result<SetRuns> PlayArenaSet(SetPlay set) {
  const auto& wish = set.wish;
  SetRuns out;
  std::vector<report::ArenaRuns> all;
  ArenaOptions options;
  options.profiles = wish.profiles;
  options.workload = wish.workload;
  options.files = set.files;
  options.muster = set.muster;
  if (wish.node_count > 0) options.nodes = static_cast<int>(wish.node_count);
  if (wish.gpus_per_node > 0) options.gpus_per_node = static_cast<int>(wish.gpus_per_node);
  const auto runs = wish.policies.size() * static_cast<std::size_t>(wish.seeds);
  options.most_jobs =
      std::max<std::size_t>(1, std::min(kMostJobsKept / std::max<std::size_t>(1, runs),
                                        kMostPlaces / static_cast<std::size_t>(options.nodes)));
  auto done = EachRun(
      set, [&](const std::string& policy, std::int64_t seed, const auto& progress) -> Result<void> {
        options.policy = policy;
        options.seed = static_cast<std::uint64_t>(seed);
        options.progress = progress;
        auto run = RunArena(options, set.clock);
        if (!run) return tl::unexpected(run.error());
        if (seed == wish.seed) all.push_back({policy, {}});
        out.runs.push_back(ArenaNode(policy, seed, wish.workload, *run));
        all.back().runs.push_back(*std::move(run));
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  set.origin.files = {{"profiles", wish.profiles}, {"workload", wish.workload}};
  PutSettings(set.origin, set.muster);
  out.page = report::ArenaReport(set.origin, all).front().text;
  return out;
}

Result<SetRuns> PlayJobsSet(SetPlay set) {
  const auto& wish = set.wish;
  SetRuns out;
  std::vector<report::JobsRun> all;
  if (auto few = CheckCount(wish.jobs.size(), wish.policies.size()); !few) {
    return tl::unexpected(few.error());
  }
  auto done = EachRun(
      set, [&](const std::string& policy, std::int64_t seed, const auto& progress) -> Result<void> {
        JobsOptions options{wish.workload, policy, wish.node_count};
        if (wish.gpus_per_node > 0) options.gpus_per_node = wish.gpus_per_node;
        options.over_time = true;
        options.muster = set.muster;
        options.progress = progress;
        auto run = RunJobs(options, wish.jobs, set.clock);
        if (!run) return tl::unexpected(run.error());
        out.runs.push_back(JobsNode(policy, seed, wish.workload, *run));
        all.push_back({policy, *std::move(run)});
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  set.origin.files = {{"workload", wish.workload}};
  PutSettings(set.origin, set.muster);
  out.page = report::JobsReport(set.origin, all).front().text;
  return out;
}

}  // namespace

model::DocNode JobsNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                        const JobsResult& run) {
  model::DocNode node = MapNode(), jobs = ListNode();
  PutPolicy(node, policy, seed);
  Put(node, "workload", TextNode(workload));
  Put(node, "node_count", NumberNode(run.nodes));
  Put(node, "gpus_per_node", NumberNode(run.gpus_per_node));
  Put(node, "mean_wait_s", RealNode(run.mean_wait_s));
  Put(node, "p99_wait_s", RealNode(run.p99_wait_s));
  Put(node, "mean_jct_s", RealNode(run.mean_jct_s));
  Put(node, "p99_jct_s", RealNode(run.p99_jct_s));
  Put(node, "makespan_s", RealNode(run.makespan_s));
  Put(node, "utilisation_pct", RealNode(run.utilisation_pct));
  Put(node, "preemptions", NumberNode(run.preemptions));
  if (run.deadlines > 0) {
    Put(node, "deadlines", NumberNode(run.deadlines));
    Put(node, "deadlines_met_pct", RealNode(run.deadlines_met_pct));
  }
  Put(node, "wall_s", RealNode(run.wall_s));
  jobs.children.reserve(run.jobs.size());
  for (const auto& job : run.jobs) {
    model::DocNode one = MapNode();
    Put(one, "name", TextNode(job.name));
    Put(one, "wait_s", RealNode(job.wait_s));
    Put(one, "jct_s", RealNode(job.jct_s));
    jobs.children.push_back(std::move(one));
  }
  Put(node, "jobs", std::move(jobs));
  return node;
}

model::DocNode ArenaNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                         const ArenaResult& run) {
  model::DocNode node = MapNode(), jobs = ListNode();
  PutPolicy(node, policy, seed);
  Put(node, "workload", TextNode(workload));
  Put(node, "mean_jct_s", RealNode(run.mean_jct_s));
  Put(node, "p99_jct_s", RealNode(run.p99_jct_s));
  Put(node, "makespan_s", NumberNode(run.makespan_s));
  Put(node, "restarts", NumberNode(run.restarts));
  Put(node, "policy_ms_p50", RealNode(run.policy_ms_p50));
  Put(node, "wall_s", RealNode(run.wall_s));
  jobs.children.reserve(run.jobs.size());
  for (const auto& job : run.jobs) {
    model::DocNode one = MapNode();
    Put(one, "name", TextNode(job.name));
    Put(one, "jct_s", NumberNode(job.jct_s));
    jobs.children.push_back(std::move(one));
  }
  Put(node, "jobs", std::move(jobs));
  return node;
}

model::DocNode OpenbNode(const std::string& policy, std::int64_t seed, const OpenbResult& run) {
  model::DocNode node = MapNode();
  PutPolicy(node, policy, seed);
  Put(node, "gpu_allocation_pct", RealNode(run.gpu_allocation_pct));
  Put(node, "fragmentation_pct", RealNode(run.fragmentation_pct));
  Put(node, "placed", CountNode(run.placed));
  Put(node, "failed", CountNode(run.failed));
  Put(node, "wall_s", RealNode(run.wall_s));
  return node;
}

Result<engine::Policy> CheckPolicies(const SetWish& wish) {
  std::vector<std::string> there;
  if (wish.set == LabSet::kOpenb) {
    const auto names = PlacementPolicyNames();
    there.assign(names.begin(), names.end());
  } else {
    there = wish.set == LabSet::kJobs ? JobsPolicies() : ArenaPolicies();
  }
  for (const auto& policy : wish.policies) {
    if (std::ranges::count(wish.policies, policy) > 1) {
      return Fail(ErrorCode::kUsage, fmt::format("\"{}\" is named twice", policy),
                  "name each policy once");
    }
    if (std::ranges::find(there, policy) != there.end()) continue;
    return Fail(ErrorCode::kNotFound, fmt::format("there is no policy \"{}\"", policy),
                fmt::format("there are {}", fmt::join(there, ", ")));
  }
  auto muster = MusterOf(wish);
  if (!muster && muster.error().path.empty()) muster.error().path = "policy";
  return muster;
}

void PutSettings(report::Origin& origin, const engine::Policy& muster) {
  std::string text;
  for (const auto& [name, value] : engine::ChangedSettings(muster)) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
  }
  if (!text.empty()) origin.files.emplace_back("settings of muster", text);
}

Result<SetRuns> PlaySet(const SetWish& wish, const TraceFiles& files, const std::string& version,
                        Clock& clock, const std::function<Result<void>(double)>& pass) {
  const auto muster = MusterOf(wish);
  if (!muster) return tl::unexpected(muster.error());
  SetPlay set{wish, *muster, {version, {}, wish.seed}, files, clock, pass};
  if (wish.set == LabSet::kJobs) return PlayJobsSet(std::move(set));
  return wish.set == LabSet::kOpenb ? PlayOpenbSet(std::move(set)) : PlayArenaSet(std::move(set));
}

}  // namespace muster::sim
