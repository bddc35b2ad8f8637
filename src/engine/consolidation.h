// Consolidation: makes room for a worker by moving others, each of which gets a new place.
//
// Looks at the banks on which little is missing. On each, preemptible units leave in victim order
// until the worker fits, and those that turn out not to be needed stay. The bank where the fewest
// workers have to move is tried first, then the one whose movers come first in victim order. Nobody
// loses anything but a restart: if one mover finds no other place, the bank is given up. Cost: a
// few units on a few banks, whatever the size of the cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cluster.h"
#include "engine/placement.h"
#include "engine/victims.h"

namespace muster::engine {

class Consolidation final : public RoomMaker {
 public:
  Consolidation(Cluster& cluster, Placement& placement)
      : cluster_(cluster), placement_(placement) {}

  // Places the piece, moving at most the policy's number of workers; false: nothing has changed.
  bool Place(const Piece& piece, std::int64_t now_ms);
  // The workers that were moved for it.
  const std::vector<WorkerRef>& moved() const { return moved_; }

  void ListBanks(WorkerRef ref, std::vector<BankId>& out) override {
    placement_.ListNearlyFitting(ref, Mode::kFuture, out);
  }
  BankId MakeRoom(WorkerRef ref, const std::vector<BankId>& banks, std::size_t turn) override;
  bool Settle() override;

 private:
  struct Offer {
    BankId bank = kNone;
    std::size_t workers = 0;
    std::vector<VictimUnit> units;
  };

  void Estimate(WorkerRef ref, BankId bank, Offer& offer);
  bool Suffices(const Shape& shape, BankId bank, const std::vector<VictimUnit>& units);
  void Leave(const VictimUnit& unit);
  bool MustStay(const VictimUnit& unit) const;

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_ = 0;
  std::vector<Offer> offers_;  // of the worker that asked last
  std::vector<std::pair<VictimUnit, std::vector<WorkerRef>>> left_;  // for it
  std::vector<WorkerRef> moved_;
  VictimList list_;
  std::vector<JobId> jobs_;
  std::vector<WorkerRef> workers_;
  JobId claimer_ = kNone;
};

}  // namespace muster::engine
