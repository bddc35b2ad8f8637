// Launcher: several workers of one program on this machine, each a process.
//
// Starts them, passes on what it is told (SIGTERM, SIGINT) and says what became of each. Nobody is
// started again: a job goes on without a worker that was killed, and who wants another starts one
// in the same folder. Before work has begun all wait for all, so there one that is missing ends the
// others too. When the launcher itself dies, the kernel tells its workers to leave.
//
// Signals are blocked and waited for, SIGCHLD among them, so none is lost between a look and a
// wait. What workers have to tell lies in memory that they share with the launcher.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace muster::train {

// What a worker tells the one who started it.
struct WorkerNews {
  std::atomic<bool> begun{false};               // it has worked
  std::atomic<bool> finished{false};            // the job is done
  std::atomic<std::int64_t> paused_at{kNever};  // a step: all have left
  std::array<char, 2048> error{};               // why it ended; written before it does
  static constexpr std::int64_t kNever = -1;
};

struct LaunchOptions {
  std::string program;  // its name, to speak by
  int workers = 1;
  int servers = 0;  // numbered after the workers
  // The signal to end that came before the launcher could wait for any, or 0; workers know of it.
  std::function<int()> told;
  // In a worker: its launcher is gone already, so nobody will tell it.
  std::function<void()> orphaned;
  // In a worker; what it returns is its exit status.
  std::function<Result<int>(int index, WorkerNews& news)> body;
  std::function<void(const std::string& line)> complain;
};

struct Launched {
  bool finished = false;
  int failed = 0;  // the worst exit status
  int told = 0;    // the last signal to end, or 0
  int killed = 0;  // the last signal that ended a worker, or 0
  std::int64_t paused_at = WorkerNews::kNever;
};

// Until all have ended. An error: not all could be started; those who were have ended.
Result<Launched> Launch(const LaunchOptions& options);

}  // namespace muster::train
