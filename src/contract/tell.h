// Tell: what the daemon tells a running shim, one datagram each, to <run_dir>/ctl.
//
// Nothing is answered: what a Tell brings about is seen in the records. A Tell may be lost with
// the shim, never alone, and may be sent again: stopping twice is stopping once, with the shorter
// grace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::contract {

inline constexpr std::size_t kLargestTell = std::size_t{128}
                                            << 10;  // fits a socket's default buffer

struct Tell {
  enum class Kind { kStop, kKill, kSignal, kMessage, kShow };

  Kind kind = Kind::kStop;
  std::int64_t grace_ms = -1;  // kStop; -1: the order's
  std::string signal;          // kSignal: "SIGUSR2", to the worker's process group
  std::string message;         // kMessage: one JSON object, handed to the worker as one line
  std::string text{};          // kShow: a line for whoever sits at the worker, and for its log
  bool leave = false;          // kStop: the others go on without it

  friend bool operator==(const Tell&, const Tell&) = default;
};

std::string Encode(const Tell& tell);
Result<Tell> DecodeTell(std::string_view text);

// kNotFound: no shim listens there (any more). Does not block: kUnavailable when its queue is full.
Result<void> SendTell(const std::string& run_dir, const Tell& tell);

}  // namespace muster::contract
