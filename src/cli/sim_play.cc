#include "cli/sim_play.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/policy_in.h"
#include "sim/set_runs.h"

namespace muster::cli {
namespace {

// Before the first run is played.
Result<void> CheckNames(const SimWords& words) {
  sim::SetWish wish;
  wish.set = words.set == "openb"  ? sim::LabSet::kOpenb
             : words.set == "jobs" ? sim::LabSet::kJobs
                                   : sim::LabSet::kPollux;
  wish.policies = PoliciesOf(words);
  const auto checked = sim::CheckPolicies(wish);
  if (!checked) return tl::unexpected(checked.error());
  return {};
}

Result<void> ReadSettings(SimWords& words) {
  if (words.policy_file.empty()) return {};
  const auto played = PoliciesOf(words);
  if (std::ranges::find(played, "muster") == played.end()) {
    return Fail(ErrorCode::kUsage, "--policy-file is for the policy `muster`, which is not played",
                "name it among the policies, or leave the file out");
  }
  const auto read = PolicyIn(words.policy_file);
  if (!read) return tl::unexpected(read.error());
  words.muster = read->policy;
  return {};
}

}  // namespace

Result<void> Complete(SimWords& words) {
  const bool places = !words.nodes.empty() || !words.pods.empty();
  if (words.set.empty() && words.profiles.empty() && words.workload.empty() && !places) {
    return Fail(ErrorCode::kUsage, "there is nothing to play",
                "--workload for the jobs set, --profiles for pollux, --nodes and --pods for openb");
  }
  if (words.set.empty()) {
    words.set = !words.profiles.empty() ? "pollux" : places ? "openb" : "jobs";
  }
  const bool pollux = words.set == "pollux", openb = words.set == "openb",
             jobs = words.set == "jobs";
  if (words.workload.empty() && !words.profiles.empty()) {
    words.workload = words.profiles + "/workload.csv";
  }
  const auto needs = [&](bool given, const char* flag, bool wanted) -> Result<void> {
    if (given == wanted) return {};
    const char* hint = "`muster sim run --help` has an example of each set";
    if (wanted) {
      return Fail(ErrorCode::kUsage, fmt::format("--set {} needs {}", words.set, flag), hint);
    }
    return Fail(ErrorCode::kUsage, fmt::format("{} is not for --set {}", flag, words.set), hint);
  };
  for (const auto& checked :
       {needs(!words.profiles.empty(), "--profiles", pollux),
        needs(!words.workload.empty(), "--workload", pollux || jobs),
        needs(!words.nodes.empty(), "--nodes", openb), needs(!words.pods.empty(), "--pods", openb),
        jobs ? needs(words.seeds > 1, "--seeds", false)
             : needs(words.estimates, "--estimates", false),
        openb ? needs(words.node_count > 0, "--node-count", false) : Result<void>{},
        openb ? needs(words.gpus_per_node > 0, "--gpus-per-node", false) : Result<void>{}}) {
    if (!checked) return checked;
  }
  if (auto known = CheckNames(words); !known) return known;
  return ReadSettings(words);
}

std::int64_t RunsOf(const SimWords& words) { return words.seeds * std::ssize(PoliciesOf(words)); }

std::vector<std::string> PoliciesOf(const SimWords& words) {
  if (words.policies.empty()) return {words.policy};
  std::vector<std::string> policies(1);
  for (const char c : words.policies) {
    if (c == ',') {
      policies.emplace_back();
    } else {
      policies.back() += c;
    }
  }
  return policies;
}

Result<sim::ArenaResult> PlayArena(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, ShareProgress& progress) {
  SystemClock clock;
  sim::ArenaOptions options;
  options.profiles = words.profiles;
  options.workload = words.workload;
  options.muster = words.muster;
  options.policy = policy;
  options.seed = static_cast<std::uint64_t>(seed);
  if (words.node_count > 0) options.nodes = static_cast<int>(words.node_count);
  if (words.gpus_per_node > 0) options.gpus_per_node = static_cast<int>(words.gpus_per_node);
  options.progress = progress.Next(fmt::format("{} seed {}", policy, seed));
  auto run = sim::RunArena(options, clock);
  progress.Erase();
  return run;
}

Result<sim::OpenbResult> PlayOpenb(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, ShareProgress& progress) {
  SystemClock clock;
  sim::OpenbOptions options{words.nodes, words.pods, policy, static_cast<std::uint64_t>(seed)};
  options.muster = words.muster;
  options.progress = progress.Next(fmt::format("{} seed {}", policy, seed));
  auto run = sim::RunOpenb(options, clock);
  progress.Erase();
  return run;
}

Result<sim::JobsResult> PlayJobs(const SimWords& words, const std::string& policy,
                                 ShareProgress& progress, bool over_time) {
  SystemClock clock;
  sim::JobsOptions options;
  options.workload = words.workload;
  options.policy = policy;
  options.nodes = words.node_count;
  options.estimates = words.estimates;
  options.muster = words.muster;
  options.over_time = over_time;
  if (words.gpus_per_node > 0) options.gpus_per_node = words.gpus_per_node;
  options.progress = progress.Next(policy);
  auto run = sim::RunJobs(options, clock);
  progress.Erase();
  return run;
}

}  // namespace muster::cli
