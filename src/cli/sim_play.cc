#include "cli/sim_play.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace muster::cli {

Result<void> Complete(SimWords& words) {
  if (words.set.empty() && words.profiles.empty() && words.nodes.empty()) {
    return Fail(ErrorCode::kUsage, "there is nothing to play",
                "--profiles for the pollux set, --nodes and --pods for the openb set");
  }
  if (words.set.empty()) words.set = words.profiles.empty() ? "openb" : "pollux";
  if (words.workload.empty() && !words.profiles.empty()) {
    words.workload = words.profiles + "/workload.csv";
  }
  const auto needs = [&](const std::string& value, const char* flag, bool wanted) -> Result<void> {
    if (value.empty() != wanted) return {};
    const char* hint = "`muster sim run --help` has an example of each set";
    if (wanted) {
      return Fail(ErrorCode::kUsage, fmt::format("--set {} needs {}", words.set, flag), hint);
    }
    return Fail(ErrorCode::kUsage, fmt::format("{} is not for --set {}", flag, words.set), hint);
  };
  const bool pollux = words.set == "pollux";
  for (const auto& checked :
       {needs(words.profiles, "--profiles", pollux), needs(words.workload, "--workload", pollux),
        needs(words.nodes, "--nodes", !pollux), needs(words.pods, "--pods", !pollux)}) {
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
  options.progress = [&](double share) {
    progress.Say(
        fmt::format("{} seed {}: {:.0f} % of the jobs have ended", policy, seed, 100 * share));
  };
  auto run = sim::RunArena(options, clock);
  progress.Erase();
  return run;
}

Result<sim::OpenbResult> PlayOpenb(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, Progress& progress) {
  SystemClock clock;
  progress.Say(fmt::format("{} seed {}", policy, seed));
  auto run =
      sim::RunOpenb({words.nodes, words.pods, policy, static_cast<std::uint64_t>(seed)}, clock);
  progress.Erase();
  return run;
}

}  // namespace muster::cli
