#include "cli/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSkewMs = 5'000;
constexpr std::int64_t kSoonMs = std::int64_t{7} * 86'400'000;
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kLittleRoom = std::int64_t{1} << 30;
constexpr std::int64_t kLittleMemory = std::int64_t{16} << 20;
constexpr std::int64_t kCertificateDays = 30;
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

// Its answer carries its time; the question took no longer than both readings are apart.
void CheckClock(const Json& version, std::int64_t asked_ms, Findings& findings) {
  if (!version.contains("now")) return;
  const auto theirs = TimeMs(version, "now"), now = WallMs();
  const auto ahead = theirs > now ? theirs - now : theirs < asked_ms ? theirs - asked_ms : 0;
  if (ahead > kSkewMs || ahead < -kSkewMs) {
    findings.Warn("clock",
                  "the daemon's clock is " + Ago(std::abs(ahead)) +
                      (ahead > 0 ? " ahead of this one" : " behind this one"),
                  "let both machines keep their time by NTP: tokens end by the daemon's clock");
  } else {
    findings.Ok("clock", "the daemon's and ours agree");
  }
}

void CheckFolder(const char* what, const Json& folder, Findings& findings) {
  const auto path = folder.value("path", "");
  if (!folder.contains("free_bytes")) {
    return findings.Warn(what, path + " cannot be looked at by the daemon", "look at its log");
  }
  const auto free = folder.value("free_bytes", std::int64_t{0});
  const auto size = std::max<std::int64_t>(1, folder.value("size_bytes", std::int64_t{1}));
  const auto said =
      fmt::format("{}: {:.1f} GiB free of {:.1f} GiB", path, static_cast<double>(free) / (1 << 30),
                  static_cast<double>(size) / (1 << 30));
  // The folder of running workers is small, and in memory.
  const auto least = std::string_view(what) == "state" ? kLittleRoom : kLittleMemory;
  if (free < least) {
    findings.Fail(what, said, "make room: nothing can be written soon");
  } else {
    findings.Ok(what, said);
  }
}

void CheckCertificate(const Json& certificate, Findings& findings) {
  const auto path = certificate.value("path", "");
  if (!certificate.contains("expires_at")) {
    return findings.Fail("tls", path + " holds no certificate", "give a PEM file: --tls-cert");
  }
  const auto left = TimeMs(certificate, "expires_at") - WallMs();
  const auto days = left / kDayMs;
  const std::string renew = "renew it and send musterd a HUP (systemctl reload musterd)";
  if (left <= 0) {
    findings.Fail("tls", "the certificate of the daemon has expired", renew);
  } else if (days < kCertificateDays) {
    findings.Warn("tls", "the certificate of the daemon ends in " + Count(days, "day"), renew);
  } else {
    findings.Ok("tls", "the certificate of the daemon is good for " + Count(days, "day"));
  }
}

void CheckHost(const Json& version, Findings& findings) {
  if (!version.contains("host")) {
    return findings.Warn("state", "where the daemon keeps it is told to admins only",
                         "ask an admin to look");
  }
  const auto& host = version.at("host");
  for (const char* what : {"state", "run"}) {
    if (host.contains(what)) CheckFolder(what, host.at(what), findings);
  }
  if (host.contains("certificate")) CheckCertificate(host.at("certificate"), findings);
}

bool CheckDaemon(Session& session, Findings& findings, const std::string& ours) {
  const auto asked_ms = WallMs();
  const auto answer = session.client().Get("version");
  const auto& server = session.target().server;
  // The document needs no store: who serves it is there, and what it lacks is something else.
  if (!answer && session.client().Get("openapi.json")) {
    findings.Ok("daemon", "answers at " + server);
    findings.Fail("store", answer.error().message,
                  "look at the database that `musterd --store` names, or at the disk of --state, "
                  "and at the log of musterd");
    return false;
  }
  if (!answer) {
    const auto& hint = answer.error().hint;
    findings.Fail("daemon", answer.error().message,
                  (hint.empty() ? "" : hint + "; ") + "`muster config view --origins` tells why " +
                      server + " is meant");
    return false;
  }
  findings.Ok("daemon", "answers at " + server);
  const auto version = Json::parse(*answer);
  const auto theirs = version.value("version", "");
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
  CheckClock(version, asked_ms, findings);
  CheckHost(version, findings);
  return true;
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

// Of this machine, where the daemon runs here too.
void CheckMachine(Session& session, Findings& findings) {
  if (!session.target().local()) return;
  std::error_code failed;
  if (std::ifstream file("/sys/fs/cgroup/cgroup.controllers"); file) {
    std::string named;
    std::getline(file, named);
    const auto missing = ControllersMissing(named);
    if (missing.empty()) {
      findings.Ok("cgroup", "version 2");
    } else {
      findings.Warn("cgroup", "version 2 without control of " + missing,
                    "limits of cores and memory are kept less well; boot with "
                    "systemd.unified_cgroup_hierarchy=1");
    }
  } else if (std::filesystem::exists("/sys/fs/cgroup/memory", failed)) {
    findings.Warn("cgroup", "version 1", "limits are kept best with version 2");
  } else {
    findings.Warn("cgroup", "there is none", "limits of memory are watched, not enforced");
  }
  if (void* library = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    ::dlclose(library);
    findings.Ok("nvml", "the NVIDIA library is here: GPUs can be measured");
  } else {
    findings.Warn("nvml", "libnvidia-ml.so.1 is not here: no NVIDIA GPU can be used or measured",
                  "install the NVIDIA driver, if this machine has such GPUs");
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

// On a terminal lines break between words, in a column of their own.
void Print(const Json& findings, const Sheet& sheet) {
  constexpr std::size_t kResult = 6, kName = 9;
  for (const auto& one : findings) {
    const auto result = one.value("result", ""), advice = one.value("advice", "");
    const auto text = Pad(result, kResult) + Pad(one.value("name", ""), kName) +
                      one.value("said", "") + (advice.empty() ? "" : " -> " + advice);
    const auto lines = sheet.columns == 0 ? std::vector<std::string>{text}
                                          : Wrap(text, sheet.columns, kResult + kName);
    bool first = true;
    for (const auto& line : lines) {
      std::cout << (first ? Paint(result, sheet.color) + line.substr(result.size()) : line) << '\n';
      first = false;
    }
  }
}

}  // namespace

std::string ControllersMissing(const std::string& named) {
  std::string missing;
  for (const char* need : {"cpu", "memory"}) {
    if ((" " + named + " ").find(std::string(" ") + need + " ") != std::string::npos) continue;
    missing += missing.empty() ? "" : " and ";
    missing += need;
  }
  return missing;
}

int Doctor(Session& session, const std::string& version) {
  Findings findings;
  if (CheckDaemon(session, findings, version)) {
    CheckNodes(session, findings);
    CheckJobs(session, findings);
    CheckTokens(session, findings);
  }
  CheckMachine(session, findings);
  const nlohmann::ordered_json document = {{"checks", findings.list()}};
  const int shown =
      session.Show(document.dump(2), [](const Json& got) { Print(got.at("checks"), SheetNow()); });
  return shown != 0 ? shown : findings.failed() ? 1 : 0;
}

}  // namespace muster::cli
