#include "cli/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSkewMs = 5'000;
constexpr std::int64_t kSoonMs = std::int64_t{7} * 86'400'000;
constexpr std::uintmax_t kLittleRoom = std::uintmax_t{1} << 30;
constexpr int kMostExplained = 100;  // jobs that are asked about one by one

class Findings {
 public:
  void Ok(const char* what, const std::string& said) { Add("ok", what, said, ""); }
  void Warn(const char* what, const std::string& said, const std::string& advice) {
    Add("warn", what, said, advice);
  }
  void Fail(const char* what, const std::string& said, const std::string& advice) {
    failed_ = true;
    Add("fail", what, said, advice);
  }
  bool failed() const { return failed_; }
  const nlohmann::ordered_json& list() const { return list_; }

 private:
  void Add(const char* result, const char* what, const std::string& said,
           const std::string& advice) {
    list_.push_back({{"name", what}, {"result", result}, {"said", said}, {"advice", advice}});
  }

  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
  bool failed_ = false;
};

// The answer, or none and a line that says why.
Json Ask(Session& session, Findings& findings, const char* what, const std::string& path,
         const client::Client::Query& query = {}) {
  const auto answer =
      query.empty() ? AllPages(session.client(), path) : session.client().Get(path, query);
  if (answer) return Json::parse(*answer);
  if (answer.error().code == ErrorCode::kDenied) {
    findings.Warn(what, "may not be seen by this user", "ask an admin to look");
  } else {
    findings.Fail(what, answer.error().message, answer.error().hint);
  }
  return nullptr;
}

bool CheckDaemon(Session& session, Findings& findings, const std::string& ours) {
  const auto answer = session.client().Get("version");
  const auto& server = session.target().server;
  if (!answer) {
    findings.Fail(
        "daemon", answer.error().message,
        "start musterd, or see with `muster config view --origins` why " + server + " is meant");
    return false;
  }
  findings.Ok("daemon", "answers at " + server);
  const auto theirs = Json::parse(*answer).value("version", "");
  if (theirs == ours) {
    findings.Ok("version", "both are " + ours);
  } else {
    findings.Warn("version", "muster is " + ours + ", musterd is " + theirs,
                  "install the same version of both");
  }
  if (const auto ready = session.client().Get("ready"); ready) {
    findings.Ok("store", "can be written");
  } else {
    findings.Fail("store", ready.error().message, "look at the disk and the log of musterd");
  }
  return true;
}

// Events carry the daemon's time: one from the future shows that the clocks differ.
void CheckClock(Session& session, Findings& findings) {
  if (session.target().local()) return findings.Ok("clock", "the daemon is on this machine");
  const auto got = Ask(session, findings, "clock", "events", {{"limit", "1"}});
  if (got.is_null()) return;
  const auto& events = got.at("events");
  const auto ahead = events.empty() ? 0 : TimeMs(events.back(), "at") - WallMs();
  if (ahead > kSkewMs) {
    findings.Warn("clock", "the daemon's clock is " + Ago(ahead) + " ahead of this one",
                  "let both machines keep their time by NTP");
  } else {
    findings.Ok("clock", "no event of the daemon is from the future");
  }
}

void CheckNodes(Session& session, Findings& findings) {
  const auto got = Ask(session, findings, "nodes", "nodes");
  if (got.is_null()) return;
  std::string down, marked;
  std::size_t ready = 0;
  bool pretended = false;
  for (const auto& node : got.at("nodes")) {
    const auto state = node.at("status").value("phase", ""), name = node.value("name", "");
    pretended = pretended || !Mark(node).empty();
    if (state == "ready") ++ready;
    if (state == "down") down += (down.empty() ? "" : ", ") + name;
    if (state == "cordoned" || state == "draining") {
      marked += fmt::format("{}{} ({})", marked.empty() ? "" : ", ", name, state);
    }
  }
  if (ready == 0) {
    findings.Fail("nodes", "none is ready", "see `muster nodes`");
  } else {
    findings.Ok("nodes", fmt::format("{} of {} are ready", ready, got.at("nodes").size()));
  }
  if (!down.empty()) findings.Warn("nodes", "down: " + down, "look at these machines");
  if (!marked.empty()) {
    findings.Warn("nodes", "take no new work: " + marked,
                  "`muster node uncordon NODE` when they may be used again");
  }
  if (pretended) {
    findings.Warn("gpus", "some or all are virtual or simulated",
                  "fine for trying things; real GPUs need the NVIDIA driver on the node");
  }
}

// Only where the daemon has its folder by default; the API does not tell it.
void CheckMachine(Session& session, Findings& findings) {
  if (!session.target().local()) return;
  std::error_code failed;
  const char* home = std::getenv("HOME");
  const std::string state =
      ::geteuid() == 0 || home == nullptr ? "/var/lib/muster" : std::string(home) + "/.muster";
  if (std::filesystem::exists(state, failed)) {
    const auto room = std::filesystem::space(state, failed);
    const auto free =
        fmt::format("{:.1f} GiB free", static_cast<double>(room.available) / (1 << 30));
    if (!failed && room.available < kLittleRoom) {
      findings.Fail("disk", state + ": " + free, "make room: the journal must be written");
    } else if (!failed) {
      findings.Ok("disk", state + ": " + free);
    }
  }
  if (std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers", failed)) {
    findings.Ok("cgroup", "version 2");
  } else if (std::filesystem::exists("/sys/fs/cgroup/memory", failed)) {
    findings.Warn("cgroup", "version 1", "limits are kept best with version 2");
  } else {
    findings.Warn("cgroup", "there is none", "limits of memory are watched, not enforced");
  }
}

void CheckJobs(Session& session, Findings& findings) {
  const auto got = Ask(session, findings, "jobs", "jobs",
                       {{"phase", "waiting"},
                        {"fields", "id,name"},
                        {"sort", "created_at"},
                        {"limit", std::to_string(kMostExplained)}});
  if (got.is_null()) return;
  int never = 0;
  for (const auto& job : got.at("jobs")) {
    const auto id = job.value("id", "");
    const auto answer = session.client().Get("jobs/" + id + "/explain");
    if (!answer) continue;  // it may have ended meanwhile
    const auto sentence = Json::parse(*answer).value("sentence", "");
    if (sentence.find("can never start") == std::string::npos) continue;
    ++never;
    findings.Warn("jobs", fmt::format("job {} {}: {}", id, job.value("name", ""), sentence),
                  fmt::format("`muster cancel {}`, or add what it lacks", id));
  }
  if (never == 0) {
    findings.Ok("jobs",
                fmt::format("{} wait{}; all of them can start some time", got.at("jobs").size(),
                            got.contains("next") ? " (the oldest)" : ""));
  }
}

void CheckTokens(Session& session, Findings& findings) {
  const auto got = Ask(session, findings, "tokens", "tokens");
  if (got.is_null()) return;
  int soon = 0;
  for (const auto& token : got.at("tokens")) {
    const auto& spec = token.at("spec");
    const auto left = TimeMs(spec, "expires_at") - WallMs();
    if (!spec.contains("expires_at") || left > kSoonMs) continue;
    ++soon;
    const auto who = token.value("id", "") + " (" + token.value("name", "") + " of " +
                     spec.value("user", "") + ")";
    findings.Warn("tokens", who + (left < 0 ? " has expired" : " expires in " + Ago(left)),
                  "`muster token create NAME` makes a new one");
  }
  if (soon == 0) findings.Ok("tokens", "none expires within 7 days");
}

void Print(const Json& findings, bool color) {
  for (const auto& one : findings) {
    const auto result = one.value("result", ""), advice = one.value("advice", "");
    std::cout << Paint(result, color)
              << std::string(6 - std::min<std::size_t>(result.size(), 4), ' ')
              << Pad(one.value("name", ""), 9) << one.value("said", "")
              << (advice.empty() ? "" : " -> " + advice) << '\n';
  }
}

}  // namespace

int Doctor(Session& session, const std::string& version) {
  Findings findings;
  if (CheckDaemon(session, findings, version)) {
    CheckClock(session, findings);
    CheckNodes(session, findings);
    CheckJobs(session, findings);
    CheckTokens(session, findings);
  }
  CheckMachine(session, findings);
  const nlohmann::ordered_json document = {{"checks", findings.list()}};
  const int shown = session.Show(
      document.dump(2), [&](const Json& got) { Print(got.at("checks"), SheetNow().color); });
  return shown != 0 ? shown : findings.failed() ? 1 : 0;
}

}  // namespace muster::cli
