// Lists of jobs.
#include <fmt/format.h>

#include <pwd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/job_verbs.h"
#include "model/vocabulary.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kEmptyAnswer = 256;  // bytes; one with a job in it is longer

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
  return rule == "drain"   ? "its node is drained"
         : rule == "stale" ? "it was below its minimum"
                           : "by rule " + rule;
}

// Those it holds; of one that has none yet those it asks for, "1..6 asked".
std::string GpusOf(const Json& status) {
  const auto phase = status.value("phase", "");
  const bool may_start =
      phase == "waiting" || phase == "held" || phase == "paused" || phase == "suspended";
  if (!may_start || !status.contains("gpus_asked") || status.at("gpus_asked") == 0) {
    return Plain(status.at("gpus")) + Marks(status);
  }
  const auto most = status.at("gpus_asked").get<double>();
  const auto workers = status.value("workers_max", 1.0), least = status.value("workers_min", 1.0);
  const auto first = workers > 0 ? most * least / workers : most;
  return (first < most ? fmt::format("{:g}..{:g}", first, most) : fmt::format("{:g}", most)) +
         " asked" + Marks(status);
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
    row.push_back(std::to_string(job.value("priority", 0)));
    row.push_back(std::to_string(status.value("restarts", 0)));
  }
  row.push_back(note);
  return row;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Result<void> OneOf(const std::string& flag, const std::string& what, const std::string& word,
                   const std::vector<std::string>& known) {
  if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return {};
  return Fail(ErrorCode::kUsage, flag + ": there is no " + what + " \"" + word + "\"",
              "one of " + Joined(known));
}

// The conditions of a filter: key, operator and value.
std::vector<std::array<std::string, 3>> Conditions(const std::string& filter) {
  std::vector<std::array<std::string, 3>> out;
  std::istringstream all(filter);
  for (std::string one; std::getline(all, one, ',');) {
    const auto at = one.find_first_of("!=<>~");
    const auto end = one.find_first_not_of("!=<>~", std::min(at, one.size()));
    if (at == std::string::npos || end == std::string::npos) continue;
    out.push_back({one.substr(0, at), one.substr(at, end - at), one.substr(end)});
  }
  return out;
}

// The one that is asked for, and the flag that says so.
std::pair<std::string, std::string> Named(const std::string& key, const std::string& given,
                                          const std::string& filter) {
  if (!given.empty()) return {"--" + key, given};
  for (const auto& [of, op, value] : Conditions(filter)) {
    if (of == key && op == "=") return {"--filter", value};
  }
  return {};
}

// What can stand in no job is a mistake; an empty list would look like an answer.
Result<void> CheckWords(const ListOptions& options) {
  const std::vector<std::string> phases(kPhases.begin(), kPhases.end());
  const std::vector<std::string> kinds(model::kJobKindNames.begin(), model::kJobKindNames.end());
  if (auto good = OneOf("--phase", "phase", options.phase, phases); !good) return good;
  if (auto good = OneOf("--kind", "kind", options.kind, kinds); !good) return good;
  for (const auto& [key, op, value] : Conditions(options.filter)) {
    if (op != "=" && op != "!=") continue;
    const auto* known = key == "phase" ? &phases : key == "kind" ? &kinds : nullptr;
    if (known == nullptr) continue;
    if (auto good = OneOf("--filter", key, value, *known); !good) return good;
  }
  return {};
}

// The names in a list of the daemon; none where it may not be seen.
std::vector<std::string> NamesIn(Session& session, const char* list) {
  std::vector<std::string> names;
  const auto answer = session.client().Get(list);
  if (!answer) return names;
  const auto got = Json::parse(*answer, nullptr, false);
  if (!got.is_object() || !got.contains(list)) return names;
  for (const auto& item : got.at(list)) names.push_back(item.value("name", ""));
  return names;
}

// Nothing was found: is it because what was named is not there? A user is known to be none only
// where the accounts of the daemon's machine are ours too.
Result<void> CheckNames(Session& session, const ListOptions& options) {
  const auto [queue_flag, queue] = Named("queue", options.queue, options.filter);
  if (!queue.empty()) {
    const auto queues = NamesIn(session, "queues");
    if (!queues.empty()) {
      if (auto good = OneOf(queue_flag, "queue", queue, queues); !good) return good;
    }
  }
  const auto [user_flag, user] = Named("user", options.user, options.filter);
  if (user.empty() || !session.target().local() || ::getpwnam(user.c_str()) != nullptr) return {};
  const auto users = NamesIn(session, "users");
  if (std::find(users.begin(), users.end(), user) != users.end()) return {};
  return Fail(ErrorCode::kUsage, user_flag + ": there is no user \"" + user + "\"",
              users.empty() ? "it is no account of this machine, and has no jobs"
                            : "an account of this machine, or one of " + Joined(users));
}

}  // namespace

int Ps(Session& session, const ListOptions& options) {
  if (auto good = CheckWords(options); !good) return Refuse(good.error());
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
  // Whoever asks for those that have ended wants to see them.
  for (const char* ended : {"succeeded", "failed", "cancelled"}) {
    if (options.phase == ended) query["all"] = "1";
  }
  const auto key = options.sort.substr(options.sort.starts_with('-') ? 1 : 0);
  if (query.contains("all") && !key.empty() && key != "id" && key != "created_at") {
    return Refuse({ErrorCode::kUsage, "--sort: with jobs that have ended it takes id or created_at",
                   "leave out -a, or sort what -o json prints"});
  }
  const auto found = AllPages(session.client(), "jobs", query, options.limit);
  if (found && found->size() < kEmptyAnswer && found->find("\"id\"") == std::string::npos) {
    if (auto good = CheckNames(session, options); !good) return Refuse(good.error());
  }
  return session.Show(found, [&](const Json& got) {
    std::vector<std::string> head = {"ID",      "NAME", "USER", "QUEUE", "PHASE",
                                     "WORKERS", "GPUS", "AGE",  "RAN"};
    if (session.wide()) head.insert(head.end(), {"PRIORITY", "RESTARTS"});
    head.emplace_back("NOTE");
    Rows rows;
    for (const auto& job : got.at("jobs")) {
      job.at("status").at("gpus");  // or it is no job: throws
      rows.push_back(Row(job, session.wide()));
    }
    PrintTable(head, rows, {"RESTARTS", "PRIORITY", "RAN", "WORKERS", "USER", "AGE", "QUEUE"});
    if (rows.empty()) std::cerr << (query.contains("all") ? "no jobs\n" : "no jobs wait or run\n");
    if (got.contains("next")) std::cerr << "there are more; --limit shows them\n";
  });
}

}  // namespace muster::cli
