#include "cli/sim_run.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

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
  if (words.set == "openb") {
    const auto run = PlayOpenb(words, policy, seed, progress);
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
  const auto run = PlayArena(words, policy, seed, progress);
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
  for (const auto& policy : PoliciesOf(words)) {
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
