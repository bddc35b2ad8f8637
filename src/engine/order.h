// QueueOrder: which queue is served next.
//
// Between siblings, top down, first goes the queue that: is not above its fair share; stays within
// its quota with its next job; has the higher priority; takes nothing of which it is entitled to
// nothing; would be the less saturated with the job; is so without it; is entitled to less; is
// older. Ratios are compared by cross-multiplication. One heap per inner queue, built when it is
// first looked into. What a queue would be served is asked only when it comes to the top: until
// then it is ranked as if that cost nothing, which is never behind its true rank. So serving one
// job looks at a few queues on each level, however many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/queues.h"

namespace muster::engine {

// The largest held / entitled over all resources, as a fraction; den 0: something of nothing.
struct Saturation {
  std::int64_t num = 0;
  std::int64_t den = 1;
  bool LessThan(const Saturation& other) const;
};
Saturation SaturationOf(const QueueState& queue, const Vec& held, const Vec& adds,
                        std::size_t dims);

struct QueueRank {
  bool over_share = false;
  bool over_quota = false;
  std::int64_t minus_priority = 0;
  bool takes_of_nothing = false;
  Saturation with, without;
  std::int64_t entitled = 0;
  std::int64_t created_order = 0;
  QueueId id = kNone;
};
QueueRank RankOf(const QueueTable& queues, QueueId id, const Vec& held, const Vec& adds);
bool ServedBefore(const QueueRank& a, const QueueRank& b);

class QueueOrder {
 public:
  // What the job costs that the leaf would be served next; nullptr: there is none, and there will
  // not be one until the next Reset().
  using NextCost = std::function<const Vec*(QueueId leaf)>;

  QueueOrder(const QueueTable& queues, NextCost next_cost);

  void Reset();                                 // all leaves take part, from now on
  void Reset(std::span<const QueueId> leaves);  // only these do
  void Update(QueueId leaf);  // what the leaf holds or would be served next has changed
  QueueId Next();             // kNone: nobody has anything to be served

 private:
  struct Seat {
    std::uint64_t invited = 0;   // the round of Reset() in which it takes part
    std::uint64_t built = 0;     // and that in which its heap was built
    bool known = false;          // rank and next are the true ones
    Vec next;                    // cost of the job it would be served
    QueueRank rank;              // among its siblings
    std::uint32_t position = 0;  // in the parent's heap
    std::vector<QueueId> heap;   // of its children
  };

  void Build(QueueId parent);
  void RankHopefully(QueueId id);
  bool Learn(QueueId id);
  bool LearnFirst(QueueId parent);
  bool Before(QueueId a, QueueId b) const { return ServedBefore(seats_[a].rank, seats_[b].rank); }
  void Put(QueueId parent, std::uint32_t position, QueueId child);
  void SiftUp(QueueId parent, std::uint32_t position);
  void SiftDown(QueueId parent, std::uint32_t position);

  const QueueTable& queues_;
  NextCost next_cost_;
  std::vector<Seat> seats_;
  std::uint64_t round_ = 0;
  bool all_ = false;  // take part in this round
};

}  // namespace muster::engine
