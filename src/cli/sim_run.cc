#include "cli/sim_run.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "sim/openb/experiment.h"
#include "sim/pollux/arena.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

// Fills in what was left out. A flag that the set needs and nobody gave, or one that it has no use
// for, is a mistake.
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

// How the result of a set is shown: as a document, and as a row of a table.
struct Shown {
  Json document;
  std::vector<double> figures;  // under Heads()
};

std::vector<std::string> Heads(const std::string& set) {
  if (set == "pollux") return {"JCT", "P99", "MAKESPAN", "RESTARTS", "DECISION"};
  return {"ALLOCATED", "FRAGMENTED", "PLACED", "FAILED"};
}

std::vector<std::string> Cells(const std::string& set, const std::vector<double>& f) {
  if (set == "pollux") {
    return {fmt::format("{:.0f} s", f[0]), fmt::format("{:.2f} h", f[1] / 3600),
            fmt::format("{:.2f} h", f[2] / 3600), fmt::format("{:.0f}", f[3]),
            fmt::format("{:.2f} ms", f[4])};
  }
  return {fmt::format("{:.2f} %", f[0]), fmt::format("{:.2f} %", f[1]), fmt::format("{:.0f}", f[2]),
          fmt::format("{:.0f}", f[3])};
}

Result<Shown> Play(const SimWords& words, const std::string& policy, std::int64_t seed,
                   Progress& progress) {
  SystemClock clock;
  if (words.set == "openb") {
    const auto run =
        sim::RunOpenb({words.nodes, words.pods, policy, static_cast<std::uint64_t>(seed)}, clock);
    if (!run) return tl::unexpected(run.error());
    return Shown{{{"policy", policy},
                  {"seed", seed},
                  {"gpu_allocation_pct", run->gpu_allocation_pct},
                  {"fragmentation_pct", run->fragmentation_pct},
                  {"placed", run->placed},
                  {"failed", run->failed},
                  {"wall_s", run->wall_s}},
                 {run->gpu_allocation_pct, run->fragmentation_pct, static_cast<double>(run->placed),
                  static_cast<double>(run->failed)}};
  }
  sim::ArenaOptions options;
  options.profiles = words.profiles;
  options.workload = words.workload;
  options.policy = policy;
  options.seed = static_cast<std::uint64_t>(seed);
  options.nodes = static_cast<int>(words.node_count);
  options.gpus_per_node = static_cast<int>(words.gpus_per_node);
  options.progress = [&](double share) {
    progress.Say(
        fmt::format("{} seed {}: {:.0f} % of the jobs have ended", policy, seed, 100 * share));
  };
  const auto run = sim::RunArena(options, clock);
  progress.Erase();
  if (!run) return tl::unexpected(run.error());
  Json jobs = Json::array();
  for (const auto& job : run->jobs) jobs.push_back({{"name", job.name}, {"jct_s", job.jct_s}});
  return Shown{{{"policy", policy},
                {"seed", seed},
                {"workload", words.workload},
                {"mean_jct_s", run->mean_jct_s},
                {"p99_jct_s", run->p99_jct_s},
                {"makespan_s", run->makespan_s},
                {"restarts", run->restarts},
                {"policy_ms_p50", run->policy_ms_p50},
                {"wall_s", run->wall_s},
                {"jobs", std::move(jobs)}},
               {run->mean_jct_s, run->p99_jct_s, static_cast<double>(run->makespan_s),
                static_cast<double>(run->restarts), run->policy_ms_p50}};
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

void PrintTable(const SimWords& words, const Rows& rows) {
  std::vector<std::string> head = {"POLICY"};
  for (auto& name : Heads(words.set)) head.push_back(std::move(name));
  std::cout << LayOut(head, rows, SheetNow());
}

}  // namespace

int RunSim(SimWords words, Output output) {
  if (const auto checked = Complete(words); !checked) return Refuse(checked.error());
  Progress progress;
  const auto shown = Play(words, words.policy, words.seed, progress);
  if (!shown) return Refuse(shown.error());
  if (!ForPeople(output)) return ShowDocument(output, shown->document.dump());
  Rows rows(1, {words.policy});
  for (auto& cell : Cells(words.set, shown->figures)) rows[0].push_back(std::move(cell));
  PrintTable(words, rows);
  return 0;
}

int CompareSim(SimWords words, Output output) {
  if (const auto checked = Complete(words); !checked) return Refuse(checked.error());
  Progress progress;
  Rows rows;
  Json runs = Json::array();
  for (const auto& policy : Split(words.policies)) {
    std::vector<double> means;
    for (std::int64_t i = 0; i < words.seeds; ++i) {
      auto shown = Play(words, policy, words.seed + i, progress);
      if (!shown) return Refuse(shown.error());
      means.resize(shown->figures.size());
      for (std::size_t f = 0; f < means.size(); ++f) {
        means[f] += shown->figures[f] / static_cast<double>(words.seeds);
      }
      runs.push_back(std::move(shown->document));
    }
    rows.push_back({policy});
    for (auto& cell : Cells(words.set, means)) rows.back().push_back(std::move(cell));
  }
  if (!ForPeople(output)) return ShowDocument(output, Json({{"runs", std::move(runs)}}).dump());
  PrintTable(words, rows);
  return 0;
}

}  // namespace muster::cli
