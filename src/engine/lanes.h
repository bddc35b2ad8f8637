// Lanes: the waiting jobs that one step of a cycle considers, in the order in which it serves them.
//
// A step opens the lanes with a test of job classes: only queues with a job of a class that could
// be helped get a lane, so that the step's cost grows with what may happen, not with what waits. A
// served job that wants more comes back at its new place in the order. The waiting index is not
// changed.
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
      : cluster_(cluster), order_(cluster.queues()), lanes_(cluster.queues().size()) {}

  // All queues that have a job of a class that passes the test.
  void Open(const std::function<bool(ClassId)>& may_be_helped);
  // These queues, with the jobs whose buckets pass the test.
  void Open(std::span<const QueueId> queues, std::function<bool(const Bucket&)> may_claim);
  std::optional<Head> Next();  // the job that is to be looked at now

  // What became of it:
  void Served(const JobState& job);  // got a piece; comes back if it wants more
  void SkipJob();                    // could not be served, nor can its equals in this queue
  void SkipClass();                  // nobody of its class can be served any more

  bool Exhausted(QueueId queue) const {
    return lanes_[queue].entries.empty() && (lanes_[queue].filled || lanes_[queue].best == kNone);
  }

 private:
  struct Entry {  // one bucket, or with bucket == kNone a job that came back
    std::uint32_t bucket = kNone;
    std::uint32_t cursor = 0;
    Waiter waiter;
    ClassId job_class = kNone;
  };
  struct Lane {
    bool filled = false;  // entries are listed when the queue is first served
    Entry head;           // until then the best of them
    std::vector<Entry> entries;
    std::uint32_t best = kNone;
  };

  void Consider(const BucketHead& head, ClassId job_class);
  void Start();
  void Fill(QueueId queue);
  void Advance(Lane& lane, bool whole_bucket);
  void Choose(QueueId queue);
  void Close();

  Cluster& cluster_;
  QueueOrder order_;
  std::vector<Lane> lanes_;
  std::vector<bool> dead_;  // by class: failed the test, or cannot be served any more
  std::size_t live_ = 0;    // classes that are not dead
  std::vector<QueueId> opened_;
  std::function<bool(const Bucket&)> claims_;  // the test of buckets, if there is one
  QueueId current_ = kNone;
};

}  // namespace muster::engine
