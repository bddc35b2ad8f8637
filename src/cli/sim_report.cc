#include "cli/sim_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "sim/report/folder.h"
#include "sim/report/report.h"
#include "sim/set_runs.h"

namespace muster::cli {
namespace {

namespace report = sim::report;

using Json = nlohmann::ordered_json;

Result<std::vector<report::File>> ReportArena(const SimWords& words, report::Origin origin) {
  ShareProgress progress(RunsOf(words));
  std::vector<report::ArenaRuns> all;
  for (const auto& policy : PoliciesOf(words)) {
    all.push_back({policy, {}});
    for (std::int64_t i = 0; i < words.seeds; ++i) {
      auto run = PlayArena(words, policy, words.seed + i, progress);
      if (!run) return tl::unexpected(run.error());
      all.back().runs.push_back(*std::move(run));
    }
  }
  origin.files = {{"profiles", words.profiles}, {"workload", words.workload}};
  sim::PutSettings(origin, words.muster);
  return report::ArenaReport(origin, all);
}

Result<std::vector<report::File>> ReportJobs(const SimWords& words, report::Origin origin) {
  ShareProgress progress(RunsOf(words));
  std::vector<report::JobsRun> all;
  for (const auto& policy : PoliciesOf(words)) {
    auto run = PlayJobs(words, policy, progress, true);
    if (!run) return tl::unexpected(run.error());
    all.push_back({policy, *std::move(run)});
  }
  origin.files = {{"workload", words.workload}};
  sim::PutSettings(origin, words.muster);
  return report::JobsReport(origin, all);
}

Result<std::vector<report::File>> ReportOpenb(const SimWords& words, report::Origin origin) {
  ShareProgress progress(RunsOf(words));
  std::vector<report::OpenbRuns> all;
  for (const auto& policy : PoliciesOf(words)) {
    all.push_back({policy, {}});
    for (std::int64_t i = 0; i < words.seeds; ++i) {
      auto run = PlayOpenb(words, policy, words.seed + i, progress);
      if (!run) return tl::unexpected(run.error());
      all.back().runs.push_back(*run);
    }
  }
  origin.files = {{"nodes", words.nodes}, {"pods", words.pods}};
  sim::PutSettings(origin, words.muster);
  return report::OpenbReport(origin, all);
}

}  // namespace

int ReportSim(SimWords words, const Common& common) {
  if (const auto checked = Complete(words); !checked) return Refuse(checked.error());
  if (const auto checked = report::CheckFolder(words.to, common.yes); !checked) {
    return Refuse(checked.error());
  }
  const report::Origin origin{common.version, {}, words.seed};
  const auto files = words.set == "openb"  ? ReportOpenb(words, origin)
                     : words.set == "jobs" ? ReportJobs(words, origin)
                                           : ReportArena(words, origin);
  if (!files) return Refuse(files.error());
  if (const auto written = report::WriteReport(words.to, *files, common.yes); !written) {
    return Refuse(written.error());
  }
  Rows rows;
  Json list = Json::array();
  for (const auto& file : *files) {
    const auto path = words.to + (words.to.ends_with('/') ? "" : "/") + file.name;
    rows.push_back({path, fmt::format("{}", file.text.size()), file.shows});
    list.push_back({{"file", path}, {"bytes", file.text.size()}, {"shows", file.shows}});
  }
  if (!ForPeople(common.output)) {
    return ShowDocument(common.output,
                        Json({{"name", words.to}, {"files", std::move(list)}}).dump());
  }
  std::cout << LayOut({"FILE", "BYTES", "SHOWS"}, rows, SheetNow());
  return 0;
}

}  // namespace muster::cli
