// Story: one day of researchers who share a machine, played on the engine with simulated time.
//
// The same arrivals are played twice: as one pool (a quota each, idle GPUs lent out) and with fixed
// quotas (a limit each, nothing lent). Jobs are amounts of work, so they end; elastic jobs progress
// with their size; a paused job goes on from its last checkpoint. The engine runs whenever
// something arrives, ends or has left; nothing else moves time. Deterministic: no clock, no chance.
// Assumes that speed grows linearly with workers and that each worker has one GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/plan.h"

namespace muster::sim {

inline constexpr std::size_t kNobody = ~std::size_t{0};

enum class Sharing : std::uint8_t { kPool, kFixed };

struct Researcher {
  std::string name;
  int quota = 0;        // GPUs guaranteed in the pool
  int fixed_quota = 0;  // GPUs of its own where nothing is shared
};

struct ScriptJob {
  std::string name;
  std::size_t owner = 0;  // index of a researcher
  std::int64_t arrives_ms = 0;
  int min_workers = 1;
  int max_workers = 1;
  std::int64_t work_gpu_ms = 0;
  std::int64_t priority = 50;
  bool interactive = false;  // a `build` job: never preempted inside its quota
};

// What everything is computed from.
struct Script {
  int gpus = 0;
  std::int64_t day_ms = 0;
  std::int64_t checkpoint_every_ms = 0;
  std::int64_t shrink_ms = 0;   // from the order to give a GPU back to the GPU being free
  std::int64_t pause_ms = 0;    // the same, where a whole job stops
  std::int64_t restart_ms = 0;  // a resumed job loads its checkpoint before it makes progress
  std::vector<Researcher> researchers;
  std::vector<ScriptJob> jobs;  // by arrival
};

enum class Turn : std::uint8_t { kArrive, kStart, kGrow, kShrink, kPause, kResume, kEnd };

// Something that happened to a job, and why.
struct Happening {
  std::int64_t at_ms = 0;
  Turn turn = Turn::kArrive;
  std::size_t job = 0;
  int from = 0;  // workers before and after
  int to = 0;
  model::Rule rule = model::Rule::kFreeCapacity;
  std::vector<std::size_t> causes = {};  // the jobs for which it happened
  int held = 0;                          // GPUs of its researcher before that
  std::int64_t share_milli = 0;          // and what its fair share was, in thousandths
  std::int64_t waited_ms = 0;            // kStart and kResume: how long it had to wait for it
  std::int64_t lost_gpu_ms = 0;          // kPause: work since the last checkpoint
};

struct JobRecord {
  bool entitled = false;  // with its minimum its researcher stayed within the quota at arrival
  std::int64_t started_ms = -1;
  std::int64_t ended_ms = -1;
  std::int64_t waited_ms = 0;  // with no GPU at all, before its start and while paused
  std::int64_t lost_gpu_ms = 0;
  int pauses = 0;
  int resizes = 0;
};

// One worker's stay on one GPU.
struct Stay {
  int gpu = 0;
  std::size_t job = 0;
  std::uint32_t worker = 0;
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

struct Measures {
  std::int64_t held_gpu_ms = 0;          // inside the day
  std::int64_t useful_gpu_ms = 0;        // progress of the day that was kept
  std::int64_t idle_wanted_gpu_ms = 0;   // idle although a worker waited, inside the day
  std::int64_t mean_wait_ms = 0;         // over all jobs
  std::int64_t mean_completion_ms = 0;   // from arrival to end
  std::int64_t longest_entitled_ms = 0;  // until an entitled job started
  std::int64_t all_done_ms = 0;
  std::int64_t lost_gpu_ms = 0;
  int ended_in_day = 0;
  int pauses = 0;
};

struct StoryRun {
  Sharing sharing = Sharing::kPool;
  std::vector<Happening> happenings;
  std::vector<JobRecord> records;  // by job of the script
  std::vector<Stay> stays;
  Measures measures;
};

// Who is on a GPU at some moment.
struct Seat {
  std::size_t job = kNobody;
  bool borrowed = false;  // beyond the quota of its researcher
};

// Eight GPUs, three researchers, two GPUs guaranteed to each of them.
Script ClassicDay();

Result<StoryRun> PlayStory(const Script& script, Sharing sharing);

// By GPU. Of a researcher's workers the first of the oldest job are the guaranteed ones.
std::vector<Seat> SeatsAt(const Script& script, const StoryRun& run, std::int64_t at_ms);

// Jobs that have arrived and hold nothing at that moment.
int WaitingAt(const Script& script, const StoryRun& run, std::int64_t at_ms);

int QuotaOf(const Researcher& researcher, Sharing sharing);

}  // namespace muster::sim
