#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "cli/table.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAskAgainMs = 1000;
constexpr std::int64_t kSayEveryMs = 100;
constexpr std::int64_t kNoGuessMs = 2000;  // from less nobody can tell how long the rest takes
// The terminal writes ^C behind the line, which must not begin one of its own.
constexpr std::size_t kForInterrupt = 3;
constexpr std::string_view kErase = "\r\033[K";

// Ctrl-C leaves a clean line and ends us as it would have.
extern "C" void EraseAndEnd(int number) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kErase.data(), kErase.size());
  std::signal(number, SIG_DFL);
  std::raise(number);
}

std::size_t RoomOf(std::size_t columns) {
  return columns > kForInterrupt ? columns - kForInterrupt : 0;
}

// Empty where the window has no room for one.
std::string Bar(double share, std::size_t columns) {
  const std::size_t width = columns >= 100 ? 20 : columns >= 40 ? 10 : 0;
  if (width == 0) return "";
  const auto full =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "] ";
}

bool Runs(const std::string& phase) { return phase == "running" || phase == "stopping"; }

}  // namespace

Progress::Progress() : columns_(TerminalColumns(STDERR_FILENO)) {}

Progress::~Progress() { Erase(); }

void Progress::Say(std::string_view text) {
  if (!shown()) return;
  if (!written_) std::signal(SIGINT, EraseAndEnd);
  written_ = true;
  columns_ = TerminalColumns(STDERR_FILENO);
  std::cerr << kErase << Cut(Clean(text), RoomOf(columns_)) << std::flush;
}

void Progress::Erase() {
  if (!written_) return;
  std::signal(SIGINT, SIG_DFL);
  std::cerr << kErase << std::flush;
  written_ = false;
}

std::string ShareLine(std::string_view what, double share, std::int64_t took_ms,
                      std::size_t columns) {
  auto line = fmt::format("{}{}: {:.0f} %", Bar(share, columns), what, 100 * share);
  if (took_ms >= kNoGuessMs && share > 0 && share < 1) {
    const auto left = static_cast<double>(took_ms) * (1 - share) / share;
    line += ", about " + Ago(static_cast<std::int64_t>(left)) + " left";
  }
  return Cut(Clean(line), RoomOf(columns));
}

std::function<Result<void>(double)> ShareProgress::Next(std::string what) {
  ++done_;
  return [this, what = std::move(what)](double share) -> Result<void> {
    const auto now = WallMs();
    if (!line_.shown() || now - said_ms_ < kSayEveryMs) return {};
    said_ms_ = now;
    const auto all = (static_cast<double>(done_) + share) / static_cast<double>(pieces_);
    line_.Say(ShareLine(what, all, now - begun_ms_, line_.columns()));
    return {};
  };
}

std::int64_t TasksDone(const Json& job) {
  const auto& status = job.at("status");
  std::int64_t done = 0;
  for (const char* fate : {"succeeded", "failed", "cancelled"}) {
    done += status.value(fate, std::int64_t{0});
  }
  return done;
}

Pace PaceOf(const Json& job, const FirstLook& first, std::int64_t now_ms) {
  const auto& status = job.at("status");
  if (status.contains("tasks")) {
    Pace pace{TasksDone(job), status.value("tasks", std::int64_t{0}), -1, false};
    // By what was seen; of one that nothing was seen of yet, by all it did since it was sent.
    const bool seen = pace.done > first.done;
    const auto did = seen ? pace.done - first.done : pace.done;
    const auto took_ms = now_ms - (seen ? first.at_ms : TimeMs(job, "created_at"));
    if (did > 0 && took_ms > 0) {
      pace.left_ms =
          static_cast<std::int64_t>(static_cast<double>(took_ms) / static_cast<double>(did) *
                                    static_cast<double>(pace.all - pace.done));
    }
    return pace;
  }
  const auto limits = job.value("spec", Json::object()).value("limits", Json::object());
  const auto limit_ms = ParseDurationMs(limits.value("time", "")).value_or(0);
  if (limit_ms <= 0 || !Runs(status.value("phase", ""))) return {};
  const auto ran_ms = std::min(status.value("ran_ms", std::int64_t{0}), limit_ms);
  return {ran_ms, limit_ms, limit_ms - ran_ms, true};
}

std::string ProgressLine(const Json& job, const Pace& pace, std::string_view rest,
                         std::size_t columns) {
  const auto& status = job.at("status");
  const std::size_t room = RoomOf(columns);
  std::string before;
  if (pace.all > 0) {
    before = Bar(static_cast<double>(pace.done) / static_cast<double>(pace.all), columns);
  }
  before += "job " + job.value("id", "") + " ";
  std::string behind = ": ";
  const auto phase = status.value("phase", "");
  const bool tasks = status.contains("tasks");
  if (!tasks || phase != "running") behind += phase + (tasks ? ", " : "");
  if (tasks) behind += std::to_string(pace.done) + " of " + Count(pace.all, "task") + " done";
  if (pace.left_ms >= 0) {
    behind += (pace.at_most ? ", at most " : ", about ") + Ago(pace.left_ms) + " left";
  }
  behind += "; ";
  // A name gives way to the time left and to the beginning of the rest.
  const auto taken = before.size() + behind.size() + std::min<std::size_t>(rest.size(), 12);
  const auto name =
      Cut(Clean(job.value("name", "")), std::max(columns / 6, room > taken ? room - taken : 0));
  return Cut(Clean(before + name + behind + std::string(rest)), room);
}

void JobProgress::Look(const Json& job) {
  if (!shown()) return;
  const auto now = WallMs();
  const auto id = job.value("id", "");
  const auto& status = job.at("status");
  if (id != job_) {
    job_ = id;
    reason_.clear();
    asked_ms_ = 0;
    first_ = {now, TasksDone(job)};
  }
  const bool runs = Runs(status.value("phase", ""));
  if (!runs && now - asked_ms_ >= kAskAgainMs) {
    asked_ms_ = now;
    const auto why = session_.client().Get("jobs/" + id + "/explain");
    const auto got = why ? Json::parse(*why, nullptr, false) : Json();
    reason_ = got.is_object() ? got.value("sentence", "") : "";
  }
  std::string rest = "waited " + Ago(now - begun_ms_);
  if (!runs && !reason_.empty()) rest += "; " + reason_;
  line_.Say(ProgressLine(job, PaceOf(job, first_, now), rest, line_.columns()));
}

}  // namespace muster::cli
