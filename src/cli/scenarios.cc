#include "cli/scenarios.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/case_run.h"
#include "sim/corpus.h"
#include "sim/corpus_run.h"

namespace muster::cli {

using nlohmann::json;

namespace {

json ToJson(const sim::ScenarioResult& result) {
  json rounds = json::array();
  for (const auto& round : result.rounds) {
    json tasks = json::object();
    for (const auto& [name, seen] : round.tasks) {
      tasks[name] = {{"state", sim::Name(seen.state)},
                     {"node", seen.node.empty() ? json(nullptr) : json(seen.node)}};
    }
    rounds.push_back({{"evicted", round.evicted}, {"tasks", tasks}});
  }
  return {{"id", result.id},
          {"passed", result.passed()},
          {"differences", result.differences},
          {"rounds", rounds}};
}

int Complain(const Error& error) {
  std::fprintf(stderr, "muster: %s\n", Describe(error).c_str());
  return ExitStatus(error.code);
}

class Report {
 public:
  void Add(const std::string& id, bool passed, const std::vector<std::string>& differences,
           json result) {
    ++(passed ? passed_ : failed_);
    results_.push_back(std::move(result));
    if (passed) return;
    failures_ += id + "\n";
    for (const auto& difference : differences) failures_ += "  " + difference + "\n";
  }

  int Print(bool as_json) const {
    if (as_json) {
      const json out = {{"passed", passed_}, {"failed", failed_}, {"results", results_}};
      std::printf("%s\n", out.dump().c_str());
    } else {
      std::printf("%s%d passed, %d failed\n", failures_.c_str(), passed_, failed_);
    }
    return failed_ == 0 ? 0 : 1;
  }

 private:
  int passed_ = 0;
  int failed_ = 0;
  std::string failures_;
  json results_ = json::array();
};

Result<void> RunCaseFile(const std::string& path, Report& report) {
  const auto story = sim::ReadCaseFile(path);
  if (!story) return tl::unexpected(story.error());
  const auto result = sim::RunCase(*story);
  if (!result) return tl::unexpected(result.error());
  report.Add(result->id, result->passed(), result->differences,
             {{"id", result->id},
              {"passed", result->passed()},
              {"rule", story->rule},
              {"differences", result->differences}});
  return {};
}

Result<void> RunCorpusFile(const std::string& path, Report& report) {
  const auto file = sim::ReadCorpusFile(path);
  if (!file) return tl::unexpected(file.error());
  for (const auto& scenario : file->scenarios) {
    const auto result = sim::RunScenario(scenario);
    if (!result) return tl::unexpected(result.error());
    report.Add(result->id, result->passed(), result->differences, ToJson(*result));
  }
  for (const auto& share : file->cases) {
    const auto result = sim::RunShareCase(share);
    report.Add(result.id, result.passed(), result.differences,
               {{"id", result.id}, {"passed", result.passed()}, {"shares", result.shares}});
  }
  return {};
}

}  // namespace

int RunScenarios(const std::vector<std::string>& paths, bool as_json) {
  const auto files = sim::ListFiles(paths, {".json", sim::kCaseExtension});
  if (!files) return Complain(files.error());
  Report report;
  for (const auto& path : *files) {
    const bool is_case = std::filesystem::path(path).extension() == sim::kCaseExtension;
    const auto run = is_case ? RunCaseFile(path, report) : RunCorpusFile(path, report);
    if (!run) return Complain(run.error());
  }
  return report.Print(as_json);
}

}  // namespace muster::cli
