#include "sim/set_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/document_writer.h"
#include "sim/openb/policy.h"
#include "sim/report/report.h"

namespace muster::sim {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kMostJobsKept = 200'000;  // of all runs together

model::DocNode RealNode(double value) { return model::PlainNode(fmt::format("{}", value)); }

model::DocNode CountNode(std::size_t count) { return NumberNode(static_cast<std::int64_t>(count)); }

// One run after the other; `play(policy, seed, progress)` does one and says whether it went well.
template <typename Play>
Result<void> EachRun(const SetWish& wish, const std::function<Result<void>(double)>& pass,
                     Play play) {
  const auto all = static_cast<double>(wish.seeds) * static_cast<double>(wish.policies.size());
  double done = 0;
  for (const auto& policy : wish.policies) {
    for (std::int64_t i = 0; i < wish.seeds; ++i, ++done) {
      const auto progress = [&](double share) { return pass((done + share) / all); };
      if (auto played = play(policy, wish.seed + i, progress); !played) return played;
    }
  }
  return {};
}

Result<SetRuns> PlayOpenbSet(const SetWish& wish, const TraceFiles& files, report::Origin origin,
                             Clock& clock, const std::function<Result<void>(double)>& pass) {
  SetRuns out;
  std::vector<report::OpenbRuns> all;
  auto done = EachRun(
      wish, pass,
      [&](const std::string& policy, std::int64_t seed, const auto& progress) -> Result<void> {
        const auto run = RunOpenb(
            {wish.nodes, wish.pods, policy, static_cast<std::uint64_t>(seed), files, progress},
            clock);
        if (!run) return tl::unexpected(run.error());
        if (seed == wish.seed) all.push_back({policy, {}});
        all.back().runs.push_back(*run);
        out.runs.push_back(OpenbNode(policy, seed, *run));
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  origin.files = {{"nodes", wish.nodes}, {"pods", wish.pods}};
  out.page = report::OpenbReport(origin, all).front().text;
  return out;
}

Result<SetRuns> PlayArenaSet(const SetWish& wish, const TraceFiles& files, report::Origin origin,
                             Clock& clock, const std::function<Result<void>(double)>& pass) {
  SetRuns out;
  std::vector<report::ArenaRuns> all;
  ArenaOptions options;
  options.profiles = wish.profiles;
  options.workload = wish.workload;
  options.files = files;
  if (wish.node_count > 0) options.nodes = static_cast<int>(wish.node_count);
  if (wish.gpus_per_node > 0) options.gpus_per_node = static_cast<int>(wish.gpus_per_node);
  const auto runs = wish.policies.size() * static_cast<std::size_t>(wish.seeds);
  auto done = EachRun(
      wish, pass,
      [&](const std::string& policy, std::int64_t seed, const auto& progress) -> Result<void> {
        options.policy = policy;
        options.seed = static_cast<std::uint64_t>(seed);
        options.progress = progress;
        auto run = RunArena(options, clock);
        if (!run) return tl::unexpected(run.error());
        if (run->jobs.size() * runs > kMostJobsKept) {
          return Fail(ErrorCode::kInvalid,
                      fmt::format("{} jobs in {} runs are too many", run->jobs.size(), runs),
                      fmt::format("at most {} together: fewer seeds or policies", kMostJobsKept));
        }
        if (seed == wish.seed) all.push_back({policy, {}});
        out.runs.push_back(ArenaNode(policy, seed, wish.workload, *run));
        all.back().runs.push_back(*std::move(run));
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  origin.files = {{"profiles", wish.profiles}, {"workload", wish.workload}};
  out.page = report::ArenaReport(origin, all).front().text;
  return out;
}

}  // namespace

model::DocNode ArenaNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                         const ArenaResult& run) {
  model::DocNode node = MapNode(), jobs = ListNode();
  Put(node, "policy", TextNode(policy));
  Put(node, "seed", NumberNode(seed));
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
  Put(node, "policy", TextNode(policy));
  Put(node, "seed", NumberNode(seed));
  Put(node, "gpu_allocation_pct", RealNode(run.gpu_allocation_pct));
  Put(node, "fragmentation_pct", RealNode(run.fragmentation_pct));
  Put(node, "placed", CountNode(run.placed));
  Put(node, "failed", CountNode(run.failed));
  Put(node, "wall_s", RealNode(run.wall_s));
  return node;
}

Result<void> CheckPolicies(const SetWish& wish) {
  std::vector<std::string> there;
  if (wish.openb) {
    const auto names = PlacementPolicyNames();
    there.assign(names.begin(), names.end());
  } else {
    there = ArenaPolicies();
  }
  for (const auto& policy : wish.policies) {
    if (std::ranges::count(wish.policies, policy) > 1) {
      return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" is named twice", policy),
                  "name each policy once");
    }
    if (std::ranges::find(there, policy) != there.end()) continue;
    return Fail(ErrorCode::kInvalid, fmt::format("there is no policy \"{}\"", policy),
                fmt::format("there are {}", fmt::join(there, ", ")));
  }
  return {};
}

Result<SetRuns> PlaySet(const SetWish& wish, const TraceFiles& files, const std::string& version,
                        Clock& clock, const std::function<Result<void>(double)>& pass) {
  const report::Origin origin{version, {}, wish.seed};
  return wish.openb ? PlayOpenbSet(wish, files, origin, clock, pass)
                    : PlayArenaSet(wish, files, origin, clock, pass);
}

}  // namespace muster::sim
