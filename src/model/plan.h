// Plan: what one scheduling cycle decided, and why.
//
// An action names its job, worker and places by the handles of the Cluster that made it; names and
// sentences are rendered from these facts later, never stored. Workers that were only promised room
// that is still being left are no actions: the next cycle decides anew, with the promise as a hint.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace muster::model {

enum class ActionKind : std::uint8_t {
  kStart,   // a job begins: the workers of its minimum
  kGrow,    // a worker above the minimum begins
  kShrink,  // a worker above the minimum is taken back, the job goes on
  kMove,    // a worker leaves its place and has another one in sight
  kPause,   // the job is checkpointed and stopped, and comes back by itself
};

// By which right an action was taken.
enum class Rule : std::uint8_t {
  kFreeCapacity,  // there was room
  kShrink,        // elastic workers above what their queue is entitled to
  kConsolidate,   // moved so that somebody fits
  kReclaimShare,  // its queue was above its fair share
  kReclaimQuota,  // its queue was above its quota, the claimer within its own
  kPreempt,       // a job of higher priority in the same queue
  kStale,         // below its minimum for longer than its grace
  kDrain,         // its node is being drained
  kResize,        // elastic jobs of its queue got the sizes that pay best
  kReservation,   // its room is reserved for others from now on
};

struct Action {
  ActionKind kind = ActionKind::kStart;
  Rule rule = Rule::kFreeCapacity;
  std::uint32_t job = 0;
  std::uint32_t worker = 0;
  std::uint32_t node = 0;         // where it starts, or what it leaves
  std::uint64_t devices = 0;      // GPUs of that node
  std::uint32_t to_node = 0;      // kMove: where it is to go
  std::uint32_t cause = 0;        // for whom it leaves; its own job where there is nobody
  std::int64_t lost_gpu_ms = -1;  // work that is lost by it; -1: not known
};

// The gate at which a waiting job was stopped.
enum class Gate : std::uint8_t {
  kNotConsidered,  // nothing has been decided about it yet
  kOnHold,
  kMinimum,     // fewer workers can run than its minimum
  kLimit,       // a queue limit on its path
  kFixedQuota,  // not preemptible, and a quota on its path is used up by such work
  kTopology,    // names a topology level that does not exist
  kNeverFits,   // not even an empty cluster has room
  kCapacity,    // no room now, and no victims that may be taken
  kPromised,    // room is being left for it
  kShare,       // no room now, and its queue is at its fair share: it may not reclaim
  kDelay,       // too young to cause an eviction
  kNotProven,   // the search for victims ran out of budget
  kReserved,    // there is room, but it is kept for another
};
inline constexpr std::size_t kGates = 13;

std::string_view Name(ActionKind kind);
std::string_view Name(Rule rule);
std::string_view Name(Gate gate);

struct Promise {
  std::uint32_t job = 0;
  std::uint32_t worker = 0;
  std::uint32_t node = 0;
};

// Room that is kept for a gang that found none, from a time on.
struct Reserved {
  struct Room {
    std::uint32_t node = 0;
    std::uint64_t devices = 0;  // GPUs that are free now, and what is kept beside them
    std::int64_t cpu_milli = 0;
    std::int64_t memory_bytes = 0;
  };
  std::uint32_t job = 0;
  std::int64_t at_ms = 0;
  std::vector<Room> rooms;
};

struct Plan {
  std::vector<Action> actions;
  std::vector<Promise> promises;
  std::vector<Reserved> reserved;  // for gangs that could run on different GPU types only
  bool complete = true;            // false: the budget ran out before everybody was looked at
  std::int64_t steps = 0;          // places and victims looked at

  bool empty() const { return actions.empty(); }
};

}  // namespace muster::model
