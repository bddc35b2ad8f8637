// Explain: why a job waits, as facts.
//
// A cycle leaves with each job the gate that stopped it; the rest follows from the state that the
// cycle left, by the same tests that the cycle used: what each filter rejects, the nearest fit, who
// holds what it needs and by which right, and the smallest changes that would start it now. Text is
// rendered from the facts, never the other way round. Costs one look at every bank of GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/cluster.h"
#include "engine/explain_ever.h"
#include "model/plan.h"

namespace muster::engine {

// By which right somebody holds GPUs that the job could use.
enum class Right : std::uint8_t {
  kFixed,   // not preemptible
  kQuota,   // its queue is within its quota
  kShare,   // its queue is above its quota, but not above its fair share
  kBeyond,  // its queue is above its fair share
};

struct Holder {
  QueueId queue = kNone;
  Right right = Right::kQuota;
  std::int64_t gpu_milli = 0;
};

struct Change {
  enum class Kind : std::uint8_t {
    kFewerWorkers,  // `amount` workers instead of its minimum
    kOtherType,     // GPU type `name`
    kOtherQueue,    // queue `name`, which may have it
    kRaiseLimit,    // of queue `name` by `amount` of resource `resource`
    kRaiseQuota,    // likewise
    kFreeGpus,      // `amount` more GPUs on node `name`
    kUncordon,      // node `name`, or the `amount` nodes of that list
  };
  Kind kind = Kind::kFewerWorkers;
  std::int64_t amount = 0;
  std::string name;
  std::string resource;
};

struct NearestFit {
  NodeId node = kNone;
  Filter filter = Filter::kFits;  // what is in the way there
  std::int64_t gpus_missing = 0;  // where it is GPUs
};

struct Explanation {
  JobId job = kNone;
  model::Gate gate = model::Gate::kNotConsidered;
  std::int64_t workers = 0;                    // that would start together
  std::int64_t fit_now = 0;                    // of them, by room alone (in the best domain)
  std::int64_t fit_empty = 0;                  // if every preemptible worker left
  std::int64_t fit_in_service = 0;             // if nothing ran on the nodes that take workers
  std::int64_t fit_ever = 0;                   // if nothing ran here at all, on any node
  std::array<std::int64_t, kFilters> nodes{};  // by the filter that rejects them; kFits: none does
  NearestFit nearest;
  std::optional<Shortage> shortage;    // where it can never run
  std::vector<NodeId> out_of_service;  // those it would need: down, cordoned or draining
  QueueId stopped_by = kNone;          // kLimit, kFixedQuota, kShare: the queue,
  std::size_t resource = 0;            // the resource,
  std::int64_t bound = 0;              // its bound, what is held of it and what the job adds
  std::int64_t held = 0;
  std::int64_t asked = 0;
  bool beyond = false;     // kLimit, kFixedQuota: it alone is more than that
  Kept kept;               // kReserved: by what
  std::int64_t quota = 0;  // of the job's own queue, in GPUs
  std::int64_t queue_held = 0;
  std::int64_t share = 0;
  std::int64_t jobs_ahead = 0;  // in its queue
  std::vector<Holder> holders;  // largest first
  std::vector<Change> changes;  // smallest first
};

// Of a job that runs: why it has no more workers.
Explanation Explain(Cluster& cluster, JobId job, std::int64_t now_ms);
// The gate alone, with what stopped it there. Looks at the job and its queues, at no node, so that
// a job that can never fit is said to have no room.
Explanation ExplainGate(Cluster& cluster, JobId job, std::int64_t now_ms);
std::string_view Name(Filter filter);
std::string_view Name(Right right);
std::string Sentence(const Cluster& cluster, const Explanation& why);  // why it waits, in one
std::string Brief(const Cluster& cluster, const Explanation& why);     // the gate in a few words
std::string Describe(const Change& change);                            // "ask for 2 workers"
std::string Render(const Cluster& cluster, const Explanation& why);

}  // namespace muster::engine
