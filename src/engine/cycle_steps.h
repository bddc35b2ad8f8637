// Scheduler::Steps: the steps of one scheduling cycle, and what they share.
//
// cycle.cc has the order of the steps, placing, moving, draining and stale gangs; cycle_reserve.cc
// keeps room for who is to have it later; cycle_claim.cc the three steps that ask others to leave;
// cycle_conclude.cc turns what was tried into the plan.
// Only these files include this one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/consolidation.h"
#include "engine/cycle.h"
#include "engine/lanes.h"
#include "engine/placement.h"
#include "engine/resizing.h"
#include "engine/search.h"
#include "engine/timeline.h"

namespace muster::engine {

class Scheduler::Steps {
 public:
  explicit Steps(Cluster& cluster)
      : cluster_(cluster),
        placement_(cluster),
        search_(cluster, placement_),
        consolidation_(cluster, placement_),
        resizing_(cluster, placement_),
        timeline_(cluster, placement_),
        lanes_(cluster) {
    for (QueueId q = 1; q < cluster.queues().size(); ++q) {
      const auto& spec = cluster.queues().spec(q);
      min_runtimes_ |= spec.reclaim_min_runtime_ms > 0 || spec.preempt_min_runtime_ms > 0;
    }
  }

  model::Plan Run(std::int64_t now_ms);

 private:
  struct Cause {
    JobId claimer = kNone;
    model::Rule rule = model::Rule::kFreeCapacity;
  };

  // A search that was cut off is tried again after 2, 4, 8, ... cycles.
  struct CutOff {
    static constexpr std::uint32_t kMostCutOffs = 6;  // that count: 2^6 cycles until the next try
    std::uint32_t times = 0;                          // in a row
    std::uint64_t until = 0;                          // the cycle in which it is tried again

    void Again(std::uint64_t cycle) {
      times = std::min(times + 1, kMostCutOffs);
      until = cycle + (std::uint64_t{1} << times);
    }
  };

  // What became of a job that a step looked at.
  enum class Answer : std::uint8_t {
    kServed,
    kNoRoom,   // nor would its equals find room
    kNotHere,  // nor may its equals in this queue have it
    kNotThis,  // for reasons of its own
  };

  void KeepPromises();
  void Resize();
  void Book();
  void TakeBooked();
  void TakeOn(NodeId node, int gpus, QueueId queue);
  void Reserve();
  void KeepLastReserved();
  bool StillReserved();
  void RenewReservations(bool whoever_comes);
  void FindReservations(bool whoever_comes);
  void KeepFor(const Reservation& made);
  bool KeptByAdmin() const;
  enum class Found : std::uint8_t {
    kRoom,
    kLater,  // when its queue may have it
    kNothing,
    kNothingStill,  // as was found out in an earlier cycle
  };
  Found ReserveFor(JobId job, ClassId job_class, bool looks);
  bool RoomForSomebody();
  void Foresee();
  Resizing::Held KeepRoomFromAll(std::span<const JobId> jobs);
  bool KeepRoomFrom(JobId job);
  bool MayClaimBesideLimits(Step step, JobId job);
  void KeepNoRoom();
  void ConcludeReservations();
  Answer BehindReservation(JobId job, Answer answer);
  void FindsNoRoom(JobId job, ClassId job_class);
  void NoteReservations();
  void NoteBookings();
  void Allocate();
  void GoOn(JobId job, Answer answer);
  Answer AllocateNext(JobId job);
  void Consolidate();
  Answer ConsolidateNext(JobId job);
  void Claim(Step step);
  Answer ClaimNext(Step step, JobId job);
  void ListClaimers(Step step);
  bool ToBeTriedLater(Step step, const BucketHead& head);
  void NoteOutcome(Step step, JobId job, Search::Outcome outcome);
  bool VerdictMayAge(QueueId queue) const;
  bool MayClaim(Step step, QueueId queue, const Vec& cost, std::int64_t priority) const;
  bool TooYoung(const JobState& job) const {
    return now_ms_ - job.submitted_ms < job.preemption_delay_ms;
  }
  bool WithinBounds(const JobState& job, const Piece& piece) const;
  bool PlaceWithinBounds(const JobState& job, const Piece& piece, Mode mode);
  bool RoomAfterMoves(const JobClass& job_class) const;
  void SendAway(WorkerRef ref, model::Rule rule, bool rehouse);
  void Drain();
  void EvictStale();
  void Evict(const std::vector<WorkerRef>& workers, JobId claimer, model::Rule rule);
  void RefreshTouched();
  void Conclude();
  void StartWhereRoomIsFree();
  void TakeBackBrokenStarts();
  void CountStarts();
  void ConcludeStart(WorkerRef ref, const Place& before, const Place& now);
  void ConcludeVictim(WorkerRef ref, const Place& before, const Place& now);

  Cluster& cluster_;
  Placement placement_;
  Search search_;
  Consolidation consolidation_;
  Resizing resizing_;
  Timeline timeline_;
  std::vector<Reservation> reserved_, last_reserved_;
  // Room that some may not have: as far as they go it is taken.
  struct Block {
    Kept by;
    QueueId queue = kNone;      // whose jobs may have it, of an admin's; kNone: nobody's
    std::int64_t until_ms = 0;  // who has ended by then may have it
    std::vector<Hold> holds;
    std::vector<Hold> places = {};  // those, and what others still have
    std::uint64_t types = 0;        // of GPUs that it is about, a bit each
    std::vector<Reservation::Within> within = {};
    bool fixed = false;
    bool on = false;
    std::vector<Hold> kept = {};  // of an admin's, while it is on: what no other one keeps
  };
  bool Binds(const Block& block, JobId job) const;
  bool CountsOn(const Block& block, JobId job) const;
  void Turn(Block& block, bool on);
  void KeepBooked(Block& block);
  void LeaveBooked(Block& block);
  const Block* KeptBy(JobId job) const;
  std::vector<Block> blocks_;
  std::int64_t looks_ = 0;  // at jobs behind a reservation
  bool LookedEnough() const { return looks_ >= cluster_.policy().backfill_depth; }
  // What was reserved in the last cycle: how much in all, for which gangs and when.
  std::pair<std::size_t, std::vector<std::pair<JobId, std::int64_t>>> reserved_before_;
  std::ptrdiff_t bookings_before_ = 0;  // of admins
  // Classes that were stopped by it: whether they would find room without it.
  struct Without {
    bool fits_now = false, fits_soon = false;
  };
  Without WithoutIt(ClassId job_class);
  std::map<ClassId, Without> without_it_;
  // Classes for which no time was found, by queue: bounds and bookings are theirs.
  std::map<std::pair<ClassId, QueueId>, CutOff> no_time_;
  Lanes lanes_;
  std::int64_t now_ms_ = 0;
  std::int64_t budget_ = 0;
  model::Plan plan_;
  std::vector<Piece> pieces_;
  std::vector<QueueId> claimers_;
  std::vector<QueueId> changed_;  // queues whose jobs changed since the last cycle
  std::array<QueueId, 3> next_claimer_{};
  ClassId next_class_ = 0;                                    // that consolidation looks at first
  std::map<std::pair<std::uint32_t, Step>, CutOff> cut_off_;  // by bucket and step
  std::vector<QueueId> undecided_;  // queues with a job that is to be looked at again later
  bool min_runtimes_ = false;       // some queue protects its young jobs
  std::map<WorkerRef, Cause> causes_;
  std::vector<JobId> touched_;  // jobs whose place in the waiting index may have changed
  std::vector<std::pair<WorkerRef, BankId>> hints_;
  std::vector<std::pair<WorkerRef, Place>> changes_;
  std::map<std::pair<JobId, std::uint32_t>, std::uint32_t> there_before_;  // by job and group
  std::map<JobId, bool> runs_;  // whether the plan leaves a changed job its minimum
};

}  // namespace muster::engine
