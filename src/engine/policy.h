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
  bool shrink = true;                  // step 3: take elastic workers back before anything else
  bool consolidate = true;             // step 4
  bool reclaim = true;                 // step 5
  bool preempt = true;                 // step 5
  bool evict_stale = true;             // step 8
  bool victims_may_move = true;        // a victim that fits elsewhere is moved, not paused
  bool compare_lost_work = true;       // victims by lost GPU-seconds where known on both sides
  bool share_by_fragmentation = true;  // shares go where they strand the least (FGD)
  GangPacking gang_packing = GangPacking::kFewestNodes;
  std::int64_t decay_half_life_ms = 7LL * 24 * 3600 * 1000;  // of past use; 0: past use is ignored
  std::int64_t decay_strength_milli = 1000;  // how hard past use pulls at the weights
  std::int64_t search_budget = 200'000;      // victims and places looked at in one cycle
  std::int64_t move_limit = 16;              // workers one consolidation may move; < 0: any number
};

inline Policy CorpusPolicy() {
  Policy policy;
  policy.compare_lost_work = false;
  policy.share_by_fragmentation = false;
  policy.decay_half_life_ms = 0;
  policy.move_limit = -1;
  policy.gang_packing = GangPacking::kFullestNode;
  return policy;
}

}  // namespace muster::engine
