// Stopping: what to do when, to end a worker that was told to stop.
//
// A worker that can be asked (it has a checkpoint signal, or speaks the contract) is asked, then
// gets SIGTERM, then SIGKILL; another gets SIGTERM at once and keeps the longer grace for it. Told
// again, the earlier end counts. Only numbers: the caller has the clock and the processes.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::shim {

class Stopping {
 public:
  enum class Act : std::uint8_t { kNothing, kAsk, kTerminate, kKill };

  explicit Stopping(std::int64_t term_grace_ms);

  Act Stop(std::int64_t now_ms, std::int64_t grace_ms, bool can_be_asked);
  Act Kill(std::int64_t now_ms);

  // What has become due; after a kill it is due again and again, for what was forked meanwhile.
  Act Due(std::int64_t now_ms);
  std::optional<std::int64_t> due_ms() const;

  bool told() const { return phase_ != Phase::kNone; }
  bool killed() const { return phase_ == Phase::kKilling; }

 private:
  enum class Phase : std::uint8_t { kNone, kAsked, kTerminating, kKilling };

  std::int64_t term_grace_ms_;
  std::int64_t due_ms_ = 0;
  Phase phase_ = Phase::kNone;
};

}  // namespace muster::shim
