// Progress: one line on standard error that says what is waited for.
//
// Written only when standard error is a terminal, over itself, never wider than the window, and
// erased when the wait is over or interrupted, so that nothing of it stays on the screen. In a pipe
// or a log there is none. One at a time.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "cli/session.h"

namespace muster::cli {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool shown() const { return columns_ > 0; }
  void Say(std::string_view text);
  void Erase();

 private:
  std::size_t columns_;
  bool written_ = false;
};

// The line for one job after the other: how long it has been waited for, what it does instead of
// what is wanted, and why. Asks the daemon for the reason at most once a second.
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
  std::string job_, reason_;
};

}  // namespace muster::cli
