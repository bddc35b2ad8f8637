// Reports: what the worker says of itself, and that somebody types to it, on the way to the spool.
//
// A worker may report and checkpoint at every step and a person types ten keys a second: the latest
// counts, and is written at most once a second, or once in five where only keys are new. Nothing is
// due while nothing is new, so that an idle shim sleeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "contract/lines.h"
#include "contract/records.h"
#include "shim/spool.h"

namespace muster::shim {

class Reports {
 public:
  // Both must outlive this.
  Reports(Spool& spool, Clock& clock, const std::string& launch);

  void Hear(const contract::Said& said);
  void Typed();

  // Writes what is due, and what the spool could not take before. Times are monotonic.
  void Keep(std::int64_t now_ms);
  std::optional<std::int64_t> due_ms() const;

  void Conclude();  // nothing is new any more; the spool has it

 private:
  void WriteCheckpoint(std::int64_t now_ms);  // unless one was just written

  Spool& spool_;
  Clock& clock_;
  contract::Report report_;
  std::optional<contract::CheckpointRecord> checkpoint_{};  // not written yet
  std::int64_t checkpoint_due_ms_ = 0;
  bool said_ = false;
  bool typed_ = false;
  std::int64_t due_ms_ = 0;
  std::int64_t typed_due_ms_ = 0;
};

}  // namespace muster::shim
