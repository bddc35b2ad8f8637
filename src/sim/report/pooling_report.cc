// The report of pooling: what the same GPUs are worth divided, lent, and with elastic jobs.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/charts.h"
#include "sim/report/report.h"

namespace muster::sim::report {
namespace {

using Figure = double (*)(const PoolingWay&);

double Used(const PoolingWay& way) { return way.utilisation_pct; }
double WaitHours(const PoolingWay& way) { return way.mean_wait_s / 3600; }
double Experiments(const PoolingWay& way) { return way.jobs_per_gpu_week; }

std::string Hours(double seconds) { return fmt::format("{:.2f} h", seconds / 3600); }

std::string NameOf(const PoolingSize& size) {
  const auto gpus = size.ways.front().gpus;
  if (size.percentile == 0) return fmt::format("{} GPUs", gpus);
  return fmt::format("{} GPUs (percentile {:.0f} of the demand)", gpus, size.percentile);
}

Grid Table(const PoolingSize& size) {
  Grid grid;
  grid.caption = NameOf(size);
  grid.head = {"way", "GPUs",     "utilisation",   "idle",      "mean wait", "median",
               "p90", "mean JCT", "jobs/GPU/week", "preempted", "resized",   "lost"};
  for (const auto& way : size.ways) {
    grid.rows.push_back({{way.name},
                         {fmt::format("{}", way.gpus)},
                         {fmt::format("{:.1f} %", way.utilisation_pct)},
                         {fmt::format("{:.1f} %", way.idle_while_waiting_pct)},
                         {Hours(way.mean_wait_s)},
                         {Hours(way.median_wait_s)},
                         {Hours(way.p90_wait_s)},
                         {Hours(way.mean_jct_s)},
                         {fmt::format("{:.2f}", way.jobs_per_gpu_week)},
                         {fmt::format("{}", way.preemptions)},
                         {fmt::format("{}", way.changes)},
                         {fmt::format("{:.0f} h", way.lost_gpu_h)}});
  }
  return grid;
}

Grid Parts(const PoolingResult& result) {
  Grid grid;
  grid.caption = "Queues, and the part of each";
  grid.head = {"queue", "jobs", "largest job", "percentile 95", "peak"};
  grid.note = "GPUs. Percentile 95 and peak are those of the queue's own demand.";
  for (const auto& size : result.sizes)
    grid.head.push_back(fmt::format("of {}", size.ways.front().gpus));
  for (const auto& queue : result.queues) {
    grid.rows.push_back({{queue.name},
                         {fmt::format("{}", queue.jobs)},
                         {fmt::format("{}", queue.largest)},
                         {fmt::format("{}", queue.p95)},
                         {fmt::format("{}", queue.peak)}});
    for (const auto& size : result.sizes)
      grid.rows.back().push_back({fmt::format("{}", size.parts.at(queue.name))});
  }
  return grid;
}

struct Measure {
  const char* name;  // of the file
  const char* title;
  const char* axis;
  const char* unit;
  Figure figure;
};
constexpr Measure kMeasures[] = {
    {"utilisation", "Utilisation while jobs came", "GPU time held (%)", " %", Used},
    {"wait", "Mean wait to the first start", "mean wait (h)", " h", WaitHours},
    {"experiments", "Experiments for each GPU", "jobs that ended, a GPU and week", "", Experiments},
};

Plot Bars(const Measure& measure, const PoolingSize& size) {
  std::vector<Sample> samples;
  std::string words;
  for (const auto& way : size.ways) {
    samples.push_back({way.name, {measure.figure(way)}});
    words += fmt::format(" {} ({} GPUs): {:.2f}{}.", way.name, way.gpus, measure.figure(way),
                         measure.unit);
  }
  Plot plot;
  plot.name = measure.name;
  plot.caption = {measure.title, "A bar for each way." + words};
  plot.note = fmt::format("On {}; fixed-same-wait on {}.", NameOf(size), size.ways.back().gpus);
  plot.draw = [=](double width) { return DrawBars(samples, measure.axis, 0, width, measure.unit); };
  return plot;
}

// The last way has a size of its own, chosen by its wait: no line.
Plot Lines(const Measure& measure, const PoolingResult& result) {
  std::vector<Curve> curves;
  std::string words;
  for (std::size_t i = 0; i + 1 < result.sizes.front().ways.size(); ++i) {
    Curve curve{result.sizes.front().ways[i].name, {}};
    words += " " + curve.name + ":";
    for (const auto& size : result.sizes) {
      const auto& way = size.ways[i];
      curve.points.emplace_back(way.gpus, measure.figure(way));
      words += fmt::format(" {:.2f}{} on {} GPUs", measure.figure(way), measure.unit, way.gpus);
    }
    words += ".";
    std::ranges::sort(curve.points);
    curves.push_back(std::move(curve));
  }
  Plot plot;
  plot.name = std::string(measure.name) + "-by-size";
  plot.caption = {std::string(measure.title) + ", by the size of the cluster",
                  "A line for each way." + words};
  plot.note = "The same on clusters of other sizes.";
  plot.draw = [=](double width) { return DrawCurves(curves, "GPUs", measure.axis, width); };
  return plot;
}

Plot OverTime(const PoolingSize& size) {
  std::vector<Panel> panels;
  std::string means;
  for (const auto& way : size.ways) {
    Panel panel{way.name, fmt::format("mean {:.1f} %", way.utilisation_to_end_pct), {}, 0};
    panel.to_s = way.makespan_s;
    panel.steps.reserve(way.in_use.size());
    for (const auto& [at_ms, gpus] : way.in_use)
      panel.steps.push_back({static_cast<double>(at_ms) / 1000,
                             100 * static_cast<double>(gpus) / static_cast<double>(way.gpus)});
    means += fmt::format(" {}: {}.", way.name, panel.note);
    panels.push_back(std::move(panel));
  }
  Plot plot;
  plot.name = "utilisation-over-time";
  plot.caption = {
      "Utilisation over time",
      "The share of the GPUs that jobs hold, from the beginning to the last end." + means};
  plot.note = "The share of the GPUs that jobs hold, in percent, on " + NameOf(size) + ".";
  plot.draw = [=](double width) { return DrawPanels(panels, width); };
  return plot;
}

}  // namespace

std::vector<File> PoolingReport(const Origin& origin, const PoolingResult& result) {
  Page page("What pooling is worth");
  auto facts = origin.files;
  facts.emplace_back("jobs", fmt::format("{} of {} queues, over {:.1f} days", result.jobs,
                                         result.queues.size(), result.span_s / 86'400));
  facts.emplace_back("mean demand", fmt::format("{:.1f} GPUs", result.mean_demand));
  facts.emplace_back("cluster", fmt::format("nodes of {} GPUs, simulated", result.gpus_per_node));
  facts.emplace_back("made by", "muster sim pooling, version " + origin.version);
  page.Add(facts);
  page.Heading("Ways");
  for (const auto& size : result.sizes) {
    auto table = Table(size);
    if (&size == &result.sizes.back()) {
      table.note =
          "Utilisation: GPU time that jobs held while jobs came. Idle: GPU time that was free "
          "while "
          "a job waited. Jobs/GPU/week: jobs that ended while jobs came. Resized: changes of size "
          "or place. Lost: GPU-hours held without progress.";
    }
    page.Add(table);
  }
  for (const auto& measure : kMeasures) {
    page.Heading(measure.title);
    page.Add(Bars(measure, result.sizes.front()));
    if (result.sizes.size() > 1) page.Add(Lines(measure, result));
  }
  page.Heading("Utilisation over time");
  page.Add(OverTime(result.sizes.front()));
  page.Heading("Queues");
  page.Add(Parts(result));
  return std::move(page).Finish();
}

}  // namespace muster::sim::report
