// Door: how the daemon, for somebody at a screen, gets at a running worker: <run_dir>/door.
//
// Whoever connects sends one JSON line that says what is wanted; afterwards both directions carry
// frames. Only the daemon's own user may connect: who may attach to which job is decided before.
// Closing the connection is leaving.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "contract/frames.h"

namespace muster::contract {

inline constexpr const char* kDoor = "door";
inline constexpr std::size_t kLongestRequest = std::size_t{64} << 10;  // with its newline

// See what the worker prints, and type where it has a terminal.
struct Attach {
  Window window;
  friend bool operator==(const Attach&, const Attach&) = default;
};

// Run another program beside the worker, with its user, folder, environment and limits.
struct Exec {
  std::vector<std::string> command;
  bool terminal = false;
  Window window;
  std::map<std::string, std::string> env;  // over the worker's own
  friend bool operator==(const Exec&, const Exec&) = default;
};

using DoorRequest = std::variant<Attach, Exec>;

std::string Encode(const DoorRequest& request);  // with the newline at the end
Result<DoorRequest> DecodeDoorRequest(std::string_view line);

// A connected stream socket, close-on-exec and non-blocking, which the caller closes. kNotFound: no
// shim listens there (any more); kUnavailable: it has too many at its door.
Result<int> ConnectDoor(const std::string& run_dir);

}  // namespace muster::contract
