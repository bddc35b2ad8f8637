// The report of the openb set: how much of the GPUs each policy could hand out, over the seeds.
#include <fmt/format.h>

#include "sim/report/charts.h"
#include "sim/report/report.h"

namespace muster::sim::report {
namespace {

using Figure = double (*)(const OpenbResult&);

double Allocation(const OpenbResult& run) { return run.gpu_allocation_pct; }
double Fragmentation(const OpenbResult& run) { return run.fragmentation_pct; }

std::vector<Sample> Over(const std::vector<OpenbRuns>& policies, Figure figure) {
  std::vector<Sample> samples;
  for (const auto& one : policies) {
    samples.push_back({one.policy, {}});
    for (const auto& run : one.runs) samples.back().values.push_back(figure(run));
  }
  return samples;
}

Grid Summary(const std::vector<OpenbRuns>& policies) {
  const bool several = policies.front().runs.size() > 1;
  Grid grid;
  grid.caption =
      several ? fmt::format("Means of {} seeds", policies.front().runs.size()) : "All pods";
  grid.note =
      "Allocated: the share of all GPUs that was handed out. Fragmented: the share that is free "
      "where an average pod of the trace could not use it. Placed and failed are pods.";
  if (several) grid.note += " Ranges go from the least to the most of the seeds.";
  if (policies.size() > 1) grid.note += " Bold is best.";
  grid.head = {"policy", "allocated", "range", "fragmented", "range", "placed", "failed"};
  if (!several) grid.head = {"policy", "allocated", "fragmented", "placed", "failed"};
  for (const auto& one : policies) grid.rows.push_back({{one.policy}});
  for (const auto& [figure, least_is_best] :
       {std::pair{&Allocation, false}, {&Fragmentation, true}}) {
    std::vector<double> means;
    const auto samples = Over(policies, figure);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      means.push_back(Mean(samples[i].values));
      grid.rows[i].push_back({fmt::format("{:.2f} %", means.back())});
    }
    MarkBest(grid, grid.rows.front().size() - 1, means, least_is_best);
    for (std::size_t i = 0; several && i < samples.size(); ++i) {
      grid.rows[i].push_back(
          {fmt::format("{:.2f} to {:.2f}", Least(samples[i].values), Most(samples[i].values))});
    }
  }
  const Figure placed = [](const OpenbResult& run) { return static_cast<double>(run.placed); };
  const Figure failed = [](const OpenbResult& run) { return static_cast<double>(run.failed); };
  for (const Figure figure : {placed, failed}) {
    const auto samples = Over(policies, figure);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      grid.rows[i].push_back({fmt::format("{:.0f}", Mean(samples[i].values))});
    }
  }
  return grid;
}

std::string InWords(const std::vector<Sample>& samples) {
  std::string words;
  for (const auto& one : samples) {
    words += fmt::format("{}{}: {:.2f} %", words.empty() ? "" : "; ", one.name, Mean(one.values));
  }
  return words + ".";
}

Plot Bars(const std::string& name, const std::string& title, std::vector<Sample> samples,
          double to) {
  Plot plot;
  plot.name = name;
  plot.caption = {title, "A bar for each policy. " + InWords(samples)};
  plot.note =
      samples.front().values.size() > 1
          ? "Bars are means over the seeds, the lines across their ends go from the least to "
            "the most."
          : "In percent of all GPUs.";
  plot.draw = [samples = std::move(samples), to](double width) {
    return DrawBars(samples, "% of all GPUs", to, width);
  };
  return plot;
}

Plot Dots(const std::string& name, const std::string& title, std::vector<Sample> samples) {
  Plot plot;
  plot.name = name;
  plot.caption = {title, "A dot for each seed and a line at the mean. " + InWords(samples)};
  plot.note = "The same by seed: a dot for each, a line at the mean. The axis does not begin at 0.";
  plot.draw = [samples = std::move(samples)](double width) {
    return DrawDots(samples, "% of all GPUs", width);
  };
  return plot;
}

}  // namespace

std::vector<File> OpenbReport(const Origin& origin, const std::vector<OpenbRuns>& policies) {
  std::string names;
  for (const auto& one : policies) names += (names.empty() ? "" : ", ") + one.policy;
  const std::size_t seeds = policies.front().runs.size();
  Page page("Pods placed by " + NameAll(policies.size(), names));
  auto facts = origin.files;
  facts.emplace_back("policies", names);
  facts.emplace_back(seeds > 1 ? "seeds" : "seed", SeedText(origin.seed, seeds));
  facts.emplace_back("made by", "muster sim report, version " + origin.version);
  page.Add(facts);
  page.Heading("Policies");
  page.Add(Summary(policies));
  page.Heading("Allocation");
  page.Add(Bars("allocation", "GPUs handed out", Over(policies, Allocation), 100));
  if (seeds > 1) {
    page.Add(Dots("allocation-seeds", "GPUs handed out, by seed", Over(policies, Allocation)));
  }
  page.Heading("Fragmentation");
  page.Add(Bars("fragmentation", "GPUs that are free and cannot be used",
                Over(policies, Fragmentation), 0));
  return std::move(page).Finish();
}

}  // namespace muster::sim::report
