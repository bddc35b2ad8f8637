// Search: whom to ask to leave so that one waiting piece gets its place.
//
// Units are taken one by one in the order of VictimList until the piece fits, the right to take
// each being tested before it; then those that turned out not to be needed are let go (no victim in
// the answer is droppable), and those that fit elsewhere are moved. Everything happens in the
// Cluster as a trial: a search that finds nothing leaves no trace. Work is counted against the
// cycle's budget; when that runs out the answer is "not proven", never a hang.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cluster.h"
#include "engine/placement.h"
#include "engine/victims.h"
#include "model/plan.h"

namespace muster::engine {

enum class Step : std::uint8_t { kShrink, kConsolidate, kReclaim, kPreempt };

class Search {
 public:
  enum class Outcome : std::uint8_t { kFound, kNobody, kNotProven };
  struct Taken {
    VictimUnit unit;
    model::Rule rule = model::Rule::kConsolidate;
    std::vector<std::pair<WorkerRef, Place>> before;
    bool moved = false;
  };

  Search(Cluster& cluster, Placement& placement, std::int64_t now_ms)
      : cluster_(cluster), placement_(placement), now_ms_(now_ms) {}

  // On kFound the piece has its (promised) place and taken() have left theirs.
  Outcome Run(Step step, const Piece& piece, std::int64_t& budget);
  const std::vector<Taken>& taken() const { return taken_; }

  // Whether side `victim` may lose something to `claimer`, which asks for `adds`, and by which
  // rule.
  bool MayTake(QueueId claimer, QueueId victim, const Vec& adds, model::Rule& rule) const;

 private:
  void ListQueues(Step step, QueueId claimer, const Vec& adds);
  bool Protected(Step step, const VictimUnit& unit, const JobState& claimer) const;
  bool Helps(const Piece& piece, const std::vector<WorkerRef>& workers) const;
  void Take(const VictimUnit& unit, model::Rule rule, const std::vector<WorkerRef>& workers);
  bool Conclude(Step step, const Piece& piece);
  void LetGo(Step step, const Piece& piece);
  bool TryLetGo(const Piece& piece, const Taken& taken, bool anew);
  bool CanReturn(const Taken& taken) const;
  bool MoveElsewhere(Step step, const Piece& claim);
  bool WithinBounds(const Piece& piece) const;
  bool StaysFair(const Piece& piece);

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_;
  std::vector<QueueId> queues_;         // whose jobs are looked at
  std::vector<QueueId> listed_queues_;  // those that list_ was built for
  bool listed_surplus_ = false;
  std::uint64_t listed_at_ = 0;  // log position of the nodes when list_ was built
  VictimList list_;
  std::vector<Taken> taken_;
  std::vector<WorkerRef> workers_;
  std::vector<WorkerRef> claimed_;  // the workers of the piece, at their promised places
};

}  // namespace muster::engine
