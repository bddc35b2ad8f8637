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

QueueOrder::QueueOrder(const QueueTable& queues, NextCost next_cost)
    : queues_(queues), next_cost_(std::move(next_cost)), seats_(queues.size()) {}

void QueueOrder::Put(QueueId parent, std::uint32_t position, QueueId child) {
  seats_[parent].heap[position] = child;
  seats_[child].position = position;
}

void QueueOrder::SiftUp(QueueId parent, std::uint32_t position) {
  auto& heap = seats_[parent].heap;
  const QueueId moving = heap[position];
  while (position > 0 && Before(moving, heap[(position - 1) / 2])) {
    Put(parent, position, heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  Put(parent, position, moving);
}

void QueueOrder::SiftDown(QueueId parent, std::uint32_t position) {
  auto& heap = seats_[parent].heap;
  const QueueId moving = heap[position];
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

void QueueOrder::RankHopefully(QueueId id) {
  seats_[id].known = false;
  seats_[id].rank = RankOf(queues_, id, queues_[id].held, Vec{});
}

void QueueOrder::Build(QueueId parent) {
  Seat& seat = seats_[parent];
  seat.built = round_;
  seat.heap.clear();
  for (const QueueId child : queues_[parent].children) {
    if (!all_ && seats_[child].invited != round_) continue;
    RankHopefully(child);
    seats_[child].position = static_cast<std::uint32_t>(seat.heap.size());
    seat.heap.push_back(child);
  }
  for (auto at = static_cast<std::uint32_t>(seat.heap.size()) / 2; at-- > 0;) SiftDown(parent, at);
}

// Finds what the queue would be served next and its true rank, unless it has nothing to be served.
bool QueueOrder::Learn(QueueId id) {
  Seat& seat = seats_[id];
  const Vec* next = nullptr;
  if (queues_[id].children.empty()) {
    next = next_cost_(id);
  } else if (LearnFirst(id)) {
    next = &seats_[seat.heap[0]].next;
  }
  if (next == nullptr) return false;
  seat.next = *next;
  seat.rank = RankOf(queues_, id, queues_[id].held, seat.next);
  seat.known = true;
  return true;
}

// Whether any child has something to be served; the first that does is then on top of the heap.
bool QueueOrder::LearnFirst(QueueId parent) {
  if (seats_[parent].built != round_) Build(parent);
  auto& heap = seats_[parent].heap;
  while (!heap.empty() && !seats_[heap[0]].known) {
    if (!Learn(heap[0])) {
      heap[0] = heap.back();
      heap.pop_back();
      if (heap.empty()) break;
    }
    SiftDown(parent, 0);
  }
  return !heap.empty();
}

void QueueOrder::Reset() {
  ++round_;
  all_ = true;
}

void QueueOrder::Reset(std::span<const QueueId> leaves) {
  ++round_;
  all_ = false;
  for (const QueueId leaf : leaves) {
    for (QueueId q = leaf; q != 0 && seats_[q].invited != round_; q = queues_[q].parent) {
      seats_[q].invited = round_;
    }
  }
}

void QueueOrder::Update(QueueId leaf) {
  for (QueueId q = leaf; q != 0; q = queues_[q].parent) {
    const QueueId parent = queues_[q].parent;
    RankHopefully(q);
    SiftUp(parent, seats_[q].position);
    SiftDown(parent, seats_[q].position);
  }
}

QueueId QueueOrder::Next() {
  if (!LearnFirst(0)) return kNone;
  QueueId q = 0;
  while (!queues_[q].children.empty()) q = seats_[q].heap[0];
  return q;
}

}  // namespace muster::engine
