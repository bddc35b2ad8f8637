#include "cli/sim_play.h"

#include <fmt/format.h>

#include <functional>

#include "base/clock.h"

namespace muster::cli {
namespace {

constexpr const char* kEnded = "jobs have ended";

// Tells how far a run is.
std::function<Result<void>(double)> Teller(const std::string& run, const char* what,
                                           Progress& progress) {
  return [run, what, &progress](double share) -> Result<void> {
    progress.Say(fmt::format("{}: {:.0f} % of the {}", run, 100 * share, what));
    return {};
  };
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
        jobs ? Result<void>{} : needs(words.estimates, "--estimates", false),
        openb ? needs(words.node_count > 0, "--node-count", false) : Result<void>{},
        openb ? needs(words.gpus_per_node > 0, "--gpus-per-node", false) : Result<void>{}}) {
    if (!checked) return checked;
  }
  return {};
}

std::vector<std::string> PoliciesOf(const SimWords& words) {
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
                                   std::int64_t seed, Progress& progress) {
  SystemClock clock;
  sim::ArenaOptions options;
  options.profiles = words.profiles;
  options.workload = words.workload;
  options.policy = policy;
  options.seed = static_cast<std::uint64_t>(seed);
  if (words.node_count > 0) options.nodes = static_cast<int>(words.node_count);
  if (words.gpus_per_node > 0) options.gpus_per_node = static_cast<int>(words.gpus_per_node);
  options.progress = Teller(fmt::format("{} seed {}", policy, seed), kEnded, progress);
  auto run = sim::RunArena(options, clock);
  progress.Erase();
  return run;
}

Result<sim::OpenbResult> PlayOpenb(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, Progress& progress) {
  SystemClock clock;
  sim::OpenbOptions options{words.nodes, words.pods, policy, static_cast<std::uint64_t>(seed)};
  options.progress = Teller(fmt::format("{} seed {}", policy, seed), "pods", progress);
  auto run = sim::RunOpenb(options, clock);
  progress.Erase();
  return run;
}

Result<sim::JobsResult> PlayJobs(const SimWords& words, const std::string& policy,
                                 Progress& progress, bool over_time) {
  SystemClock clock;
  sim::JobsOptions options;
  options.workload = words.workload;
  options.policy = policy;
  options.nodes = words.node_count;
  options.estimates = words.estimates;
  options.over_time = over_time;
  if (words.gpus_per_node > 0) options.gpus_per_node = words.gpus_per_node;
  options.progress = [tell = Teller(policy, kEnded, progress)](double share) { (void)tell(share); };
  auto run = sim::RunJobs(options, clock);
  progress.Erase();
  return run;
}

}  // namespace muster::cli
