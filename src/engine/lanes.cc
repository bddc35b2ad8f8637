#include "engine/lanes.h"

namespace muster::engine {

void Lanes::Close() {
  order_.Clear();
  for (const QueueId queue : opened_) lanes_[queue].entries.clear();
  opened_.clear();
  dead_.assign(cluster_.class_count(), false);
}

void Lanes::Open(const std::function<bool(ClassId)>& may_be_helped) {
  const auto& waiting = cluster_.waiting();
  Close();
  for (ClassId c = 0; c < cluster_.class_count(); ++c) {
    const auto buckets = waiting.OfClass(c);
    if (buckets.empty() || !may_be_helped(c)) continue;
    for (const auto id : buckets) {
      const Bucket& bucket = waiting.bucket(id);
      if (bucket.waiters().empty()) continue;
      if (lanes_[bucket.queue].entries.empty()) opened_.push_back(bucket.queue);
      lanes_[bucket.queue].entries.push_back({id, 0, bucket.waiters()[0], c});
    }
  }
  for (const QueueId queue : opened_) Choose(queue);
}

void Lanes::Open(std::span<const QueueId> queues,
                 const std::function<bool(const Bucket&)>& may_claim) {
  const auto& waiting = cluster_.waiting();
  Close();
  for (const QueueId queue : queues) {
    for (const auto id : waiting.OfQueue(queue)) {
      const Bucket& bucket = waiting.bucket(id);
      if (bucket.waiters().empty() || !may_claim(bucket)) continue;
      lanes_[queue].entries.push_back({id, 0, bucket.waiters()[0], bucket.job_class});
    }
    if (lanes_[queue].entries.empty()) continue;
    opened_.push_back(queue);
    Choose(queue);
  }
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
    if (current_ == kNone) return std::nullopt;
    const Lane& lane = lanes_[current_];
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
  Choose(current_);
}

}  // namespace muster::engine
