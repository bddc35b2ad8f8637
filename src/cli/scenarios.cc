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

  // A file that could not be run; the others are run all the same.
  void AddError(const Error& error) {
    std::fprintf(stderr, "muster: %s\n", Describe(error).c_str());
    if (status_ == 0) status_ = ExitStatus(error.code);
  }

  int Print(Output output) const {
    if (!ForPeople(output)) {
      const json out = {{"passed", passed_}, {"failed", failed_}, {"results", results_}};
      ShowDocument(output, out.dump());
    } else {
      std::printf("%s%d passed, %d failed\n", failures_.c_str(), passed_, failed_);
    }
    if (status_ != 0) return status_;
    return failed_ == 0 ? 0 : 1;
  }

 private:
  int passed_ = 0;
  int failed_ = 0;
  int status_ = 0;  // of the first error
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
  if (file->scenarios.empty() && file->cases.empty()) {
    return Fail(ErrorCode::kInvalid, path + " holds neither scenarios nor cases");
  }
  return {};
}

Result<void> RunFile(const std::string& path, Report& report) {
  const auto extension = std::filesystem::path(path).extension();
  if (extension == sim::kCaseExtension) return RunCaseFile(path, report);
  if (extension == ".json") return RunCorpusFile(path, report);
  return Fail(ErrorCode::kInvalid, "\"" + path + "\" is no scenario file",
              "scenario files end in .case or .json");
}

}  // namespace

int RunScenarios(const std::vector<std::string>& paths, Output output) {
  Report report;
  for (const auto& path : paths) {
    const auto files = sim::ListFiles({path}, {".json", sim::kCaseExtension});
    if (!files) {
      report.AddError(files.error());
      continue;
    }
    if (files->empty()) {
      report.AddError({ErrorCode::kNotFound, "no scenario in \"" + path + "\"",
                       "scenario files end in .case or .json; folders below are not searched"});
    }
    for (const auto& file : *files) {
      if (const auto run = RunFile(file, report); !run) report.AddError(run.error());
    }
  }
  return report.Print(output);
}

}  // namespace muster::cli
