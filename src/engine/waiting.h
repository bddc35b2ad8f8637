// WaitingIndex: the jobs that ask for something, by queue and class.
//
// All jobs of one class in one queue sit in one bucket, in job order: equal verdicts, so only the
// head of a bucket is ever tried. From a class one reaches all its buckets, which is how a cycle
// visits only the queues that have a job which could fit. Taking the head costs nothing, other
// changes the length of one bucket.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/ids.h"

namespace muster::engine {

// The order of jobs inside a queue: priority, jobs below their minimum before those above it, among
// the latter the one with the fewest workers above its minimum, age, arrival.
struct WaitKey {
  std::int64_t minus_priority = 0;
  std::uint32_t surplus_rank = 0;  // 0: below its minimum, else 1 + workers above it
  std::int64_t submitted_ms = 0;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
  friend bool operator==(const WaitKey&, const WaitKey&) = default;
};

struct Waiter {
  WaitKey key;
  JobId job = kNone;
};

// Jobs leave a bucket at its head nearly always, so the head moves instead of the jobs.
struct Bucket {
  QueueId queue = kNone;
  ClassId job_class = kNone;
  std::size_t head = 0;
  std::size_t in_class = 0;     // position among the heads of its class
  std::size_t in_queue = 0;     // and of its queue
  std::vector<Waiter> storage;  // sorted by key from `head` on

  std::span<const Waiter> waiters() const { return std::span(storage).subspan(head); }
};

// The head of a bucket, kept where all buckets of its class or its queue are looked through.
struct BucketHead {
  WaitKey key;
  std::uint32_t bucket = kNone;
  QueueId queue = kNone;
  ClassId job_class = kNone;
  JobId job = kNone;  // kNone: the bucket is empty
};

class WaitingIndex {
 public:
  void Insert(QueueId queue, ClassId job_class, const WaitKey& key, JobId job);
  void Erase(JobId job);
  bool Contains(JobId job) const { return job < where_.size() && where_[job].bucket != kNone; }
  std::size_t size() const { return size_; }

  const Bucket& bucket(std::uint32_t id) const { return buckets_[id]; }
  // Buckets may be empty; the ids stay valid for ever.
  std::span<const BucketHead> OfClass(ClassId job_class) const;
  std::span<const BucketHead> OfQueue(QueueId queue) const;
  bool AnyOf(ClassId job_class) const {
    return job_class < in_class_.size() && in_class_[job_class] > 0;
  }
  const WaitKey& key(JobId job) const { return where_[job].key; }
  std::uint32_t bucket_of(JobId job) const { return where_[job].bucket; }
  // By minus priority, so that the highest comes first.
  using Priorities = std::map<std::int64_t, std::uint32_t>;
  const Priorities* PrioritiesIn(QueueId queue) const {
    return queue < in_queue_.size() ? &in_queue_[queue] : nullptr;
  }

 private:
  struct Where {
    std::uint32_t bucket = kNone;
    WaitKey key;
  };
  std::vector<Bucket> buckets_;
  std::map<std::pair<QueueId, ClassId>, std::uint32_t> by_key_;
  void UpdateHead(const Bucket& bucket);
  std::vector<std::vector<BucketHead>> of_class_;
  std::vector<std::vector<BucketHead>> of_queue_;
  std::vector<Priorities> in_queue_;
  std::vector<std::size_t> in_class_;
  std::vector<Where> where_;  // by job
  std::size_t size_ = 0;
};

}  // namespace muster::engine
