// The report of the jobs set: waits and completion times, use of the GPUs, and who held them when.
#include <fmt/format.h>

#include <cmath>

#include "sim/oracles.h"
#include "sim/report/report.h"
#include "sim/report/time_plots.h"

namespace muster::sim::report {
namespace {

std::int64_t Whole(double seconds) { return std::llround(seconds); }

// To the second, with the queue as what kind of job it is.
ArenaResult OverTime(const JobsResult& run) {
  ArenaResult out;
  out.gpus = static_cast<int>(run.nodes * run.gpus_per_node);
  out.makespan_s = Whole(run.makespan_s);
  out.jobs.reserve(run.jobs.size());
  for (const auto& job : run.jobs) {
    ArenaResult::Job& made = out.jobs.emplace_back();
    made.name = job.name;
    made.jct_s = Whole(job.jct_s);
    made.application = job.queue;
    made.submit_s = Whole(job.submit_s);
    made.stretches.reserve(job.stretches.size());
    for (const auto& one : job.stretches)
      made.stretches.push_back({Whole(one.start_s), Whole(one.end_s), static_cast<int>(one.gpus)});
  }
  out.gpus_in_use.reserve(run.gpus_in_use.size());
  for (const auto& use : run.gpus_in_use)
    out.gpus_in_use.push_back({Whole(use.at_s), static_cast<int>(use.gpus)});
  return out;
}

Grid Summary(const std::vector<JobsRun>& policies) {
  Grid grid;
  grid.caption = "All jobs";
  grid.note =
      "Wait: the time from a job's submission to its first start. JCT: to its end. Utilisation: "
      "the "
      "share of all GPU time until the last end that jobs held.";
  grid.head = {"policy"};
  for (const auto& one : policies) grid.rows.push_back({{ShownName(one.policy)}});
  grid.note += BestNote(grid);
  using Figure = double JobsResult::*;
  for (const auto& [name, figure] :
       {std::pair<const char*, Figure>{"mean wait", &JobsResult::mean_wait_s},
        {"p99 wait", &JobsResult::p99_wait_s},
        {"mean JCT", &JobsResult::mean_jct_s},
        {"p99 JCT", &JobsResult::p99_jct_s},
        {"makespan", &JobsResult::makespan_s}}) {
    grid.head.emplace_back(name);
    std::vector<double> values;
    values.reserve(policies.size());
    for (const auto& one : policies) values.push_back(one.run.*figure);
    const auto texts = Durations(values);
    for (std::size_t i = 0; i < texts.size(); ++i) grid.rows[i].push_back({texts[i]});
    MarkBest(grid, grid.head.size() - 1, values, true);
  }
  grid.head.insert(grid.head.end(), {"utilisation", "preemptions"});
  for (std::size_t i = 0; i < policies.size(); ++i) {
    grid.rows[i].push_back({fmt::format("{:.1f} %", policies[i].run.utilisation_pct)});
    grid.rows[i].push_back({fmt::format("{}", policies[i].run.preemptions)});
  }
  return grid;
}

}  // namespace

std::vector<File> JobsReport(const Origin& origin, const std::vector<JobsRun>& policies) {
  std::string names;
  std::vector<ArenaRuns> over_time;
  over_time.reserve(policies.size());
  for (const auto& one : policies) {
    names += (names.empty() ? "" : ", ") + one.policy;
    over_time.push_back({one.policy, {OverTime(one.run)}});
  }
  const auto& first = policies.front().run;
  Page page("Jobs under " + NameAll(policies.size(), names));
  auto facts = origin.files;
  facts.emplace_back("policies", names);
  facts.emplace_back("jobs", fmt::format("{}", first.jobs.size()));
  facts.emplace_back("cluster", fmt::format("{} node{} of {} GPUs, simulated", first.nodes,
                                            first.nodes == 1 ? "" : "s", first.gpus_per_node));
  facts.emplace_back("made by", "muster sim report, version " + origin.version);
  page.Add(facts);
  page.Heading("Policies");
  page.Add(Summary(policies));
  page.Add(JctByKind(over_time, "queue"));
  AddTimePlots(page, over_time, "");
  return std::move(page).Finish();
}

}  // namespace muster::sim::report
