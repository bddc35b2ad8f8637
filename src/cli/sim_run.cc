#include "cli/sim_run.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/table.h"
#include "model/document_writer.h"
#include "sim/jobs/generate.h"
#include "sim/oracles.h"
#include "sim/set_runs.h"

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
  if (set == "jobs") {
    return {"WAIT", "P99 WAIT", "JCT", "P99 JCT", "MAKESPAN", "USED", "PREEMPTIONS"};
  }
  return {"ALLOCATED", "FRAGMENTED", "PLACED", "FAILED"};
}

std::string Hours(double seconds) { return fmt::format("{:.2f} h", seconds / 3600); }

std::vector<std::string> Cells(const std::string& set, const std::vector<double>& f) {
  if (set == "pollux") {
    return {fmt::format("{:.0f} s", f[0]), Hours(f[1]), Hours(f[2]), fmt::format("{:.0f}", f[3]),
            fmt::format("{:.2f} ms", f[4])};
  }
  if (set == "jobs") {
    return {Hours(f[0]),
            Hours(f[1]),
            Hours(f[2]),
            Hours(f[3]),
            Hours(f[4]),
            fmt::format("{:.1f} %", f[5]),
            fmt::format("{:.0f}", f[6])};
  }
  return {fmt::format("{:.2f} %", f[0]), fmt::format("{:.2f} %", f[1]), fmt::format("{:.0f}", f[2]),
          fmt::format("{:.0f}", f[3])};
}

Result<Shown> ShowOpenb(const SimWords& words, const std::string& policy, std::int64_t seed,
                        ShareProgress& progress) {
  const auto run = PlayOpenb(words, policy, seed, progress);
  if (!run) return tl::unexpected(run.error());
  return Shown{Json::parse(model::WriteJson(sim::OpenbNode(policy, seed, *run))),
               {run->gpu_allocation_pct, run->fragmentation_pct, static_cast<double>(run->placed),
                static_cast<double>(run->failed)}};
}

Result<Shown> ShowArena(const SimWords& words, const std::string& policy, std::int64_t seed,
                        ShareProgress& progress) {
  const auto run = PlayArena(words, policy, seed, progress);
  if (!run) return tl::unexpected(run.error());
  return Shown{Json::parse(model::WriteJson(sim::ArenaNode(policy, seed, words.workload, *run))),
               {run->mean_jct_s, run->p99_jct_s, static_cast<double>(run->makespan_s),
                static_cast<double>(run->restarts), run->policy_ms_p50}};
}

Result<Shown> ShowJobs(const SimWords& words, const std::string& policy, std::int64_t seed,
                       ShareProgress& progress) {
  const auto run = PlayJobs(words, policy, progress);
  if (!run) return tl::unexpected(run.error());
  Shown shown{Json::parse(model::WriteJson(sim::JobsNode(policy, seed, words.workload, *run))),
              {run->mean_wait_s, run->p99_wait_s, run->mean_jct_s, run->p99_jct_s, run->makespan_s,
               run->utilisation_pct, static_cast<double>(run->preemptions)}};
  if (run->estimates) {
    shown.document["estimates"] = {{"waited", run->estimates->waited},
                                   {"coverage_pct", run->estimates->coverage_pct},
                                   {"pinball_s", run->estimates->pinball_s},
                                   {"queue_pinball_s", run->estimates->queue_pinball_s},
                                   {"runtimes", run->estimates->runtimes},
                                   {"runtime_factor", run->estimates->runtime_factor},
                                   {"plain_factor", run->estimates->plain_factor}};
  }
  return shown;
}

Result<Shown> Play(const SimWords& words, const std::string& policy, std::int64_t seed,
                   ShareProgress& progress) {
  if (words.set == "openb") return ShowOpenb(words, policy, seed, progress);
  if (words.set == "jobs") return ShowJobs(words, policy, seed, progress);
  return ShowArena(words, policy, seed, progress);
}

void PrintTable(const SimWords& words, const Rows& rows) {
  std::vector<std::string> head = {"POLICY"};
  for (auto& name : Heads(words.set)) head.push_back(std::move(name));
  std::cout << LayOut(head, rows, SheetNow());
}

}  // namespace

int RunSim(SimWords words, Output output) {
  if (const auto checked = Complete(words); !checked) return Refuse(checked.error());
  ShareProgress progress(RunsOf(words));
  const auto shown = Play(words, words.policy, words.seed, progress);
  if (!shown) return Refuse(shown.error());
  if (!ForPeople(output)) return ShowDocument(output, shown->document.dump());
  Rows rows(1, {sim::ShownName(words.policy)});
  for (auto& cell : Cells(words.set, shown->figures)) rows[0].push_back(std::move(cell));
  PrintTable(words, rows);
  return 0;
}

int CompareSim(SimWords words, Output output) {
  if (const auto checked = Complete(words); !checked) return Refuse(checked.error());
  ShareProgress progress(RunsOf(words));
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
    rows.push_back({sim::ShownName(policy)});
    for (auto& cell : Cells(words.set, means)) rows.back().push_back(std::move(cell));
  }
  if (!ForPeople(output)) return ShowDocument(output, Json({{"runs", std::move(runs)}}).dump());
  PrintTable(words, rows);
  return 0;
}

int GenerateSim(const GenerateWords& words, Output output) {
  const auto jobs = sim::GenerateJobs({.jobs = words.jobs,
                                       .seed = static_cast<std::uint64_t>(words.seed),
                                       .like = words.like,
                                       .jobs_per_hour = static_cast<double>(words.rate)});
  if (!jobs) return Refuse(jobs.error());
  if (ForPeople(output)) {
    std::cout << sim::WriteJobs(*jobs);
    return 0;
  }
  Json list = Json::array();
  for (const auto& job : *jobs) {
    list.push_back({{"name", job.name},
                    {"user", job.user},
                    {"queue", job.queue},
                    {"submit_s", static_cast<double>(job.submit_ms) / 1000},
                    {"gpus", job.gpus},
                    {"duration_s", job.duration_ms / 1000}});
  }
  return ShowDocument(output, Json({{"jobs", std::move(list)}}).dump());
}

}  // namespace muster::cli
