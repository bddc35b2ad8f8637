#include "cli/progress.h"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kAskAgainMs = 1000;
constexpr std::string_view kErase = "\r\033[K";

// Ctrl-C leaves a clean line and ends us as it would have.
extern "C" void EraseAndEnd(int number) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kErase.data(), kErase.size());
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

Progress::Progress() : columns_(TerminalColumns(STDERR_FILENO)) {}

Progress::~Progress() { Erase(); }

void Progress::Say(std::string_view text) {
  if (!shown()) return;
  if (!written_) std::signal(SIGINT, EraseAndEnd);
  written_ = true;
  columns_ = TerminalColumns(STDERR_FILENO);
  // The terminal writes ^C behind it, which must not begin a line of its own.
  std::cerr << kErase << Cut(Clean(text), columns_ > 3 ? columns_ - 3 : 0) << std::flush;
}

void Progress::Erase() {
  if (!written_) return;
  std::signal(SIGINT, SIG_DFL);
  std::cerr << kErase << std::flush;
  written_ = false;
}

void JobProgress::Look(const nlohmann::json& job) {
  if (!shown()) return;
  const auto now = WallMs();
  const auto id = job.value("id", "");
  const auto& status = job.at("status");
  const auto phase = status.value("phase", "");
  if (id != job_) {
    job_ = id;
    reason_.clear();
    asked_ms_ = 0;
  }
  const bool runs = phase == "running" || phase == "stopping";
  if (!runs && now - asked_ms_ >= kAskAgainMs) {
    asked_ms_ = now;
    const auto why = session_.client().Get("jobs/" + id + "/explain");
    const auto got = why ? nlohmann::json::parse(*why, nullptr, false) : nlohmann::json();
    reason_ = got.is_object() ? got.value("sentence", "") : "";
  }
  std::string text = "job " + id + " " + job.value("name", "") + ": " + phase;
  if (status.contains("tasks")) {
    const int ended =
        status.value("succeeded", 0) + status.value("failed", 0) + status.value("cancelled", 0);
    text +=
        ", " + std::to_string(ended) + " of " + Count(status.value("tasks", 0), "task") + " done";
  }
  text += "; waited " + Ago(now - begun_ms_);
  if (!runs && !reason_.empty()) text += "; " + reason_;
  line_.Say(text);
}

}  // namespace muster::cli
