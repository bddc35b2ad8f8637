// The report of the Pollux set: completion times, use of the GPUs, and who held them when.
#include <fmt/format.h>

#include "sim/oracles.h"
#include "sim/report/charts.h"
#include "sim/report/report.h"
#include "sim/report/time_plots.h"

namespace muster::sim::report {
namespace {

using Figure = double (*)(const ArenaResult&);

std::vector<double> Over(const std::vector<ArenaResult>& runs, Figure figure) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const auto& run : runs) values.push_back(figure(run));
  return values;
}

std::vector<double> MeansOf(const std::vector<ArenaRuns>& policies, Figure figure) {
  std::vector<double> means;
  means.reserve(policies.size());
  for (const auto& one : policies) means.push_back(Mean(Over(one.runs, figure)));
  return means;
}

Grid Summary(const std::vector<ArenaRuns>& policies) {
  const std::size_t seeds = policies.front().runs.size();
  const Figure jct = [](const ArenaResult& run) { return run.mean_jct_s; };
  Grid grid;
  grid.caption = seeds > 1 ? fmt::format("Means of {} seeds", seeds) : "All jobs";
  grid.note =
      "JCT: the time from a job's submission to its end. Utilisation: the share of all GPU time "
      "until the last end that jobs held.";
  grid.head = {"policy", "mean JCT", "p99 JCT", "makespan", "restarts", "utilisation"};
  for (const auto& one : policies) grid.rows.push_back({{ShownName(one.policy)}});
  grid.note += BestNote(grid);
  const auto column = [&](const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) grid.rows[i].push_back({texts[i]});
  };
  const Figure p99 = [](const ArenaResult& run) { return run.p99_jct_s; };
  const Figure makespan = [](const ArenaResult& run) {
    return static_cast<double>(run.makespan_s);
  };
  for (const Figure figure : {jct, p99, makespan}) {
    const auto means = MeansOf(policies, figure);
    column(Durations(means));
    MarkBest(grid, grid.rows.front().size() - 1, means, true);
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const auto& runs = policies[i].runs;
    const auto restarts =
        Over(runs, [](const ArenaResult& run) { return static_cast<double>(run.restarts); });
    grid.rows[i].push_back({fmt::format("{:.0f}", Mean(restarts))});
    grid.rows[i].push_back({fmt::format("{:.1f} %", Mean(Over(runs, Utilisation)))});
  }
  if (seeds < 2) return grid;
  grid.head.emplace_back("range of mean JCT");
  std::vector<double> ends;
  for (const auto& one : policies) {
    ends.push_back(Least(Over(one.runs, jct)));
    ends.push_back(Most(Over(one.runs, jct)));
  }
  const auto texts = Durations(ends);
  for (std::size_t i = 0; i < policies.size(); ++i) {
    grid.rows[i].push_back({texts[2 * i] + " to " + texts[2 * i + 1]});
  }
  return grid;
}

}  // namespace

std::vector<File> ArenaReport(const Origin& origin, const std::vector<ArenaRuns>& policies) {
  const auto& first = policies.front().runs.front();
  std::string names;
  for (const auto& one : policies) names += (names.empty() ? "" : ", ") + one.policy;
  const std::size_t seeds = policies.front().runs.size();
  Page page("Training jobs under " + NameAll(policies.size(), names));
  auto facts = origin.files;
  facts.emplace_back("policies", names);
  facts.emplace_back(seeds > 1 ? "seeds" : "seed", SeedText(origin.seed, seeds));
  facts.emplace_back("jobs", fmt::format("{}", first.jobs.size()));
  facts.emplace_back("cluster", fmt::format("{} GPUs, simulated", first.gpus));
  facts.emplace_back("made by", "muster sim report, version " + origin.version);
  page.Add(facts);
  page.Heading("Policies");
  page.Add(Summary(policies));
  page.Add(JctByKind(policies, "application"));
  AddTimePlots(page, policies, seeds > 1 ? fmt::format(", of seed {}", origin.seed) : "");
  return std::move(page).Finish();
}

}  // namespace muster::sim::report
