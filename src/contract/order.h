// LaunchOrder: everything the shim must know to run one worker.
//
// The daemon writes it once and hands it over before the worker exists; the shim never asks back.
// Names are already numbers here (users, cores), because the shim has no name service. Decoding
// keeps the invariant that an order can be carried out as far as its values tell: a launch name
// that is safe as a file name, absolute folders, a command, known signals, nothing negative.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::contract {

// Raised when an older reader would misunderstand; new optional fields do not raise it.
inline constexpr int kContractVersion = 1;

// In the worker's run_dir; its path is what MUSTER_SOCKET says.
inline constexpr const char* kWorkerSocket = "worker.sock";

struct User {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;

  friend bool operator==(const User&, const User&) = default;
};

struct LaunchOrder {
  std::string launch;     // unique for ever: job, worker, attempt ("17.0.2")
  std::string run_dir;    // the worker's own folder, exists: sockets, lock, the mark `begun`
  std::string spool_dir;  // where records go
  std::string log_dir;    // <rank>.out, <rank>.err, made with the first byte
  int rank = 0;
  std::int64_t log_bytes = std::int64_t{64} << 20;  // of one file, before the next is begun
  int log_files = 4;                                // of one stream, the one being written included
  std::vector<std::string> command;
  std::string workdir;                     // empty: /
  std::map<std::string, std::string> env;  // the whole environment, but for MUSTER_SOCKET
  std::optional<User> user;                // none: as the shim
  std::int64_t memory_bytes = 0;           // 0: no limit
  std::int64_t cpu_milli = 0;              // 0: no limit
  bool cpu_is_weight = false;              // virtual cores: a share, not a cap
  std::vector<int> cores;                  // empty: any
  std::int64_t max_processes = 0;          // 0: no limit
  std::string cgroup_root;                 // cgroup below the host's root; empty: use none
  std::string checkpoint_signal;           // "SIGUSR1"; empty: none
  std::int64_t grace_ms = 30'000;          // from being asked to stop until SIGTERM
  std::int64_t term_grace_ms = 5'000;      // from SIGTERM until SIGKILL
  std::vector<std::string> cleanup;        // run when nothing of the worker lives; empty: none
  bool terminal = false;                   // its three streams are one terminal, logged as .out
  int rows = 24;                           // of the terminal, until somebody attaches
  int cols = 80;
  // Put before the command of an exec, to get into the worker's container; empty: there is none.
  std::vector<std::string> exec_prefix;
  std::vector<std::string> exec_terminal_prefix;  // the same for one with a terminal

  friend bool operator==(const LaunchOrder&, const LaunchOrder&) = default;
};

// Bytes that are no UTF-8 become U+FFFD: JSON cannot carry them.
std::string Encode(const LaunchOrder& order);
Result<LaunchOrder> DecodeOrder(std::string_view text);

// Letters, digits, `.`, `_`, `-`; at most 200; no leading dot.
bool IsLaunchName(std::string_view name);

}  // namespace muster::contract
