// Lists of jobs.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/job_verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

std::string Marks(const Json& status) {
  std::string out;
  if (status.value("virtual", false)) out += " virtual";
  if (status.value("simulated", false)) out += " simulated";
  return out;
}

// Who or what made a job leave: "for ben's claim".
std::string ForWhom(const Json& preemption) {
  if (preemption.contains("for_name")) {
    return "for " + preemption.value("for_user", "") + "'s " + preemption.value("for_name", "");
  }
  if (preemption.contains("for_job")) return "for job " + Plain(preemption.at("for_job"));
  const auto rule = preemption.value("rule", "");
  return rule == "drain"    ? "its node is drained"
         : rule == "stale"  ? "it was below its minimum"
         : rule == "resize" ? "other sizes pay better"
                            : "by rule " + rule;
}

// Those it holds; of one that has none yet those it asks for, "1..6 asked".
std::string GpusOf(const Json& status) {
  const auto asked = GpusAsked(status);
  return (asked.empty() ? Plain(status.at("gpus")) : asked + " asked") + Marks(status);
}

std::vector<std::string> Row(const Json& job, bool wide) {
  const auto& status = job.at("status");
  const auto now = WallMs();
  std::string workers = std::to_string(status.value("workers_running", 0)) + "/";
  const int least = status.value("workers_min", 0), most = status.value("workers_max", 0);
  workers += least == most ? std::to_string(most) : fmt::format("{}..{}", least, most);
  const auto created = TimeMs(job, "created_at");
  std::string note;
  if (status.contains("termination")) {
    note = status.at("termination").value("reason", "");
  } else if (status.contains("preemption") && status.value("phase", "") == "paused") {
    note = ForWhom(status.at("preemption"));
  } else {
    const auto reasons = status.value("reasons", Json::array());
    if (!reasons.empty()) note = reasons.at(0).get<std::string>();
  }
  std::vector<std::string> row = {job.value("id", ""),
                                  job.value("name", ""),
                                  job.value("user", ""),
                                  job.value("queue", ""),
                                  status.value("phase", ""),
                                  workers,
                                  GpusOf(status),
                                  Ago(now - created),
                                  Ago(status.value("ran_ms", std::int64_t{0}))};
  if (wide) {
    row.push_back(job.value("kind", ""));
    row.push_back(std::to_string(job.value("priority", 0)));
    row.push_back(std::to_string(status.value("restarts", 0)));
  }
  row.push_back(note);
  return row;
}

}  // namespace

std::string GpusAsked(const Json& status) {
  const auto phase = status.value("phase", "");
  const bool may_start =
      phase == "waiting" || phase == "held" || phase == "paused" || phase == "suspended";
  if (!may_start || !status.contains("gpus_asked") || status.at("gpus_asked") == 0) return "";
  const auto most = status.at("gpus_asked").get<double>();
  const auto workers = status.value("workers_max", 1.0), least = status.value("workers_min", 1.0);
  const auto first = workers > 0 ? most * least / workers : most;
  return first < most ? fmt::format("{:g}..{:g}", first, most) : fmt::format("{:g}", most);
}

int Ps(Session& session, const ListOptions& options) {
  client::Client::Query query;
  if (options.all) query["all"] = "1";
  for (const auto& [key, value] : {std::pair{"queue", &options.queue},
                                   {"user", &options.user},
                                   {"phase", &options.phase},
                                   {"filter", &options.filter},
                                   {"sort", &options.sort}}) {
    if (!value->empty()) query[key] = *value;
  }
  if (!options.kind.empty()) {
    query["filter"] = (options.filter.empty() ? "" : options.filter + ",") + "kind=" + options.kind;
  }
  const auto key = options.sort.substr(options.sort.starts_with('-') ? 1 : 0);
  if (options.all && !key.empty() && key != "id" && key != "created_at") {
    return Refuse({ErrorCode::kUsage, "--sort: with jobs that have ended it takes id or created_at",
                   "leave out -a, or sort what -o json prints"});
  }
  return session.Show(
      AllPages(session.client(), "jobs", query, options.limit), [&](const Json& got) {
        std::vector<std::string> head = {"ID",      "NAME", "USER", "QUEUE", "PHASE",
                                         "WORKERS", "GPUS", "AGE",  "RAN"};
        if (session.wide()) head.insert(head.end(), {"KIND", "PRIORITY", "RESTARTS"});
        head.emplace_back("NOTE");
        Rows rows;
        for (const auto& job : got.at("jobs")) {
          job.at("status").at("gpus");  // or it is no job: throws
          rows.push_back(Row(job, session.wide()));
        }
        session.Table(head, rows, {"RAN", "WORKERS", "USER", "AGE", "QUEUE"});
        if (rows.empty()) {
          std::cerr << "no jobs" << (options.user.empty() ? "" : " of user " + options.user)
                    << (query.contains("all") ? "\n" : " wait or run\n");
        }
        if (got.contains("next")) std::cerr << "there are more; --limit shows them\n";
      });
}

}  // namespace muster::cli
