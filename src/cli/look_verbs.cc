// Verbs that look and change nothing: plan, pools, whoami, usage, decisions, version.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/units.h"
#include "cli/event_text.h"
#include "cli/job_verbs.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kDecisions = 50;

// "0,1"; "-" for none.
std::string Numbers(const Json& list) {
  std::string out;
  for (const auto& one : list) out += (out.empty() ? "" : ",") + Plain(one);
  return out.empty() ? "-" : out;
}

// A file where there is one, else a job that waits.
Result<std::string> AskPlan(Session& session, const std::string& word) {
  std::error_code none;
  if (word != "-" && !std::filesystem::exists(word, none)) {
    const bool name = word.find('/') == std::string::npos && !word.ends_with(".yaml") &&
                      !word.ends_with(".yml") && !word.ends_with(".json");
    auto answer = name ? session.client().Get("jobs/" + word + "/plan")
                       : Result<std::string>(Fail(ErrorCode::kNotFound, ""));
    if (answer || answer.error().code != ErrorCode::kNotFound) return answer;
    return Fail(ErrorCode::kNotFound,
                "\"" + word + "\" is neither a file that is here nor a job that is there",
                "`muster init FILE` writes a file, `muster ps` lists the jobs");
  }
  const auto spec = ReadJob(word);
  if (!spec) return tl::unexpected(spec.error());
  return session.client().Post("plan", {}, *spec);
}

// Where it would run, each node once.
int PrintNodes(const Result<std::string>& plan) {
  if (!plan) return Refuse(plan.error());
  std::set<std::string> nodes;
  const auto got = Json::parse(*plan);
  for (const auto& place : got.at("places")) nodes.insert(place.value("node", ""));
  for (const auto& node : nodes) std::cout << Clean(node) << '\n';
  return 0;
}

int Plan(Session& session, const std::string& word) {
  const auto plan = AskPlan(session, word);
  if (session.output() == Output::kName) return PrintNodes(plan);
  return session.Show(plan, [&](const Json& got) {
    std::cout << got.value("sentence", "") << '\n';
    const auto when = got.value("when", "");
    if (when != "later") std::cout << "because " << got.value("why", "") << '\n';
    if (got.contains("estimate")) {
      std::cout << "it would " << TellStart(got.at("estimate")) << '\n';
    }
    Rows places, displaced;
    for (const auto& place : got.at("places")) {
      places.push_back(
          {Plain(place.at("worker")), place.value("node", ""), Numbers(place.at("gpus"))});
    }
    if (!places.empty()) {
      std::cout << '\n';
      session.Table({"WORKER", "NODE", "GPUS"}, places);
    }
    for (const auto& one : got.at("displaced")) {
      displaced.push_back({one.value("job", ""), one.value("name", ""), one.value("user", ""),
                           one.value("what", ""), Plain(one.at("workers")), one.value("rule", "")});
    }
    if (displaced.empty()) return;
    std::cout << "\nWho would be displaced:\n";
    session.Table({"JOB", "NAME", "USER", "WOULD BE", "WORKERS", "RULE"}, displaced);
  });
}

int Pools(Session& session) {
  const char* more = session.wide() ? "STATE" : "";
  return session.Show(
      session.List("pools"), {"POOL", more, "NODES READY", "GPUS IN USE", "NOTE"},
      [&](const Json& got) {
        Rows rows;
        for (const auto& pool : got.at("pools")) {
          const auto &spec = pool.at("spec"), &status = pool.at("status");
          rows.push_back({pool.value("name", ""), session.wide() ? status.value("phase", "") : "",
                          Plain(status.at("nodes_ready")) + "/" + Plain(spec.at("nodes")),
                          Plain(status.at("gpus_in_use")) + "/" + Plain(spec.at("gpus")),
                          Mark(pool)});
        }
        return rows;
      });
}

int WhoAmI(Session& session) {
  return session.Show(session.client().Get("whoami"), [](const Json& got) {
    std::cout << fmt::format("{:<8} {}\n", "user", got.value("user", ""));
    std::string groups;
    for (const auto& group : got.at("groups"))
      groups += (groups.empty() ? "" : ", ") + Plain(group);
    if (!groups.empty()) std::cout << fmt::format("{:<8} {}\n", "groups", groups);
    std::cout << fmt::format("{:<8} {}\n", "from", got.value("from", ""));
    if (const auto role = got.value("role", ""); !role.empty()) {
      std::cout << fmt::format("{:<8} {}{}\n", "role", role, role == "admin" ? "" : " everywhere");
    }
    for (const auto& [queue, role] : got.at("roles").items()) {
      std::cout << fmt::format("{:<8} {} in queue {}\n", "role", Plain(role), queue);
    }
  });
}

int Usage(Session& session, const std::string& by, const std::string& since) {
  client::Client::Query query{{"by", by}};
  if (!since.empty()) query["since"] = since;
  const bool jobs = by == "job";
  std::vector<std::string> heads{by == "user"    ? "USER"
                                 : by == "queue" ? "QUEUE"
                                                 : "NAME",
                                 "GPU-HOURS", "JOBS", "RUNNING"};
  if (jobs) heads.insert(heads.begin(), "JOB");
  return session.Show(session.List("usage", query), heads, [jobs](const Json& got) {
    Rows rows;
    for (const auto& one : got.at("usage")) {
      auto& row = rows.emplace_back();
      if (jobs) row.push_back(one.value("id", ""));
      row.push_back(one.value("name", ""));
      row.push_back(fmt::format("{:.2f}", one.value("gpu_hours", 0.0)));
      row.push_back(Plain(one.at("jobs")));
      row.push_back(Plain(one.at("running")));
    }
    return rows;
  });
}

int Decisions(Session& session) {
  return session.Show(
      session.List("decisions"),
      {session.wide() ? "REVISION" : "", "TIME", "WHAT", "JOB", "WORKER", "NODE", "GPUS", "RULE",
       "FOR JOB"},
      [&](const Json& got) {
        Rows rows;
        for (const auto& one : got.at("decisions")) {
          rows.push_back({session.wide() ? Plain(one.at("revision")) : "", Clock(TimeMs(one, "at")),
                          one.value("what", ""), one.value("job", ""), Plain(one.at("worker")),
                          one.value("node", ""), Numbers(one.value("gpus", Json::array())),
                          one.value("rule", ""), one.value("for_job", "")});
        }
        return rows;
      });
}

// A daemon that does not answer is no failure: our own version was asked for too.
int Version(Session& session, const std::string& ours) {
  nlohmann::ordered_json both = {{"version", ours}, {"daemon", nullptr}};
  const auto answer = session.client().Get("version");
  if (answer) both["daemon"] = nlohmann::ordered_json::parse(*answer);
  if (!answer) both["unreachable"] = answer.error().message;
  return session.Show(both.dump(2), [&](const Json& got) {
    std::cout << "muster  " << ours << '\n';
    if (!answer) {
      std::cout << "musterd not reached\n";
      std::cerr << Describe(answer.error()) << '\n';
      return;
    }
    const auto& daemon = got.at("daemon");
    std::cout << "musterd " << daemon.value("version", "") << ", revision "
              << Plain(daemon.at("revision")) << ", " << Plain(daemon.at("jobs")) << " jobs\n";
  });
}

}  // namespace

void AddLookVerbs(Verbs& verbs) {
  auto file = std::make_shared<std::string>();
  auto* plan = verbs.Add(
      verbs.app(), "plan", "Where a job would run now, and who would be displaced",
      "muster plan train.yaml\nmuster plan resnet", [file](Session& s) { return Plan(s, *file); });
  Note(plan, "-o name prints the nodes on which it would run, each once.");
  AddOption(plan, "FILE", *file, "a job file; - is standard input; or the name of a waiting job")
      .Required();
  verbs.IsList(verbs.Add(verbs.app(), "pools", "List pools", "muster pools -o json", Pools));
  verbs.Add(verbs.app(), "whoami", "Who I am to the daemon, and what I may do", "muster whoami",
            WhoAmI);

  struct Words {
    std::string by = "user", since;
  };
  auto w = std::make_shared<Words>();
  auto* usage =
      verbs.Add(verbs.app(), "usage", "GPU time that was used",
                "muster usage --by queue --since 7d\nmuster usage --sort=-gpu_hours --limit 10",
                [w](Session& s) { return Usage(s, w->by, w->since); });
  AddOption(usage, "--by", w->by, "user, queue or job; default user")
      .OneOf({"user", "queue", "job"});
  AddOption(usage, "--since", w->since, "of jobs that ended within that time, as 24h");
  verbs.IsList(usage);
  auto* decisions =
      verbs.Add(verbs.app(), "decisions", "What the scheduler decided, newest first",
                "muster decisions --limit 20\nmuster decisions --filter what=pause", Decisions);
  verbs.IsList(decisions, kDecisions);
  verbs.Add(verbs.app(), "version", "The versions of muster and of the daemon", "muster version",
            [&verbs](Session& s) { return Version(s, verbs.common().version); });
}

}  // namespace muster::cli
