// Search: whom to ask to leave so that one waiting piece gets its place.
//
// Units are taken one by one in the order of VictimList until the piece fits, the right to take
// each being tested before it; then those not needed are let go (no victim in the answer is
// droppable), and those that fit elsewhere are moved. Where there are too many units for that,
// banks on which all could leave are looked at one by one. All of it is a trial in the Cluster: a
// search that finds nothing leaves no trace. Lists of victims are made once a cycle and shared by
// all claimers. The work is bounded; a bound that was hit makes the answer "not proven", never a
// hang.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cluster.h"
#include "engine/placement.h"
#include "engine/victims.h"
#include "model/plan.h"

namespace muster::engine {

class Search final : private RoomMaker {
 public:
  enum class Outcome : std::uint8_t { kFound, kNobody, kNotProven };
  struct Taken {
    VictimUnit unit;
    model::Rule rule = model::Rule::kReclaimShare;
    std::vector<std::pair<WorkerRef, Place>> before;
    bool moved = false;
  };

  Search(Cluster& cluster, Placement& placement)
      : cluster_(cluster), placement_(placement), running_(cluster) {}

  void BeginCycle(std::int64_t now_ms);

  // On kFound the piece has its (promised) place and taken() have left theirs.
  Outcome Run(Step step, const Piece& piece, std::int64_t& budget);
  const std::vector<Taken>& taken() const { return taken_; }
  // Whether a search since the last call took workers that were placed in this very cycle.
  bool TookFresh() { return std::exchange(took_fresh_, false); }

  // False only if nobody could be asked to leave who would make room for this job.
  bool MayHelp(Step step, const BucketHead& claimer);

 private:
  // The units of queues that are above their fair share, or above their quota, at some level; of
  // the most saturated queues only, where there are too many.
  struct Pool {
    bool built = false;
    bool whole = true;       // nobody was left out
    std::size_t passed = 0;  // queues, the most saturated first, that had their turn
    VictimList list;
    std::vector<bool> helps;  // by class, of a small pool: there is room for it once all have left
  };

  Pool& PoolFor(QueueId claimer, const Vec& adds);
  void Build(Pool& pool, bool above_quota, bool surplus_only);
  void FindWhomItHelps(Pool& pool);
  bool MayTake(QueueId claimer, QueueId victim, const Vec& adds, model::Rule& rule) const;
  bool Protected(const VictimUnit& unit, const JobState& claimer) const;
  bool Helps(const Piece& piece, const std::vector<WorkerRef>& workers) const;
  bool InProportion(const Piece& piece, const VictimUnit& unit,
                    const std::vector<WorkerRef>& workers) const;
  bool FairToTake(const Piece& piece, QueueId victim, const std::vector<WorkerRef>& workers) const;
  bool StillSpare(const VictimUnit& unit) const;
  bool MayTakeUnit(const Piece& piece, const VictimUnit& unit, model::Rule& rule);
  Outcome Walk(const Piece& piece, VictimList& list);
  Outcome WalkBanks(const Piece& piece);
  struct Offer {
    BankId bank = kNone;
    std::int64_t gpu_milli = 0;
    std::vector<std::pair<VictimUnit, model::Rule>> units;
  };
  bool Estimate(WorkerRef ref, Offer& offer);
  void ForgetGivenUp();
  void ListBanks(WorkerRef ref, std::vector<BankId>& out) override;
  BankId MakeRoom(WorkerRef ref, const std::vector<BankId>& banks, std::size_t turn) override;
  bool Settle() override { return true; }
  void Take(const VictimUnit& unit, model::Rule rule, const std::vector<WorkerRef>& workers);
  bool Conclude(const Piece& piece);
  void LetGo(const Piece& piece);
  bool TryLetGo(const Piece& piece, const Taken& taken, bool anew);
  void LetGoPart(const Piece& piece, JobId job);
  bool Runs(WorkerRef ref) const;
  bool CanReturn(WorkerRef ref, const Place& place) const;
  void MoveElsewhere(const Piece& claim);
  bool WithinBounds(const Piece& piece) const;
  bool EndsLessSaturated(const Piece& piece, QueueId ours, QueueId theirs) const;
  std::optional<std::size_t> FindUnfair(const Piece& piece);
  void SpareUnfair(const Piece& piece);
  bool RisesAboveShare(const Piece& piece) const;
  std::int64_t Spent() const { return visited_ + placement_.steps() + cluster_.moves(); }

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_ = 0;
  std::array<Pool, 4>
      pools_;  // above fair share; above fair share or quota; the same, surplus only
  RunningUnits running_;
  VictimList own_;                // of the claimer's own queue, for kPreempt
  Step step_ = Step::kReclaim;    // of the search under way
  const Piece* piece_ = nullptr;  // and its piece
  VictimList* list_ = nullptr;    // and whom it asks
  std::vector<Offer> offers_;
  VictimList here_;  // of the jobs on one node
  std::vector<JobId> jobs_;
  std::int64_t visited_ = 0;
  std::uint32_t rounds_ = 0;
  bool took_fresh_ = false;
  std::vector<Taken> taken_;
  Vec held_before_;    // by the claimer's queue, when the search began
  VictimUnit unfair_;  // of the last trial: whom it was not fair to take, or nobody
  std::vector<WorkerRef> workers_;
  std::vector<WorkerRef> claimed_;  // the workers of the piece, at their promised places
};

}  // namespace muster::engine
