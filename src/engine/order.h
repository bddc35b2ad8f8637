// QueueOrder: which queue is served next.
//
// Between siblings, top down, first goes the queue that, in this order: is not above its fair
// share; stays within its quota with its next job; has the higher priority; takes nothing of a
// resource in which it is entitled to nothing; would be the less saturated with the job; is the
// less saturated without it; is entitled to less; is older. One heap per inner queue; offering,
// withdrawing and serving a leaf cost a sift on each level of its path. Ratios are compared by
// cross-multiplication.
#pragma once

#include <cstdint>
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
  explicit QueueOrder(const QueueTable& queues);

  // Starts anew: exactly these leaves offer, each the cost at the same position. O(number of
  // leaves).
  void Reset(const std::vector<QueueId>& leaves, const std::vector<Vec>& next_costs);
  void Offer(QueueId leaf, const Vec& next_cost);  // anew after each change of what the leaf holds
  void Withdraw(QueueId leaf);
  QueueId Next() const;  // kNone: nobody offers anything

 private:
  struct Seat {
    bool active = false;
    Vec next;                    // cost of the job it would be served
    QueueRank rank;              // among its siblings
    std::uint32_t position = 0;  // in the parent's heap
    std::vector<QueueId> heap;   // active children
  };

  void Clear();
  void Update(QueueId id);  // re-ranks the queue among its siblings, then its ancestors
  void Sift(QueueId parent, std::uint32_t position);
  bool Before(QueueId a, QueueId b) const { return ServedBefore(seats_[a].rank, seats_[b].rank); }
  void Put(QueueId parent, std::uint32_t position, QueueId child);

  const QueueTable& queues_;
  std::vector<Seat> seats_;
  std::vector<QueueId> used_;  // leaves that have offered since Clear()
};

}  // namespace muster::engine
