// Progress: one line on standard error that says what is waited for.
//
// Written only when standard error is a terminal, over itself, never wider than the window, and
// erased when the wait is over or interrupted, so that nothing of it stays on the screen. In a pipe
// or a log there is none. One at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/session.h"

namespace muster::cli {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool shown() const { return columns_ > 0; }
  std::size_t columns() const { return columns_; }
  void Say(std::string_view text);
  void Erase();

 private:
  std::size_t columns_;
  bool written_ = false;
};

// The line for work of which a share is known: a bar, the share, and the time left once that can be
// told.
std::string ShareLine(std::string_view what, double share, std::int64_t took_ms,
                      std::size_t columns);

// For so many pieces of work, one after the other, that take about as long as each other.
class ShareProgress {
 public:
  explicit ShareProgress(std::int64_t pieces = 1) : pieces_(pieces), begun_ms_(WallMs()) {}

  // The next piece: told what share of it is done. It must not outlive this.
  std::function<Result<void>(double)> Next(std::string what);
  void Erase() { line_.Erase(); }

 private:
  Progress line_;
  std::int64_t pieces_, done_ = -1;
  std::int64_t begun_ms_, said_ms_ = 0;
};

// How far a job is, where that is known: an array by its tasks, one that runs by its time limit.
struct Pace {
  std::int64_t done = 0;
  std::int64_t all = 0;  // 0: not known
  std::int64_t left_ms = -1;
  bool at_most = false;  // it may end long before that
};
// When an array was looked at first, and what was done by then.
struct FirstLook {
  std::int64_t at_ms = 0;
  std::int64_t done = 0;
};
Pace PaceOf(const nlohmann::json& job, const FirstLook& first, std::int64_t now_ms);
std::int64_t TasksDone(const nlohmann::json& job);

// The line: a bar where `pace` is known and the window has room for it, the time left, and the
// rest.
std::string ProgressLine(const nlohmann::json& job, const Pace& pace, std::string_view rest,
                         std::size_t columns);

// The line for one job after the other: how far it is, how long it has been waited for, what it
// does instead of what is wanted, and why. Asks the daemon for the reason at most once a second.
class JobProgress {
 public:
  explicit JobProgress(Session& session) : session_(session), begun_ms_(WallMs()) {}

  bool shown() const { return line_.shown(); }
  void Look(const nlohmann::json& job);
  void Erase() { line_.Erase(); }

 private:
  Session& session_;
  Progress line_;
  std::int64_t begun_ms_;
  std::int64_t asked_ms_ = 0;
  FirstLook first_;
  std::string job_, reason_;
};

}  // namespace muster::cli
