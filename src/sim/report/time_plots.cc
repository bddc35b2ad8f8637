#include "sim/report/time_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/oracles.h"
#include "sim/report/charts.h"
#include "sim/report/gantt.h"

namespace muster::sim::report {
namespace {

std::string Duration(double seconds) { return Durations({seconds}).front(); }

std::string CountText(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Plot Distribution(const std::vector<ArenaRuns>& policies) {
  std::vector<Sample> samples;
  std::string medians;
  for (const auto& one : policies) {
    Sample sample{one.policy, {}};
    for (const auto& run : one.runs) {
      for (const auto& job : run.jobs) sample.values.push_back(static_cast<double>(job.jct_s));
    }
    auto sorted = sample.values;
    std::ranges::sort(sorted);
    medians += fmt::format("{}{}: half of the jobs take at most {}", medians.empty() ? "" : "; ",
                           one.policy, Duration(sorted[(sorted.size() - 1) / 2]));
    samples.push_back(std::move(sample));
  }
  Plot plot;
  plot.name = "jct";
  plot.caption = {
      "Distribution of the job completion times",
      "The share of jobs that took at most so long, on a logarithmic axis. " + medians + "."};
  plot.note = "The further to the left, the sooner jobs end. The axis is logarithmic.";
  plot.draw = [samples](double width) {
    return DrawDistribution(samples, "completion time", width);
  };
  return plot;
}

Plot Use(const std::vector<ArenaRuns>& policies, const std::string& of_seed) {
  std::vector<Panel> panels;
  std::string means;
  for (const auto& one : policies) {
    const auto& run = one.runs.front();
    Panel panel;
    panel.name = one.policy;
    panel.note = fmt::format("mean {:.1f} %", Utilisation(run));
    panel.to_s = static_cast<double>(run.makespan_s);
    for (const auto& use : run.gpus_in_use) {
      panel.steps.push_back({static_cast<double>(use.at_s), 100.0 * use.gpus / run.gpus});
    }
    means += fmt::format("{}{}: {}", means.empty() ? "" : "; ", one.policy, panel.note);
    panels.push_back(std::move(panel));
  }
  Plot plot;
  plot.name = "utilisation";
  plot.caption = {
      "Utilisation over time",
      "The share of the GPUs that jobs hold, from the beginning to the last end. " + means + "."};
  plot.note = "The share of the GPUs that jobs hold, in percent" + of_seed + ".";
  plot.draw = [panels](double width) { return DrawPanels(panels, width); };
  return plot;
}

std::string TipOf(const ArenaResult::Job& job) {
  int most = 0;
  for (const auto& one : job.stretches) most = std::max(most, one.gpus);
  const double first = job.stretches.empty()
                           ? static_cast<double>(job.jct_s)
                           : static_cast<double>(job.stretches.front().start_s - job.submit_s);
  const std::size_t starts = std::max<std::size_t>(1, job.stretches.size());
  return fmt::format("{} ({}): submitted at {}, started after {}, ended after {}, {}, at most {}",
                     job.name, job.application, Duration(static_cast<double>(job.submit_s)),
                     Duration(first), Duration(static_cast<double>(job.jct_s)),
                     CountText(starts - 1, "restart"),
                     CountText(static_cast<std::size_t>(most), "GPU"));
}

std::vector<GanttRow> RowsOf(const ArenaResult& run) {
  std::vector<GanttRow> rows;
  for (const auto& job : run.jobs) {
    GanttRow row{job.name, TipOf(job), job.submit_s, job.submit_s + job.jct_s, {}};
    for (const auto& one : job.stretches) row.boxes.push_back({one.start_s, one.end_s, one.gpus});
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, {}, &GanttRow::submit_s);
  return rows;
}

Plot Gantt(const ArenaRuns& policy, const GanttScale& scale, const std::string& of_seed) {
  const auto& run = policy.runs.front();
  const auto rows = RowsOf(run);
  Plot plot;
  plot.name = "gantt-" + FileName(policy.policy);
  plot.caption = {
      "Jobs over time under " + policy.policy,
      fmt::format("{} in the order of submission: when each waited and how many GPUs it held. The "
                  "last ends after {}.",
                  CountText(rows.size(), "job"), Duration(static_cast<double>(run.makespan_s)))};
  const std::size_t stride = GanttStride(rows.size());
  plot.note = "Jobs in the order of submission, with the number of GPUs that each held" + of_seed +
              "." + (stride > 1 ? fmt::format(" One job of {} is drawn.", stride) : "");
  plot.draw = [rows, scale](double width) { return DrawGantt(rows, scale, width); };
  return plot;
}

}  // namespace

std::vector<std::string> Durations(const std::vector<double>& seconds) {
  const double longest = Most(seconds);
  std::vector<std::string> texts;
  texts.reserve(seconds.size());
  for (const double one : seconds) {
    texts.push_back(longest >= 7200  ? fmt::format("{:.2f} h", one / 3600)
                    : longest >= 600 ? fmt::format("{:.1f} min", one / 60)
                                     : fmt::format("{:.0f} s", one));
  }
  return texts;
}

double Utilisation(const ArenaResult& run) {
  double held = 0;
  for (const auto& job : run.jobs) {
    for (const auto& one : job.stretches) {
      held += static_cast<double>(one.end_s - one.start_s) * one.gpus;
    }
  }
  const double whole = static_cast<double>(run.makespan_s) * run.gpus;
  return whole > 0 ? 100 * held / whole : 0;
}

Grid JctByKind(const std::vector<ArenaRuns>& policies, const std::string& kind) {
  std::map<std::string, std::size_t> applications;  // and their number of jobs
  for (const auto& job : policies.front().runs.front().jobs) ++applications[job.application];
  Grid grid;
  grid.caption = "Mean JCT by " + kind;
  grid.head = {kind, "jobs"};
  for (const auto& one : policies) grid.head.push_back(ShownName(one.policy));
  for (const auto& [name, jobs] : applications) {
    grid.rows.push_back({{name}, {fmt::format("{}", jobs)}});
    std::vector<double> means;
    for (const auto& one : policies) {
      std::vector<double> times;
      for (const auto& run : one.runs) {
        for (const auto& job : run.jobs) {
          if (job.application == name) times.push_back(static_cast<double>(job.jct_s));
        }
      }
      means.push_back(Mean(times));
    }
    const auto texts = Durations(means);
    std::vector<Rated> all;
    for (std::size_t i = 0; i < means.size(); ++i) {
      all.push_back({grid.head[2 + i], means[i], texts[i]});
    }
    const auto best = BestOf(all, true);
    for (std::size_t i = 0; i < means.size(); ++i) {
      grid.rows.back().push_back({texts[i], best[i]});
    }
  }
  return grid;
}

void AddTimePlots(Page& page, const std::vector<ArenaRuns>& policies, const std::string& of_seed) {
  GanttScale scale;
  for (const auto& one : policies) {
    scale.to_s = std::max(scale.to_s, one.runs.front().makespan_s);
    for (const auto& job : one.runs.front().jobs) {
      for (const auto& stretch : job.stretches) scale.gpus = std::max(scale.gpus, stretch.gpus);
    }
  }
  page.Heading("Completion times");
  page.Add(Distribution(policies));
  page.Heading("Utilisation over time");
  page.Add(Use(policies, of_seed));
  for (const auto& one : policies) {
    page.Heading("Jobs over time: " + one.policy);
    page.Add(Gantt(one, scale, of_seed));
  }
}

}  // namespace muster::sim::report
