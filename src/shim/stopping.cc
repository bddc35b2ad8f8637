#include "shim/stopping.h"

#include <algorithm>

namespace muster::shim {
namespace {

constexpr std::int64_t kLongestGraceMs = 366LL * 86'400'000;
constexpr std::int64_t kKillAgainMs = 100;

}  // namespace

Stopping::Stopping(std::int64_t term_grace_ms)
    : term_grace_ms_(std::min(term_grace_ms, kLongestGraceMs)) {}

Stopping::Act Stopping::Stop(std::int64_t now_ms, std::int64_t grace_ms, bool can_be_asked) {
  const auto end_ms = now_ms + std::min(grace_ms, kLongestGraceMs);
  if (phase_ != Phase::kNone) {
    due_ms_ = std::min(due_ms_, end_ms);
    return Act::kNothing;
  }
  due_ms_ = end_ms;
  phase_ = can_be_asked ? Phase::kAsked : Phase::kTerminating;
  return can_be_asked ? Act::kAsk : Act::kTerminate;
}

Stopping::Act Stopping::Kill(std::int64_t now_ms) {
  phase_ = Phase::kKilling;
  due_ms_ = now_ms + kKillAgainMs;
  return Act::kKill;
}

Stopping::Act Stopping::Due(std::int64_t now_ms) {
  if (phase_ == Phase::kNone || now_ms < due_ms_) return Act::kNothing;
  if (phase_ != Phase::kAsked) return Kill(now_ms);
  phase_ = Phase::kTerminating;
  due_ms_ = now_ms + term_grace_ms_;
  return Act::kTerminate;
}

std::optional<std::int64_t> Stopping::due_ms() const {
  if (phase_ == Phase::kNone) return std::nullopt;
  return due_ms_;
}

}  // namespace muster::shim
