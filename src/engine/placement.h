// Placement: finds places for what a job asks for next, as a whole or not at all.
//
// A piece is what starts together: the workers that lift a job to its minimum, or one worker (or
// one further group) above it. Workers go to the fullest node that fits, small ones to where those
// to come lose the least; a gang to as few nodes as it can if the policy says so; a wish for a
// topology level picks the fullest domain that holds the group, and a preferred level widens step
// by step up to the required one. Placement asks no question of fairness: that a queue may have the
// piece is decided before.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/cluster.h"

namespace muster::engine {

struct Piece {
  JobId job = kNone;
  std::uint32_t group = kNone;         // the group to satisfy; kNone: one worker above the minimum
  std::vector<std::uint32_t> workers;  // with a choice of groups: the ones tried first
  Vec cost;
  bool estimated = false;  // the true cost depends on the place: shares by memory
};

// Makes room where there is none: by moving others (Consolidation) or by asking them to leave
// (Search).
class RoomMaker {
 public:
  virtual ~RoomMaker() = default;
  // The banks on which it might make room for the worker, each worth a closer look.
  virtual void ListBanks(WorkerRef ref, std::vector<BankId>& out) = 0;
  // Frees room for the worker on one of the banks, the best in turn 0, the next in turn 1, and says
  // on which; kNone: no more banks, nothing has changed.
  virtual BankId MakeRoom(WorkerRef ref, const std::vector<BankId>& banks, std::size_t turn) = 0;
  // The worker has taken that room. False: those who left it needed other places and found none.
  virtual bool Settle() = 0;
};

class Placement {
 public:
  explicit Placement(Cluster& cluster) : cluster_(cluster) {}

  // What the job could ask for next, best first: one piece below its minimum, above it one for each
  // kind of worker that waits. Empty: the workers that are left cannot reach the minimum.
  void NextPieces(JobId job, std::vector<Piece>& out) const;

  // Gives every worker of the piece a place in this mode; false: nothing has changed.
  bool Place(const Piece& piece, Mode mode);

  // Gives one worker a place on that bank, which may still be left by others; false: it does not
  // fit.
  bool PlaceOn(WorkerRef ref, BankId bank);

  // Gives workers that were told to leave places elsewhere: the group they form first (kNone: each
  // for itself), then the rest one by one. Returns how many found one.
  std::size_t Rehouse(std::uint32_t group, const std::vector<WorkerRef>& workers);
  // The workers that the last successful Place() gave a place.
  const std::vector<WorkerRef>& placed() const { return placed_; }

  // Whether slot counts allow the piece at all; cheap, errs towards true.
  bool MayFit(const Piece& piece, Mode mode);

  // Banks on which little is missing for the worker: the most unoccupied GPUs, the most free cores.
  void ListNearlyFitting(WorkerRef ref, Mode mode, std::vector<BankId>& out) const;
  // From now on asks `maker` where no room is left; nullptr: nobody.
  void AskForRoom(RoomMaker* maker) { maker_ = maker; }
  // From now on uses GPUs of that type alone; kNone: of all.
  void KeepTo(TypeId type) { only_ = type; }

  // The domain of the level that the place lies in; kNone: in none.
  DomainId DomainOf(LevelId level, const engine::Place& place) const;

  std::int64_t steps() const { return steps_; }  // places looked at so far

 private:
  // A conjunction of domains; the last is the narrowest.
  struct Scope {
    LevelId level;
    DomainId domain;
  };
  using Scopes = std::vector<Scope>;

  bool PlacePiece(const Piece& piece, Mode mode);
  bool JoinGroups(const JobState& job, std::uint32_t group, Scopes& preferred, LevelId& open);
  bool PlaceInAnyDomain(LevelId level, const std::function<bool()>& place);
  void PutInOrder(JobId id, const std::vector<std::uint32_t>& workers);
  bool Collect(const JobState& job, std::uint32_t group, Piece& piece) const;
  bool PlaceGroup(JobId id, std::uint32_t group, Mode mode);
  bool PlaceMembers(JobId id, std::uint32_t group, Mode mode);
  bool PlaceLeaf(JobId id, const std::vector<std::uint32_t>& workers, Mode mode);
  bool PlaceSingle(WorkerRef ref, const Scopes& preferred, Mode mode);
  bool PlaceWorker(WorkerRef ref, std::uint32_t together, Mode mode);
  bool TryOn(WorkerRef ref, BankId bank, std::uint32_t together, Mode mode);
  bool PlaceInMadeRoom(WorkerRef ref, Mode mode);

  void ListCandidates(JobId id, std::uint32_t group, LevelId level, Mode mode,
                      std::vector<DomainId>& out);
  const engine::Place* Anchor(const JobState& job, std::uint32_t group) const;
  bool InScope(NodeId node) const;
  std::uint64_t ScopeDevices() const;
  bool Holds(LevelId level, DomainId domain, NodeId node) const;

  BankId PickBank(WorkerRef ref, std::uint32_t together, Mode mode);
  BankId PickByWorth(WorkerRef ref, const Shape& shape);
  BankId PickWhole(WorkerRef ref, const Shape& shape, std::uint32_t together, Mode mode);
  BankId PickShared(WorkerRef ref, const Shape& shape, Mode mode);
  BankId PickHost(const Shape& shape, Mode mode);
  BankId PickNear(WorkerRef ref, std::uint32_t together, Mode mode);  // small scopes: look at all
  bool Fits(const Shape& shape, BankId bank, Mode mode) const;
  bool TypeAllowed(JobId job, const Shape& shape, TypeId type) const;
  std::uint64_t ChooseShared(WorkerRef ref, const Shape& shape, BankId bank, Mode mode);
  DeviceRules RulesFor(JobId job) const;

  bool Waits(const Worker& worker) const {
    return worker.place.state == WorkerState::kPending &&
           (worker.place.left_bank != kNone) == leavers_;
  }

  Cluster& cluster_;
  RoomMaker* maker_ = nullptr;
  TypeId only_ = kNone;
  bool leavers_ = false;  // places only workers that were told to leave, or only all others
  Scopes scopes_;
  // GPUs that were chosen for equal workers of one leaf together and wait for the next of them.
  struct Run {
    BankId bank = kNone;
    std::uint64_t devices = 0;
  };
  Run run_;
  std::vector<WorkerRef> placed_;
  mutable std::int64_t steps_ = 0;
};

}  // namespace muster::engine
