// Acting on jobs: cancel, suspend and the like; scale and priority with their numbers.
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/job_verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kMostWorkers = 100'000, kMostPriority = 1'000'000;

std::optional<int> Whole(std::string_view text, int least, int most) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<std::string> WithInput(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    if (name != "-") {
      out.push_back(name);
      continue;
    }
    for (std::string one; std::cin >> one;) out.push_back(one);
  }
  return out;
}

int Act(Session& session, const std::vector<std::string>& jobs, const std::string& verb,
        const client::Client::Query& query) {
  int status = 0;
  std::string list;
  for (const auto& job : WithInput(jobs)) {
    std::string path = "jobs/";
    path.append(job).append(":").append(verb);
    const auto answer = session.client().Post(path, query, "");
    if (!answer) {
      status = Refuse(answer.error());
      continue;
    }
    list += (list.empty() ? "" : ",") + *answer;
  }
  if (list.empty()) return status;
  const auto document = nlohmann::ordered_json::parse("{\"jobs\":[" + list + "]}").dump(2);
  const int shown = session.Show(document, [](const Json& got) {
    for (const auto& job : got.at("jobs")) {
      const bool dry = job.value("dry_run", false);
      const auto phase = job.value("phase", "");
      std::cout << (dry ? "would change: job " : "job ") << job.value("id", "") << " "
                << job.value("name", "")
                << (phase.empty() ? ""
                    : dry         ? " (then " + phase + ")"
                                  : ": " + phase)
                << '\n';
    }
  });
  return status != 0 ? status : shown;
}

int Scale(Session& session, const std::string& job, const std::string& workers,
          client::Client::Query query) {
  const auto dots = workers.find("..");
  const auto least = Whole(workers.substr(0, dots), 1, kMostWorkers);
  const auto most =
      dots == std::string::npos ? least : Whole(workers.substr(dots + 2), 1, kMostWorkers);
  if (!least || !most || *least > *most) {
    return Refuse({ErrorCode::kUsage,
                   "--workers: \"" + workers + "\" is no number of workers (1 to 100000)",
                   "write 4, or 4..16 for a job that may grow"});
  }
  query["min"] = std::to_string(*least);
  query["max"] = std::to_string(*most);
  return Act(session, {job}, "scale", query);
}

int Priority(Session& session, const std::vector<std::string>& jobs, const std::string& priority,
             client::Client::Query query) {
  auto value = Whole(priority, 0, kMostPriority);
  for (const auto& [name, number] :
       {std::pair{"low", 25}, {"normal", 50}, {"high", 75}, {"build", 100}, {"critical", 125}}) {
    if (priority == name) value = number;
  }
  if (!value) {
    return Refuse({ErrorCode::kUsage, "--to: \"" + priority + "\" is no priority",
                   "low, normal, high, build, critical, or a number from 0 to 1000000"});
  }
  query["value"] = std::to_string(*value);
  return Act(session, jobs, "priority", query);
}

}  // namespace muster::cli
