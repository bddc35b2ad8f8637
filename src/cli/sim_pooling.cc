#include "cli/sim_pooling.h"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/progress.h"
#include "cli/table.h"
#include "sim/jobs/pooling.h"
#include "sim/report/folder.h"
#include "sim/report/report.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<std::vector<double>> Percentiles(std::string_view text) {
  std::vector<double> percentiles;
  for (const char* at = text.data(); at <= text.data() + text.size();) {
    int value = 0;
    const auto [end, wrong] = std::from_chars(at, text.data() + text.size(), value);
    const bool ends = end == text.data() + text.size() || *end == ',';
    if (wrong != std::errc() || !ends || value < 1 || value > 100) {
      return Fail(ErrorCode::kUsage, fmt::format("--percentiles does not understand \"{}\"", text),
                  "write numbers from 1 to 100 with commas between them, like 80,95,100");
    }
    percentiles.push_back(value);
    at = end + 1;
  }
  return percentiles;
}

Json WayJson(const sim::PoolingWay& way) {
  return {{"name", way.name},
          {"gpus", way.gpus},
          {"utilisation_pct", way.utilisation_pct},
          {"utilisation_to_end_pct", way.utilisation_to_end_pct},
          {"idle_while_waiting_pct", way.idle_while_waiting_pct},
          {"mean_wait_s", way.mean_wait_s},
          {"median_wait_s", way.median_wait_s},
          {"p90_wait_s", way.p90_wait_s},
          {"mean_jct_s", way.mean_jct_s},
          {"makespan_s", way.makespan_s},
          {"ended", way.ended},
          {"jobs_per_gpu_week", way.jobs_per_gpu_week},
          {"preemptions", way.preemptions},
          {"changes", way.changes},
          {"lost_gpu_h", way.lost_gpu_h}};
}

Json Document(const PoolingWords& words, const sim::PoolingResult& result) {
  Json queues = Json::array(), sizes = Json::array();
  for (const auto& queue : result.queues) {
    queues.push_back({{"name", queue.name},
                      {"jobs", queue.jobs},
                      {"largest_gpus", queue.largest},
                      {"p95_gpus", queue.p95},
                      {"peak_gpus", queue.peak}});
  }
  for (const auto& size : result.sizes) {
    Json parts = Json::array(), ways = Json::array();
    for (const auto& [queue, gpus] : size.parts)
      parts.push_back({{"queue", queue}, {"gpus", gpus}});
    for (const auto& way : size.ways) ways.push_back(WayJson(way));
    Json& made = sizes.emplace_back();
    if (size.percentile > 0) made["percentile"] = size.percentile;
    made["node_count"] = size.nodes;
    made["division"] = size.division == sim::Division::kWork ? "work" : "percentile";
    made["parts"] = std::move(parts);
    made["ways"] = std::move(ways);
  }
  return {{"workload", words.workload},
          {"jobs", result.jobs},
          {"span_s", result.span_s},
          {"mean_demand_gpus", result.mean_demand},
          {"gpus_per_node", result.gpus_per_node},
          {"queues", std::move(queues)},
          {"sizes", std::move(sizes)}};
}

std::string Hours(double seconds) { return fmt::format("{:.2f} h", seconds / 3600); }

void PrintTable(const sim::PoolingResult& result) {
  Rows rows;
  for (const auto& size : result.sizes) {
    for (const auto& way : size.ways) {
      rows.push_back({way.name, fmt::format("{}", way.gpus),
                      fmt::format("{:.1f} %", way.utilisation_pct),
                      fmt::format("{:.1f} %", way.idle_while_waiting_pct), Hours(way.mean_wait_s),
                      Hours(way.p90_wait_s), Hours(way.mean_jct_s),
                      fmt::format("{:.2f}", way.jobs_per_gpu_week),
                      fmt::format("{}", way.preemptions), fmt::format("{:.0f} h", way.lost_gpu_h)});
    }
  }
  std::cout << LayOut({"WAY", "GPUS", "USED", "IDLE", "WAIT", "P90 WAIT", "JCT", "JOBS/GPU/WEEK",
                       "PREEMPTIONS", "LOST"},
                      rows, SheetNow());
}

}  // namespace

int PoolSim(const PoolingWords& words, const Common& common) {
  const auto percentiles = Percentiles(words.percentiles);
  if (!percentiles) return Refuse(percentiles.error());
  namespace report = sim::report;
  if (!words.to.empty()) {
    const auto checked = report::CheckFolder(words.to, common.yes);
    if (!checked) return Refuse(checked.error());
  }
  Progress progress;
  const auto result =
      sim::RunPooling({words.workload, *percentiles, words.node_count, words.gpus_per_node,
                       [&](const std::string& what) { progress.Say(what); }});
  progress.Erase();
  if (!result) return Refuse(result.error());
  if (!words.to.empty()) {
    const report::Origin origin{common.version, {{"workload", words.workload}}, 0};
    const auto written =
        report::WriteReport(words.to, report::PoolingReport(origin, *result), common.yes);
    if (!written) return Refuse(written.error());
  }
  if (!ForPeople(common.output)) {
    return ShowDocument(common.output, Document(words, *result).dump());
  }
  PrintTable(*result);
  return 0;
}

}  // namespace muster::cli
