#include "engine/lanes.h"

#include <utility>

namespace muster::engine {

void Lanes::Close() {
  for (const QueueId queue : opened_) {
    lanes_[queue].entries.clear();
    lanes_[queue].filled = false;
    lanes_[queue].best = kNone;
  }
  opened_.clear();
  claims_ = nullptr;
  dead_.assign(cluster_.class_count(), false);
  live_ = cluster_.class_count();
}

// Remembers the bucket's head if it is the best of its queue so far.
void Lanes::Consider(const BucketHead& head, ClassId job_class) {
  Lane& lane = lanes_[head.queue];
  if (lane.best == kNone) {
    opened_.push_back(head.queue);
  } else if (!(head.key < lane.head.waiter.key)) {
    return;
  }
  lane.best = 0;
  lane.head = {head.bucket, 0, {head.key, head.job}, job_class};
}

void Lanes::Start() {
  std::vector<Vec> costs;
  costs.reserve(opened_.size());
  for (const QueueId queue : opened_) {
    costs.push_back(cluster_.job_class(lanes_[queue].head.job_class).cost);
  }
  order_.Reset(opened_, costs);
}

void Lanes::Open(const std::function<bool(ClassId)>& may_be_helped) {
  Close();
  for (ClassId c = 0; c < cluster_.class_count(); ++c) {
    const auto buckets = cluster_.waiting().OfClass(c);
    dead_[c] = buckets.empty() || !may_be_helped(c);
    if (dead_[c]) {
      --live_;
      continue;
    }
    for (const auto& head : buckets) {
      if (head.job != kNone) Consider(head, c);
    }
  }
  Start();
}

void Lanes::Open(std::span<const QueueId> queues, std::function<bool(const Bucket&)> may_claim) {
  Close();
  claims_ = std::move(may_claim);
  for (const QueueId queue : queues) {
    for (const auto id : cluster_.waiting().OfQueue(queue)) {
      const Bucket& bucket = cluster_.waiting().bucket(id);
      if (bucket.waiters().empty() || !claims_(bucket)) continue;
      const Waiter& head = bucket.waiters()[0];
      Consider({head.key, id, queue, head.job}, bucket.job_class);
    }
  }
  Start();
}

void Lanes::Fill(QueueId queue) {
  Lane& lane = lanes_[queue];
  lane.filled = true;
  for (const auto id : cluster_.waiting().OfQueue(queue)) {
    const Bucket& bucket = cluster_.waiting().bucket(id);
    if (bucket.waiters().empty() || dead_[bucket.job_class]) continue;
    if (claims_ && !claims_(bucket)) continue;
    lane.entries.push_back({id, 0, bucket.waiters()[0], bucket.job_class});
  }
  Choose(queue);
}

// Finds the head of the queue's lane and tells the order what it would cost.
void Lanes::Choose(QueueId queue) {
  Lane& lane = lanes_[queue];
  lane.best = kNone;
  for (std::uint32_t i = 0; i < lane.entries.size();) {
    Entry& entry = lane.entries[i];
    if (dead_[entry.job_class] || entry.waiter.job == kNone) {
      entry = lane.entries.back();
      lane.entries.pop_back();
      continue;
    }
    if (lane.best == kNone || entry.waiter.key < lane.entries[lane.best].waiter.key) lane.best = i;
    ++i;
  }
  if (lane.best == kNone) {
    order_.Withdraw(queue);
  } else {
    order_.Offer(queue, cluster_.job_class(lane.entries[lane.best].job_class).cost);
  }
}

std::optional<Lanes::Head> Lanes::Next() {
  for (;;) {
    current_ = order_.Next();
    if (current_ == kNone || live_ == 0) return std::nullopt;
    const Lane& lane = lanes_[current_];
    if (!lane.filled) {
      Fill(current_);  // which may show that another queue comes first
      continue;
    }
    const Entry& entry = lane.entries[lane.best];
    if (!dead_[entry.job_class]) return Head{entry.waiter.job, entry.job_class};
    Choose(current_);
  }
}

void Lanes::Advance(Lane& lane, bool whole_bucket) {
  Entry& entry = lane.entries[lane.best];
  if (entry.bucket != kNone && !whole_bucket) {
    const auto waiters = cluster_.waiting().bucket(entry.bucket).waiters();
    if (++entry.cursor < waiters.size()) {
      entry.waiter = waiters[entry.cursor];
      return;
    }
  }
  entry.waiter.job = kNone;
}

void Lanes::Served(const JobState& job) {
  Lane& lane = lanes_[current_];
  const JobId id = lane.entries[lane.best].waiter.job;
  Advance(lane, false);
  if (job.pending > 0) {
    Entry back;
    back.waiter = {{-job.priority, 1 + job.Surplus(), job.submitted_ms, job.sequence}, id};
    back.job_class = cluster_.ClassOf(id);
    if (dead_.size() <= back.job_class) dead_.resize(back.job_class + 1, false);
    live_ += dead_[back.job_class] ? 1 : 0;
    dead_[back.job_class] = false;
    lane.entries.push_back(back);
  }
  Choose(current_);
}

void Lanes::SkipJob() {
  Lane& lane = lanes_[current_];
  const auto& job_class = cluster_.job_class(lane.entries[lane.best].job_class);
  Advance(lane, job_class.exact);
  Choose(current_);
}

void Lanes::SkipClass() {
  dead_[lanes_[current_].entries[lanes_[current_].best].job_class] = true;
  --live_;
  Choose(current_);
}

}  // namespace muster::engine
