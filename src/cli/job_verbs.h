// The verbs about jobs: sending them, watching them, acting on them.
//
// Each takes the session and what was on the command line and returns the exit status. Waiting ends
// with a status that tells how the job ended (100 failed, 101 not finished, 102 cancelled, 103 not
// finished because the scheduler has paused it), so that scripts need not read text; the reason is
// said on standard error. Ctrl-C leaves the job alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/run_spec.h"
#include "cli/session.h"

namespace muster::cli {

struct SubmitOptions {
  std::vector<std::string> files;
  bool held = false;
  bool dry_run = false;
};
// The same job once more.
int Clone(Session& session, const std::string& job, const std::string& name, bool dry_run);
int Submit(Session& session, const SubmitOptions& options);
// The one job of a file, checked and with its folder filled in, as it is sent.
Result<std::string> ReadJob(const std::string& file);

int Run(Session& session, const RunOptions& options);

// The names; `-` stands for those on standard input.
std::vector<std::string> WithInput(const std::vector<std::string>& names);

struct ListOptions {
  bool all = false;
  std::string queue;
  std::string user;
  std::string phase, kind, filter, sort;
  std::int64_t limit = 500;
};
int Ps(Session& session, const ListOptions& options);
// What a job that holds no GPUs yet asks for: "4", "1..6"; empty: it has them, or wants none.
std::string GpusAsked(const nlohmann::json& status);
int DescribeJob(Session& session, const std::string& job);
int Why(Session& session, const std::string& job);

struct LogOptions {
  std::string job;
  bool follow = false;
  bool err = false;
  std::int64_t worker = 0;
  std::int64_t tail = -1;     // all
  std::int64_t since_ms = 0;  // Unix time; 0: all
};
int Logs(Session& session, const LogOptions& options);
// Both streams of the first worker until the job has ended, each to where it belongs.
Result<void> FollowBoth(Session& session, const std::string& job, std::ostream& out,
                        std::ostream& err);

struct EventOptions {
  std::string job;  // empty: of all
  bool follow = false;
  bool cycles = false;  // also that a scheduling cycle ran
  Selection selection;
};
int Events(Session& session, const EventOptions& options);

struct WaitOptions {
  std::vector<std::string> jobs;
  std::string until = "done";
  std::int64_t timeout_ms = 0;
  bool alone = false;  // one job, printed as itself and not as a list
};
int Wait(Session& session, const WaitOptions& options);
// On a terminal: until it runs or has ended, with a line that says what it waits for. Elsewhere the
// daemon waits as well as we would, so there it returns at once.
void AwaitStart(Session& session, const std::string& name);

// cancel, suspend, resume, hold, release, requeue, checkpoint; scale and priority with their query.
int Act(Session& session, const std::vector<std::string>& jobs, const std::string& verb,
        const client::Client::Query& query);
int Scale(Session& session, const std::string& job, const std::string& workers,
          client::Client::Query query);
int Priority(Session& session, const std::vector<std::string>& jobs, const std::string& priority,
             client::Client::Query query);

}  // namespace muster::cli
