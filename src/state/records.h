// Records: what is known of each job, worker, node, user, token and reservation, as folded from the
// journal.
//
// A record holds facts only; the phase that people see is worked out from them (PhaseOf), so the
// two cannot disagree. The cause of a preemption is a list of its own that no exit overwrites.
// Specs are shared and never change: the tasks of an array have one between them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/event.h"

namespace muster::state {

using model::JobNumber;

enum class WorkerPhase : std::uint8_t {
  kWaiting,
  kPlaced,  // was given a place, the pool has not yet said that it runs
  kRunning,
  kLeaving,  // was told to stop and holds its place until it has gone
  kSucceeded,
  kFailed,
};
std::string_view Name(WorkerPhase phase);

struct WorkerRecord {
  WorkerPhase phase = WorkerPhase::kWaiting;
  model::StopWhy why = model::StopWhy::kNone;  // it leaves, or left in this attempt
  std::uint32_t launch = 0;                    // the latest start; 0: never started
  std::string node;
  std::uint64_t devices = 0;
  std::int64_t placed_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t leaving_ms = 0;
  std::int32_t pid = 0;
  std::string limits;
  std::optional<model::ExitFacts> exit;  // of the latest start

  bool Holds() const {
    return phase == WorkerPhase::kPlaced || phase == WorkerPhase::kRunning ||
           phase == WorkerPhase::kLeaving;
  }
};

struct Preemption {
  std::int64_t at_ms = 0;
  model::StopWhy why = model::StopWhy::kPaused;
  model::Rule rule = model::Rule::kFreeCapacity;
  JobNumber cause = 0;
  std::int64_t lost_gpu_ms = -1;
  std::uint32_t workers = 0;
};

// The number of workers of an elastic job has changed; changes of a second for one reason are one.
struct SizeChange {
  std::int64_t at_ms = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  model::StopWhy why = model::StopWhy::kNone;  // why they left; none: they came, or were lost
  model::Rule rule = model::Rule::kFreeCapacity;
  JobNumber cause = 0;         // for whom; 0: nobody
  std::int64_t pause_ms = -1;  // in which nobody worked; -1: the workers have told of none
};
inline constexpr std::size_t kSizesKept = 20;

enum class Phase : std::uint8_t {
  kWaiting,
  kHeld,      // by a person, before it started
  kStarting,  // has places, not all processes run yet
  kRunning,
  kStopping,
  kPaused,     // by the scheduler, comes back by itself
  kSuspended,  // by a person
  kSucceeded,
  kFailed,
  kCancelled,
};
inline constexpr std::array kPhases = {
    Phase::kWaiting, Phase::kHeld,      Phase::kStarting,  Phase::kRunning, Phase::kStopping,
    Phase::kPaused,  Phase::kSuspended, Phase::kSucceeded, Phase::kFailed,  Phase::kCancelled};
std::string_view Name(Phase phase);
inline bool Ended(Phase phase) { return phase >= Phase::kSucceeded; }

struct Ending {
  model::End end = model::End::kSucceeded;
  model::StopWhy why = model::StopWhy::kNone;
  std::int64_t at_ms = 0;
  std::uint32_t worker = 0;
  model::ExitFacts exit;
};

// What a job has told of its speed: for each place, pass and GPU type what it told last.
struct SpeedRecord {
  std::vector<model::Speed> told;  // in the order in which each was first told
  model::Speed latest;             // of all: its noise and its limits are those of now
};
inline constexpr std::size_t kSpeedsKept = 64;  // the oldest of them goes

struct JobRecord {
  JobNumber id = 0;
  std::shared_ptr<const model::Job> spec;
  std::shared_ptr<const model::Job> next_spec;  // takes its place when the job has stopped; or none
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t submitted_ms = 0;
  std::uint64_t revision = 0;  // of the last thing that happened to it
  JobNumber array = 0;         // the array it is a task of
  std::int64_t array_index = 0;
  std::vector<model::Follows> follows;  // jobs that have not ended yet
  bool held = false;
  bool suspended = false;
  bool paused = false;                              // by the scheduler, since it last held a place
  model::StopWhy stopping = model::StopWhy::kNone;  // the job as a whole is told to stop
  std::string stopped_by;
  std::uint32_t restarts = 0;      // starts after the first one
  std::uint32_t failures = 0;      // that count against its retries
  std::int64_t not_before_ms = 0;  // back-off
  std::int64_t started_ms = 0;     // first; 0: never
  std::int64_t running_since_ms = 0;
  std::int64_t ran_ms = 0;       // before that
  std::int64_t expected_ms = 0;  // in all, as jobs like it have run; 0: nothing is known
  std::int64_t checkpoint_ms = -1;
  std::int64_t checkpoint_step = -1;
  std::uint32_t generation = 0;         // grows when the gang is formed anew
  bool forming = false;                 // some have a new place, none of them runs yet
  std::vector<WorkerRecord> workers;    // empty until the first one is placed
  std::vector<Preemption> preemptions;  // the latest kPreemptionsKept
  std::uint32_t preempted = 0;
  std::optional<Ending> ending;
  std::int64_t idle_until_ms = 0;            // released then unless it is used; 0: not idle
  std::shared_ptr<const SpeedRecord> speed;  // where it told
  std::vector<SizeChange> sizes;             // the latest kSizesKept, of an elastic job
  std::int64_t resized_ms = 0;               // of the latest change that its workers told of
  std::int64_t pause_ms = -1;  // that a change costs it, the latest ones most; -1: none was told of
  std::int64_t gpu_ms = 0;     // GPU time that it held until gpus_since_ms
  std::int64_t gpus_since_ms = 0;
  std::uint32_t expected_from = 0;  // in what those were like it (engine/runtime_history.h)

  std::string name() const;  // "sweep[3]" for a task
  std::size_t Count(WorkerPhase phase) const;
  bool Holds() const;
  std::int64_t GpuMs(std::int64_t now_ms) const;  // that it held; a share counts as a whole GPU
};

inline constexpr std::size_t kPreemptionsKept = 16;

// An array as a whole; its tasks are jobs of their own, numbered from id + 1.
struct ArrayRecord {
  JobNumber id = 0;
  std::shared_ptr<const model::Job> spec;
  std::string user;
  std::int64_t submitted_ms = 0;
  std::int64_t tasks = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
  std::uint64_t revision = 0;  // of the last thing that happened to one of its tasks

  bool Ended() const { return succeeded + failed + cancelled == tasks; }
};

struct NodeRecord {
  model::Node node;
  bool up = true;
  std::string why;             // it is down
  std::int64_t joined_ms = 0;  // for the first time
  std::uint64_t revision = 0;  // of the last thing that was found or said about it
};

// Beside the queue itself, which is as its file says.
struct QueueRecord {
  std::int64_t created_ms = 0;
  std::uint64_t revision = 0;  // of its last change
};

struct UserRecord {
  std::string name;
  std::string role;  // "viewer", "user", "admin"
  std::vector<std::string> groups;
  std::int64_t set_ms = 0;
  std::int64_t created_ms = 0;
  std::uint64_t revision = 0;  // of its last change
};

struct TokenRecord {
  std::string id;
  std::string name;
  std::string user;
  std::string hash;  // SHA-256 of the secret, in hex
  std::int64_t created_ms = 0;
  std::int64_t expires_ms = 0;  // 0: never
  std::string role;             // at most this one; empty: all that the user may
  std::string by;
  std::uint64_t revision = 0;  // of its making
};

// A policy that was applied; the last of them is in force.
struct PolicyRecord {
  model::PolicyApplied said;
  std::int64_t applied_ms = 0;
  std::uint64_t revision = 0;  // of its making
};
inline constexpr std::size_t kPoliciesKept = 16;
struct ReservationRecord {
  model::Reservation reservation;
  std::string by;  // who set it last
  std::int64_t created_ms = 0;
  std::uint64_t revision = 0;  // of its last change
};

Phase PhaseOf(const JobRecord& job);

std::string EncodeJobRecord(const JobRecord& job);
Result<JobRecord> DecodeJobRecord(std::string_view bytes);

}  // namespace muster::state
