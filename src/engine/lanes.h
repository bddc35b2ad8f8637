// Lanes: the waiting jobs that one step of a cycle considers, in the order in which it serves them.
//
// A step opens the lanes with a test of job classes, so that its cost grows with what may happen,
// not with what waits: the lane of a queue is filled when the queue might be served next. A served
// job that wants more comes back at its new place in the order. The waiting index is not changed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/cluster.h"
#include "engine/order.h"

namespace muster::engine {

class Lanes {
 public:
  struct Head {
    JobId job = kNone;
    ClassId job_class = kNone;
  };

  explicit Lanes(Cluster& cluster)
      : cluster_(cluster),
        order_(cluster.queues(), [this](QueueId queue) { return NextCost(queue); }),
        lanes_(cluster.queues().size()) {}

  // All queues, with the jobs of the classes that pass the test.
  void Open(const std::function<bool(ClassId)>& may_be_helped);
  // These queues, with the jobs whose buckets pass the test.
  void Open(std::span<const QueueId> queues,
            const std::function<bool(const BucketHead&)>& may_claim);
  std::optional<Head> Next();  // the job that is to be looked at now

  // What became of it:
  void Served(const JobState& job);  // got a piece; comes back if it wants more
  void SkipJob();                    // could not be served, for reasons of its own
  void SkipEquals();                 // nor can its equals in this queue
  void SkipClass();                  // nobody of its class can be served any more

  bool Exhausted(QueueId queue) const;  // all that the queue was opened with was looked at

 private:
  struct Entry {  // one bucket, or with bucket == kNone a job that came back
    std::uint32_t bucket = kNone;
    std::uint32_t cursor = 0;
    Waiter waiter;
    ClassId job_class = kNone;

    static Entry Of(const BucketHead& head) {
      return {head.bucket, 0, {head.key, head.job}, head.job_class};
    }
  };
  struct Lane {
    bool filled = false;
    std::vector<Entry> entries;
    std::uint32_t best = kNone;
  };

  const Vec* NextCost(QueueId queue);
  void Fill(QueueId queue);
  void FindBest(Lane& lane);
  void Advance(Lane& lane, bool whole_bucket);
  void Close();

  Cluster& cluster_;
  QueueOrder order_;
  std::vector<Lane> lanes_;
  std::vector<bool> dead_;       // by class: failed the test, or cannot be served any more
  std::size_t live_ = 0;         // classes that are not dead
  std::vector<QueueId> opened_;  // queues whose lanes are filled
  QueueId current_ = kNone;
};

}  // namespace muster::engine
