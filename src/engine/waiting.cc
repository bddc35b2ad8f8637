#include "engine/waiting.h"

#include <algorithm>

#include "base/check.h"

namespace muster::engine {
namespace {

auto Find(Bucket& bucket, const WaitKey& key) {
  const auto first = bucket.storage.begin() + static_cast<std::ptrdiff_t>(bucket.head);
  return std::lower_bound(first, bucket.storage.end(), key,
                          [](const Waiter& waiter, const WaitKey& k) { return waiter.key < k; });
}

}  // namespace

void WaitingIndex::Insert(QueueId queue, ClassId job_class, const WaitKey& key, JobId job) {
  const auto [found, added] =
      by_key_.try_emplace({queue, job_class}, static_cast<std::uint32_t>(buckets_.size()));
  if (added) {
    if (of_class_.size() <= job_class) of_class_.resize(job_class + 1);
    if (of_queue_.size() <= queue) of_queue_.resize(queue + 1);
    const BucketHead none{{}, found->second, queue, job_class, kNone};
    buckets_.push_back(
        {queue, job_class, 0, of_class_[job_class].size(), of_queue_[queue].size(), {}});
    of_class_[job_class].push_back(none);
    of_queue_[queue].push_back(none);
  }
  Bucket& bucket = buckets_[found->second];
  const auto place = Find(bucket, key);
  if (bucket.head > 0 &&
      place == bucket.storage.begin() + static_cast<std::ptrdiff_t>(bucket.head)) {
    bucket.storage[--bucket.head] = {key, job};
  } else {
    bucket.storage.insert(place, {key, job});
  }
  UpdateHead(bucket);
  if (where_.size() <= job) where_.resize(job + 1);
  where_[job] = {found->second, key};
  if (in_queue_.size() <= queue) in_queue_.resize(queue + 1);
  ++in_queue_[queue][key.minus_priority];
  if (in_class_.size() <= job_class) in_class_.resize(job_class + 1, 0);
  ++in_class_[job_class];
  ++size_;
}

void WaitingIndex::Erase(JobId job) {
  if (!Contains(job)) return;
  Bucket& bucket = buckets_[where_[job].bucket];
  const auto place = Find(bucket, where_[job].key);
  MUSTER_CHECK(place != bucket.storage.end(), "waiting index out of step");
  MUSTER_CHECK(place->job == job, "waiting index out of step");
  if (place == bucket.storage.begin() + static_cast<std::ptrdiff_t>(bucket.head)) {
    ++bucket.head;
  } else {
    bucket.storage.erase(place);
  }
  --in_class_[bucket.job_class];
  if (2 * bucket.head >= bucket.storage.size()) {  // half of it is empty
    bucket.storage.erase(bucket.storage.begin(),
                         bucket.storage.begin() + static_cast<std::ptrdiff_t>(bucket.head));
    bucket.head = 0;
  }
  UpdateHead(bucket);
  where_[job].bucket = kNone;
  auto& priorities = in_queue_[bucket.queue];
  const auto same = priorities.find(where_[job].key.minus_priority);
  if (--same->second == 0) priorities.erase(same);
  --size_;
}

void WaitingIndex::UpdateHead(const Bucket& bucket) {
  const auto waiters = bucket.waiters();
  for (BucketHead* head :
       {&of_class_[bucket.job_class][bucket.in_class], &of_queue_[bucket.queue][bucket.in_queue]}) {
    head->job = waiters.empty() ? kNone : waiters[0].job;
    if (!waiters.empty()) head->key = waiters[0].key;
  }
}

std::span<const BucketHead> WaitingIndex::OfClass(ClassId job_class) const {
  if (job_class >= of_class_.size()) return {};
  return of_class_[job_class];
}

std::span<const BucketHead> WaitingIndex::OfQueue(QueueId queue) const {
  if (queue >= of_queue_.size()) return {};
  return of_queue_[queue];
}

}  // namespace muster::engine
