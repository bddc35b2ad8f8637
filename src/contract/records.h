// Records: what the shim leaves in the spool for the daemon.
//
// A record is one file that appears whole, by rename: <launch>.start, .report, .checkpoint, .exit.
// The daemon may be away when it is written, so a record says everything and refers to nothing.
// Start and exit are facts and written once; of reports and checkpoints the latest counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::contract {

struct StartRecord {
  std::string launch;
  int pid = 0;
  std::int64_t at_ms = 0;
  // "cgroup v2", "cgroup v1", "affinity", "affinity and rlimits: <why no cgroup>",
  // "rlimits, cores not limited: <why>", "none asked"
  std::string limits;

  friend bool operator==(const StartRecord&, const StartRecord&) = default;
};

struct ExitRecord {
  std::string launch;
  int pid = 0;           // 0: there was never a process
  int exit_code = -1;    // -1: ended by a signal
  int signal = 0;        // 0: ended by itself
  bool oom = false;      // the kernel killed in it for lack of memory
  bool stopped = false;  // was told to stop
  bool killed = false;   // the shim had to send SIGKILL
  std::string failure;   // why it could not be started; empty: it was
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  std::int64_t max_rss_bytes = 0;  // of its largest process
  std::int64_t cpu_ms = 0;         // of all its processes
  std::int64_t log_bytes_dropped = 0;

  friend bool operator==(const ExitRecord&, const ExitRecord&) = default;
};

// The gang works on with so many workers, after a pause.
struct SizeRecord {
  std::int64_t at_ms = 0;  // no two of a launch are alike
  std::int64_t workers = 0;
  std::int64_t pause_ms = 0;
  std::int64_t step = -1;  // -1: not said

  friend bool operator==(const SizeRecord&, const SizeRecord&) = default;
};

// What the worker last said about itself, and when somebody last typed at it.
inline constexpr std::size_t kSizesReported = 16;
struct Report {
  std::string launch;
  std::int64_t at_ms = 0;          // when it said so; 0: it has said nothing
  std::int64_t last_input_ms = 0;  // at a terminal, its own or one beside it; 0: never
  bool ready = false;
  std::string leaving;  // the reason it gave; empty: it is not leaving
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> samples;
  std::map<std::string, double> numbers;  // loss, lr, ...; may be infinite or no number
  std::vector<SizeRecord> sizes;          // the newest kSizesReported, in the order of their times
  // The model that it kept; an empty path: none.
  std::string kept_path;
  std::string kept_hash;
  std::map<std::string, double> kept_numbers;

  friend bool operator==(const Report&, const Report&) = default;
};

struct CheckpointRecord {
  std::string launch;
  std::int64_t step = 0;
  std::string path;
  std::int64_t at_ms = 0;

  friend bool operator==(const CheckpointRecord&, const CheckpointRecord&) = default;
};

std::string Encode(const StartRecord& record);
std::string Encode(const ExitRecord& record);
std::string Encode(const Report& record);
std::string Encode(const CheckpointRecord& record);

Result<StartRecord> DecodeStart(std::string_view text);
Result<ExitRecord> DecodeExit(std::string_view text);
Result<Report> DecodeReport(std::string_view text);
Result<CheckpointRecord> DecodeCheckpoint(std::string_view text);

}  // namespace muster::contract
