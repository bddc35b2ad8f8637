// Waiting for jobs: until they run or have ended, and what became of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/job_verbs.h"
#include "cli/progress.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kFailed = 100, kNotFinished = 101, kCancelled = 102, kPreempted = 103;
constexpr std::chrono::milliseconds kLookAgain(100);

bool HasEnded(const std::string& phase) {
  return phase == "succeeded" || phase == "failed" || phase == "cancelled";
}

// "job 3 failed: worker 0 exited with 4".
std::string Fate(const Json& job, const std::string& phase) {
  const auto& status = job.at("status");
  const std::string who = "job " + job.value("id", "");
  if (status.contains("tasks")) {
    return fmt::format("{} {}: of {} tasks {} failed, {} were cancelled", who, phase,
                       status.value("tasks", 0), status.value("failed", 0),
                       status.value("cancelled", 0));
  }
  const auto reason = status.value("termination", Json::object()).value("reason", "");
  if (reason.starts_with(phase)) return who + " was " + reason;
  return who + " " + phase + (reason.empty() ? "" : ": " + reason);
}

// What it is doing instead of ending, and the status that stands for it.
int Late(const Json& job, const std::string& phase) {
  const auto by = job.at("status").value("preemption", Json::object());
  std::cerr << "muster: job " << job.value("id", "") << " is " << phase;
  if (phase == "paused" && by.contains("for_name")) {
    std::cerr << Clean(" for " + by.value("for_user", "") + "'s " + by.value("for_name", ""));
  }
  std::cerr << '\n';
  return phase == "paused" ? kPreempted : kNotFinished;
}

}  // namespace

int Wait(Session& session, const WaitOptions& options) {
  const auto deadline = options.timeout_ms > 0 ? WallMs() + options.timeout_ms : INT64_MAX;
  int status = 0, late = 0;
  std::string list;
  JobProgress progress(session);
  if (deadline == INT64_MAX) session.Persist();
  for (const auto& name : WithInput(options.jobs)) {
    for (;;) {
      // A daemon that goes away now is asked again for the rest of the time, and no longer.
      if (deadline != INT64_MAX) session.Persist(std::max<std::int64_t>(0, deadline - WallMs()));
      const auto answer = session.client().Get("jobs/" + name);
      if (!answer) return Refuse(answer.error());
      const auto job = Json::parse(*answer);
      const auto phase = job.at("status").at("phase").get<std::string>();
      const bool ended = HasEnded(phase);
      const bool over = WallMs() >= deadline;
      if (!ended && !over && !(options.until == "running" && phase == "running")) {
        progress.Look(job);
        std::this_thread::sleep_for(kLookAgain);
        continue;
      }
      progress.Erase();
      list += (list.empty() ? "" : ",") + *answer;
      if (ended && phase != "succeeded") {
        std::cerr << Clean(Fate(job, phase)) << '\n';
        if (phase == "failed") status = kFailed;
        if (phase == "cancelled" && status == 0) status = kCancelled;
      } else if (!ended && !(options.until == "running" && phase == "running")) {
        const int why = Late(job, phase);
        if (late == 0) late = why;
      }
      break;
    }
  }
  const auto document = options.alone ? list : "{\"jobs\":[" + list + "]}";
  const int shown =
      session.Show(nlohmann::ordered_json::parse(document).dump(2), [](const Json&) {});
  return shown != 0 ? shown : late != 0 ? late : status;
}

void AwaitStart(Session& session, const std::string& name) {
  JobProgress progress(session);
  while (progress.shown()) {
    const auto answer = session.client().Get("jobs/" + name);
    if (!answer) return;  // whoever comes next says why
    const auto job = Json::parse(*answer);
    const auto phase = job.at("status").value("phase", "");
    if (HasEnded(phase) || phase == "running" || phase == "stopping") return;
    progress.Look(job);
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace muster::cli
