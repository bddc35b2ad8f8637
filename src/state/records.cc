#include "state/records.h"

#include <algorithm>
#include <array>
#include <bit>

#include "state/records_fields.h"

namespace muster::state {

using model::StopWhy;

std::string_view Name(WorkerPhase phase) {
  constexpr std::array<std::string_view, 6> names = {"waiting", "placed",    "running",
                                                     "leaving", "succeeded", "failed"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view Name(Phase phase) {
  constexpr std::array<std::string_view, 10> names = {
      "waiting", "held",      "starting",  "running", "stopping",
      "paused",  "suspended", "succeeded", "failed",  "cancelled"};
  return names[static_cast<std::size_t>(phase)];
}

std::string JobRecord::name() const {
  if (array == 0) return spec->name;
  return spec->name + "[" + std::to_string(array_index) + "]";
}

std::size_t JobRecord::Count(WorkerPhase phase) const {
  return static_cast<std::size_t>(std::count_if(
      workers.begin(), workers.end(), [&](const auto& worker) { return worker.phase == phase; }));
}

bool JobRecord::Holds() const {
  return std::any_of(workers.begin(), workers.end(),
                     [](const auto& worker) { return worker.Holds(); });
}

std::int64_t JobRecord::GpuMs(std::int64_t now_ms) const {
  std::int64_t gpus = 0;
  for (const auto& worker : workers) gpus += worker.Holds() ? std::popcount(worker.devices) : 0;
  // A record of an earlier version says nothing of when it was counted last.
  const auto since_ms = std::max(gpus_since_ms, running_since_ms);
  return gpu_ms + gpus * std::max<std::int64_t>(0, now_ms - since_ms);
}

Phase PhaseOf(const JobRecord& job) {
  if (job.ending) {
    switch (job.ending->end) {
      case model::End::kSucceeded:
        return Phase::kSucceeded;
      case model::End::kFailed:
        return Phase::kFailed;
      case model::End::kCancelled:
        return Phase::kCancelled;
    }
  }
  const auto placed = job.Count(WorkerPhase::kPlaced);
  const auto running = job.Count(WorkerPhase::kRunning);
  const auto leaving = job.Count(WorkerPhase::kLeaving);
  if (leaving > 0 && placed + running == 0) return Phase::kStopping;
  if (job.stopping != StopWhy::kNone && placed + running + leaving > 0) return Phase::kStopping;
  if (placed > 0 && running == 0) return Phase::kStarting;
  if (running > 0) return Phase::kRunning;
  if (job.suspended) return Phase::kSuspended;
  if (job.held) return Phase::kHeld;
  return job.paused ? Phase::kPaused : Phase::kWaiting;
}

std::string EncodeJobRecord(const JobRecord& job) { return model::Pack(job); }

Result<JobRecord> DecodeJobRecord(std::string_view bytes) {
  model::Unpacker in(bytes);
  JobRecord job;
  Fields(in, job);
  if (in.bad() || job.spec == nullptr) {
    return Fail(ErrorCode::kInvalid, "a stored job is cut off or damaged");
  }
  return job;
}

}  // namespace muster::state
