// Policy: every rule of the engine that an admin may set, with its default.
//
// The engine reads nothing else: no environment, no hidden default. The neutral scenario corpus
// runs with CorpusPolicy(), which turns off what the corpus does not know (lost work, decay).
#pragma once

#include <cstdint>

namespace muster::engine {

enum class GangPacking : std::uint8_t {
  kFewestNodes,  // a gang goes to as few nodes as it can
  kFullestNode,  // each worker for itself goes to the fullest node it fits
};

struct Policy {
  bool shrink = true;                 // elastic workers are taken back before anybody is stopped
  bool consolidate = true;            // workers move so that somebody fits
  bool reclaim = true;                // a queue takes back what it is entitled to
  bool reclaim_in_proportion = true;  // above its quota nobody reclaims what costs fairness more
  bool reclaim_by_resource = true;    // only from who holds too much of what the claimer asks for
  bool preempt = true;                // higher priority in the same queue goes first
  bool preempt_within_share = true;   // it does not lift the queue above its fair share
  bool evict_stale = true;            // a gang below its minimum gives up after its grace
  bool victims_may_move = true;       // a victim that fits elsewhere is moved, not paused
  bool compare_lost_work = true;      // victims by lost GPU-seconds where known on both sides
  bool place_by_worth = true;         // workers alone go where those to come lose least
  bool grow = true;                   // elastic workers above the minimum start
  bool by_goodput = true;             // jobs that report their speed get the sizes that pay best
  bool keep_promises = true;          // room that victims were asked to leave goes to its claimer
  bool gpu_type_wishes = true;        // roles name GPU types in the order of preference
  bool quota_by_type = true;          // quotas, limits and weights of GPU types count
  bool confinement = true;            // queues and kinds of job keep to GPU types and labels
  bool topology_wishes = true;        // groups require or prefer a level
  bool link_distance = true;          // GPUs of a worker by NVLink, PCIe switch and socket
  bool spare_islands = true;          // small workers take the part of a node that is broken most
  bool near_nic = true;               // gangs take a part with a NIC, single workers leave it
  bool members_apart = true;          // shares of one gang on different GPUs unless it says so
  bool fixed_work = true;      // work that is not preemptible is no victim and stays inside quotas
  bool fixed_builds = true;    // build work is never preemptible, whatever it says
  bool limits = true;          // of queues, at every level
  bool queue_priority = true;  // bands of priority between sibling queues
  bool min_runtime = true;     // a queue's jobs are no victims before theirs
  bool preemption_delay = true;  // a job causes no eviction before its own
  bool cordon = true;            // cordoned nodes take nobody, draining ones are emptied
  bool reserve = true;           // the first gang that has no room is kept some from a time on
  bool backfill = true;          // others take that room until then
  GangPacking gang_packing = GangPacking::kFewestNodes;
  std::int64_t decay_half_life_ms = 7LL * 24 * 3600 * 1000;  // of past use; 0: past use is ignored
  std::int64_t decay_strength_milli = 1000;  // how hard past use pulls at the weights
  std::int64_t search_budget = 400;          // victims and places looked at in one cycle
  bool search_again_later = true;            // a search that was cut off lets others go first
  std::int64_t search_walk = 1'000;          // the same for one job, before banks are compared
  std::int64_t move_limit = 16;              // workers one consolidation may move; < 0: any number
  std::int64_t resize_every_ms = 60'000;  // not more often, and only where something was reported
  std::int64_t resize_cost_ms = 30'000;   // of work, where a job does not say what a restart costs
  std::int64_t resize_pays_ms = 60'000;   // so soon a resize of a new job must pay for itself
  std::int64_t resize_patience_milli = 100;  // and so much later for each millisecond of its age
  std::int64_t grow_factor = 4;              // at most so many times the GPUs it is known to use
  std::int64_t young_gpu_ms = 3'600'000;     // until it was served so much a job counts for more
  std::int64_t turn_gpu_ms = 3'600'000;      // a running job gives way to one served so much less
  std::int64_t worth_offers = 15;            // shares that a rest of a GPU is taken to be offered
  std::int64_t worth_step_milli = 10;        // of a GPU: less makes no place better than another
  std::int64_t assumed_runtime_ms = 3'600'000;          // of jobs of which nothing is known
  std::int64_t backfill_patience_ms = 24LL * 3600'000;  // who waited so long is passed by nobody
  std::int64_t backfill_depth = 100;  // jobs behind a reservation that one cycle looks at
};

inline Policy CorpusPolicy() {
  Policy policy;
  policy.compare_lost_work = false;
  policy.reclaim_in_proportion = false;
  policy.place_by_worth = false;
  policy.decay_half_life_ms = 0;
  policy.by_goodput = false;
  policy.reserve = false;
  policy.move_limit = -1;
  policy.gang_packing = GangPacking::kFullestNode;
  return policy;
}

}  // namespace muster::engine
