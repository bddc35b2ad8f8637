// Search: whom to ask to leave so that one waiting piece gets its place.
//
// Units are taken one by one in the order of VictimList until the piece fits, the right to take each
// being tested before it; then those that turned out not to be needed are let go (no victim in the
// answer is droppable), and those that fit elsewhere are moved. Everything happens in the Cluster as a
// trial: a search that finds nothing leaves no trace. Lists of victims are made once a cycle and shared
// by all claimers. Work is counted against the cycle's budget; when that runs out the answer is "not
// proven", never a hang.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/cluster.h"
#include "engine/placement.h"
#include "engine/victims.h"
#include "model/plan.h"

namespace muster::engine {

enum class Step : std::uint8_t { kShrink, kReclaim, kPreempt };

class Search {
 public:
  enum class Outcome : std::uint8_t { kFound, kNobody, kNotProven };
  struct Taken {
    VictimUnit unit;
    model::Rule rule = model::Rule::kReclaimShare;
    std::vector<std::pair<WorkerRef, Place>> before;
    bool moved = false;
  };

  Search(Cluster& cluster, Placement& placement) : cluster_(cluster), placement_(placement) {}

  void BeginCycle(std::int64_t now_ms);

  // On kFound the piece has its (promised) place and taken() have left theirs.
  Outcome Run(Step step, const Piece& piece, std::int64_t& budget);
  const std::vector<Taken>& taken() const { return taken_; }

  // Whether there is anybody at all from whom this claimer might take something.
  bool AnyVictims(Step step, QueueId claimer, const Vec& adds);

 private:
  // Queues above their fair share, or above their quota, at some level; and what they could give.
  struct Pool {
    bool built = false;
    VictimList list;
    std::int64_t surplus = 0;                // workers above a minimum
    std::vector<std::uint32_t> gpus;         // by bank: GPUs of preemptible workers
    std::vector<BankId> banks;               // those with any
    std::map<ShapeId, std::int64_t> slots;  // workers of a shape that fit once all had gone
  };

  Pool& PoolFor(QueueId claimer, const Vec& adds);
  void Build(Pool& pool, bool above_quota);
  bool Hopeless(Pool& pool, const Piece& piece);
  bool MayTake(QueueId claimer, QueueId victim, const Vec& adds, model::Rule& rule) const;
  bool Protected(Step step, const VictimUnit& unit, const JobState& claimer) const;
  bool Helps(const Piece& piece, const std::vector<WorkerRef>& workers) const;
  Outcome Walk(Step step, const Piece& piece, VictimList& list, std::int64_t budget);
  void Take(const VictimUnit& unit, model::Rule rule, const std::vector<WorkerRef>& workers);
  bool Conclude(Step step, const Piece& piece);
  void LetGo(const Piece& piece);
  bool TryLetGo(const Piece& piece, const Taken& taken, bool anew);
  bool CanReturn(WorkerRef ref, const Place& place) const;
  void MoveElsewhere(const Piece& claim);
  bool WithinBounds(const Piece& piece) const;
  bool StaysFair(const Piece& piece);
  std::int64_t Spent() const { return visited_ + placement_.steps() + cluster_.moves(); }

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_ = 0;
  std::array<Pool, 2> pools_;  // above fair share; above fair share or quota
  VictimList own_;             // of the claimer's own queue, for kPreempt
  std::int64_t visited_ = 0;
  std::vector<Taken> taken_;
  std::vector<WorkerRef> workers_;
  std::vector<WorkerRef> claimed_;  // the workers of the piece, at their promised places
};

}  // namespace muster::engine
