// TraceJob: one rigid job of a trace: so many GPUs for so long.
//
// What all public formats have in common. Times are milliseconds and count from the first
// submission of the trace; `duration_ms` is the time that the job needs on the GPUs it asks for.
// What a format does not say is left empty, and its jobs share one queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::sim {

struct TraceJob {
  std::string name;
  std::string user;
  std::string queue = "default";
  std::int64_t submit_ms = 0;
  std::int64_t gpus = 1;
  std::int64_t duration_ms = 0;
  std::optional<std::int64_t> deadline_ms = {};
  std::string model = {};
  friend bool operator==(const TraceJob&, const TraceJob&) = default;
};

struct JobTrace {
  std::string format;          // as in docs/lab.md
  std::vector<TraceJob> jobs;  // by submission; of one moment in the order of the file
  std::int64_t left_out = 0;   // rows that ask for no GPU, or never ended
  std::int64_t gpus = 0;       // of the cluster it is from; 0: not known
};

}  // namespace muster::sim
