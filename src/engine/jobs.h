// JobState: a job as the engine sees it, with the state of its groups and workers.
//
// The groups of a job form a tree; groups[0] is the root. A leaf is satisfied with `minimum` active
// workers, an inner group with `minimum` satisfied children; a job whose root is satisfied runs.
// Workers are stored leaf by leaf, in the order in which they are given places.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/goodput.h"
#include "engine/ids.h"
#include "engine/vec.h"
#include "model/job.h"
#include "model/plan.h"

namespace muster::engine {

enum class WorkerState : std::uint8_t {
  kPending,
  kRunning,    // holds its place (or was promised one, see Place::promised)
  kLeaving,    // was told to go, still holds its devices
  kStuck,      // holds its place whatever happens: nobody's victim
  kFailed,     // holds nothing
  kSucceeded,  // holds nothing, counts towards the minimum
};

// Where a worker is; the part of it that a trial changes and an undo restores.
struct Place {
  WorkerState state = WorkerState::kPending;
  bool promised = false;  // placed on room that is still being left; undone at the end of the cycle
  bool fresh = false;     // placed in this cycle
  BankId bank = kNone;
  std::uint64_t devices = 0;
  std::int64_t charge_milli = 0;
  BankId left_bank = kNone;  // what it was told to leave in this cycle and still occupies
  std::uint64_t left_devices = 0;

  bool Holds() const { return state == WorkerState::kRunning || state == WorkerState::kStuck; }
  friend bool operator==(const Place&, const Place&) = default;
};

struct Worker {
  Place place;
  ShapeId shape = kNone;
  std::uint32_t group = 0;
  std::int32_t priority = 0;
  BankId hint = kNone;  // where an earlier cycle promised it a place
  std::int64_t started_ms = 0;
  std::uint32_t role = 0;  // index in the job's spec
};

struct Wish {
  LevelId require = kNone;
  LevelId prefer = kNone;
  bool missing = false;  // names a topology or level that does not exist
};

struct GroupState {
  std::uint32_t parent = kNone;
  std::uint32_t minimum = 0;
  bool leaf = true;
  Wish wish;
  std::vector<std::uint32_t> children;
  std::uint32_t first_worker = 0;
  std::uint32_t worker_count = 0;
  std::uint32_t active = 0;     // leaf: workers that hold a place or succeeded
  std::uint32_t satisfied = 0;  // inner: satisfied children

  bool Satisfied() const { return (leaf ? active : satisfied) >= minimum; }
};

struct WorkerRef {
  JobId job = kNone;
  std::uint32_t index = 0;
  friend bool operator==(const WorkerRef&, const WorkerRef&) = default;
  friend auto operator<=>(const WorkerRef&, const WorkerRef&) = default;
};

// What keeps room from a job that it could have.
struct Kept {
  JobId job = kNone;         // the gang that is to have it,
  std::string booking = {};  // or the admin's reservation, by its name
  std::int64_t from_ms = 0;  // when it is needed
  std::int64_t to_ms = 0;    // the end of an admin's reservation
};

struct JobState {
  std::string name;
  std::uint64_t sequence = 0;  // order of arrival, the last tie-break
  std::uint64_t added_in = 0;  // cycles that had been run by then
  QueueId queue = kNone;
  std::int64_t priority = 0;
  bool present = true;  // false: the slot is free for another job
  bool preemptible = true;
  bool on_hold = false;  // asks for nothing
  std::int64_t submitted_ms = 0;
  std::int64_t preemption_delay_ms = 0;
  std::optional<std::int64_t> stale_grace_ms;
  std::int64_t stale_since_ms = -1;      // below its minimum since; -1: it is not
  std::int64_t checkpoint_ms = -1;       // when its last checkpoint was taken; -1: not known
  std::int64_t checkpoint_every_ms = 0;  // declared; half of it is expected to be lost
  std::int64_t restart_cost_ms = 0;
  std::int64_t resize_ms = -1;  // a change of its size, as its workers measured; -1: not known
  std::vector<GroupState> groups;
  std::vector<Worker> workers;
  std::uint32_t active = 0;  // workers that hold a place
  std::uint32_t pending = 0;
  std::uint32_t leaving = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t running_position = kNone;          // in the queue's list of running jobs
  std::uint32_t broken_position = kNone;           // in the list of jobs below their minimum
  model::Gate gate = model::Gate::kNotConsidered;  // at which the last cycle stopped it
  ClassId fresh_class = kNone;                     // of the job with nothing running
  std::unique_ptr<JobSpeed> speed;                 // where it was reported
  std::uint32_t target = kNone;                    // workers it is to have; kNone: all it can get
  std::int64_t served_gpu_ms = 0;                  // GPU time that it held, until
  std::int64_t served_until_ms = 0;                // sizes were given out, or its record was read
  std::int64_t expected_ms = -1;                   // from its start to its end; -1: not known
  Kept kept;                                       // gate kReserved: by what

  bool Satisfied() const { return groups[0].Satisfied(); }
  // Has a worker that waits and that it is to have.
  bool WantsMore() const { return pending > 0 && (!Satisfied() || active < target); }
  // Active workers beyond the minimum of their leaf.
  std::uint32_t Surplus() const;
};

}  // namespace muster::engine
