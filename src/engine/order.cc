#include "engine/order.h"

#include <algorithm>
#include <utility>

#include "base/wide.h"

namespace muster::engine {

bool Saturation::LessThan(const Saturation& other) const {
  if (den == 0) return false;
  if (other.den == 0) return true;
  return static_cast<Wide>(num) * other.den < static_cast<Wide>(other.num) * den;
}

Saturation SaturationOf(const QueueState& queue, const Vec& held, const Vec& adds,
                        std::size_t dims) {
  Saturation most;
  for (std::size_t d = 0; d < dims; ++d) {
    const auto amount = held[d] + adds[d];
    if (amount == 0) continue;
    const Saturation here{amount, queue.entitled[d]};
    if (most.LessThan(here)) most = here;
  }
  return most;
}

QueueRank RankOf(const QueueTable& queues, QueueId id, const Vec& held, const Vec& adds) {
  const QueueState& queue = queues[id];
  QueueRank rank;
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    rank.over_share |= held[d] > queue.share[d];
    rank.over_quota |= held[d] + adds[d] > queue.guaranteed[d];
    rank.takes_of_nothing |= adds[d] > 0 && queue.entitled[d] == 0;
  }
  rank.minus_priority = -queue.priority;
  rank.with = SaturationOf(queue, held, adds, queues.dims());
  rank.without = SaturationOf(queue, held, Vec{}, queues.dims());
  rank.entitled = queue.entitled[kGpuDim];
  rank.created_order = queue.created_order;
  rank.id = id;
  return rank;
}

bool ServedBefore(const QueueRank& a, const QueueRank& b) {
  if (a.over_share != b.over_share) return b.over_share;
  if (a.over_quota != b.over_quota) return b.over_quota;
  if (a.minus_priority != b.minus_priority) return a.minus_priority < b.minus_priority;
  if (a.takes_of_nothing != b.takes_of_nothing) return b.takes_of_nothing;
  if (a.with.LessThan(b.with)) return true;
  if (b.with.LessThan(a.with)) return false;
  if (a.without.LessThan(b.without)) return true;
  if (b.without.LessThan(a.without)) return false;
  if (a.entitled != b.entitled) return a.entitled < b.entitled;
  if (a.created_order != b.created_order) return a.created_order < b.created_order;
  return a.id < b.id;
}

QueueOrder::QueueOrder(const QueueTable& queues) : queues_(queues), seats_(queues.size()) {}

void QueueOrder::Put(QueueId parent, std::uint32_t position, QueueId child) {
  seats_[parent].heap[position] = child;
  seats_[child].position = position;
}

void QueueOrder::Sift(QueueId parent, std::uint32_t position) {
  auto& heap = seats_[parent].heap;
  const QueueId moving = heap[position];
  while (position > 0 && Before(moving, heap[(position - 1) / 2])) {
    Put(parent, position, heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && Before(heap[child + 1], heap[child])) ++child;
    if (!Before(heap[child], moving)) break;
    Put(parent, position, heap[child]);
    position = child;
  }
  Put(parent, position, moving);
}

void QueueOrder::Update(QueueId id) {
  for (QueueId q = id; q != 0;) {
    const QueueId parent = queues_[q].parent;
    Seat& seat = seats_[q];
    auto& heap = seats_[parent].heap;
    const bool offers = q == id ? seat.active : !seat.heap.empty();
    if (q != id && offers) seat.next = seats_[seat.heap[0]].next;
    const bool seated = seat.position < heap.size() && heap[seat.position] == q;
    if (offers) {
      seat.rank = RankOf(queues_, q, queues_[q].held, seat.next);
      if (!seated) {
        heap.push_back(q);
        seat.position = static_cast<std::uint32_t>(heap.size() - 1);
      }
      Sift(parent, seat.position);
    } else if (seated) {
      const auto hole = seat.position;
      const QueueId last = heap.back();
      heap.pop_back();
      if (last != q) {
        Put(parent, hole, last);
        Sift(parent, hole);
      }
      seat.position = kNone;
    }
    q = parent;
  }
}

void QueueOrder::Clear() {
  for (const QueueId leaf : used_) {
    for (QueueId q = leaf; q != kNone; q = queues_[q].parent) {
      seats_[q].active = false;
      seats_[q].heap.clear();
      seats_[q].position = kNone;
    }
  }
  used_.clear();
}

void QueueOrder::Reset(const std::vector<QueueId>& leaves, const std::vector<Vec>& next_costs) {
  Clear();
  std::vector<QueueId> level = leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Seat& seat = seats_[leaves[i]];
    seat.active = true;
    seat.next = next_costs[i];
    used_.push_back(leaves[i]);
  }
  // Deepest first, so that a parent knows its best child's job before it is ranked itself.
  std::stable_sort(level.begin(), level.end(),
                   [this](QueueId a, QueueId b) { return queues_[a].depth > queues_[b].depth; });
  for (std::size_t i = 0; i < level.size(); ++i) {
    const QueueId q = level[i];
    if (q == 0) break;
    Seat& seat = seats_[q];
    if (!seat.heap.empty()) {
      for (auto at = static_cast<std::uint32_t>(seat.heap.size()); at-- > 0;) Sift(q, at);
      seat.next = seats_[seat.heap[0]].next;
    }
    seat.rank = RankOf(queues_, q, queues_[q].held, seat.next);
    auto& siblings = seats_[queues_[q].parent].heap;
    seat.position = static_cast<std::uint32_t>(siblings.size());
    siblings.push_back(q);
    if (siblings.size() > 1) continue;
    // The parent takes its turn behind everybody who is as deep as its children.
    const auto depth = queues_[q].depth - 1;
    const auto place = std::find_if(level.begin() + static_cast<std::ptrdiff_t>(i) + 1, level.end(),
                                    [&](QueueId other) { return queues_[other].depth < depth; });
    level.insert(place, queues_[q].parent);
  }
  auto& top = seats_[0].heap;
  for (auto at = static_cast<std::uint32_t>(top.size()); at-- > 0;) Sift(0, at);
}

void QueueOrder::Offer(QueueId leaf, const Vec& next_cost) {
  if (!seats_[leaf].active) used_.push_back(leaf);
  seats_[leaf].active = true;
  seats_[leaf].next = next_cost;
  Update(leaf);
}

void QueueOrder::Withdraw(QueueId leaf) {
  seats_[leaf].active = false;
  Update(leaf);
}

QueueId QueueOrder::Next() const {
  QueueId q = 0;
  while (!seats_[q].heap.empty()) q = seats_[q].heap[0];
  return q == 0 ? kNone : q;
}

}  // namespace muster::engine
