// State: everything the controller knows, as a fold of the journal.
//
// Fold() applies one event and decides nothing, so that the same events give the same state on any
// machine. Jobs that have ended stay for a while (kEndedKept of them), so that the last ones can be
// asked for without reading the store; older ones live in the history only. A snapshot is the whole
// state as bytes. Ids grow and are never reused.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/queue.h"
#include "state/job_order.h"
#include "state/records.h"
#include "state/request_keys.h"

namespace muster::state {

inline constexpr std::size_t kEndedKept = 1'000;

class State {
 public:
  void Fold(const model::Event& event);

  std::uint64_t revision() const { return revision_; }  // events folded so far
  std::int64_t last_ms() const { return last_ms_; }     // of the latest event
  JobNumber next_job() const { return next_job_; }
  const std::map<JobNumber, JobRecord>& jobs() const { return jobs_; }
  const std::map<JobNumber, ArrayRecord>& arrays() const { return arrays_; }
  const std::map<std::string, NodeRecord>& nodes() const { return nodes_; }
  const std::vector<model::Queue>& queues() const { return queues_; }
  // Of one of queues(): when it came and when it last changed.
  QueueRecord RecordOf(const std::string& queue) const;
  const std::map<std::string, UserRecord>& users() const { return users_; }     // by name
  const std::map<std::string, TokenRecord>& tokens() const { return tokens_; }  // by id
  // The latest kPoliciesKept, oldest first; the last is in force. Empty: the defaults are.
  const std::vector<PolicyRecord>& policies() const { return policies_; }
  const std::map<std::string, ReservationRecord>& reservations() const { return reservations_; }
  const std::map<std::string, std::int64_t>& past_use() const { return past_use_; }
  std::int64_t past_use_ms() const { return past_use_ms_; }
  const JobRecord* Find(JobNumber job) const;
  // Of the GPUs that the job holds; empty: unnamed, or it holds none.
  std::string GpuTypeOf(const JobRecord& job) const;
  const ArrayRecord* FindArray(JobNumber array) const;
  // The jobs and arrays of that name that are still remembered, oldest first.
  std::span<const JobNumber> Named(const std::string& name) const;
  const RequestKeys& requests() const { return requests_; }
  // The jobs that wait for this job or array to end.
  std::span<const JobNumber> Followers(JobNumber job) const;
  // Those that the last event released: one thing less to wait for.
  std::span<const JobNumber> released() const { return released_; }
  // Tasks of the array that hold a place.
  std::int64_t ActiveTasks(JobNumber array) const;
  // For whoever shows lists: from now on the orders are kept as well.
  void KeepOrder() { order_.kept.emplace(jobs_); }
  const JobOrder& order() const { return *order_.kept; }
  std::size_t live_jobs() const { return jobs_.size() - ended_.size(); }
  std::uint64_t ended_jobs() const { return ended_jobs_; }  // so far, forgotten ones too

  std::string Encode() const;
  static Result<State> Decode(std::string_view bytes);

 private:
  struct Folder;
  friend struct Folder;
  template <typename V>
  friend void Fields(V& v, State& state);
  void Index();
  void Follow(const JobRecord& job);
  void Release(JobNumber ended);
  void Forget(JobNumber job);
  void Insert(JobRecord job);
  void Respec(JobRecord& job, std::shared_ptr<const model::Job> spec);

  std::uint64_t revision_ = 0;
  std::int64_t last_ms_ = 0;
  JobNumber next_job_ = 1;
  std::map<JobNumber, JobRecord> jobs_;
  std::map<JobNumber, ArrayRecord> arrays_;
  std::map<std::string, NodeRecord> nodes_;
  std::vector<model::Queue> queues_;
  std::map<std::string, QueueRecord> queue_records_;  // by name
  std::map<std::string, std::int64_t> past_use_;      // by queue: decayed GPU-milliseconds
  std::int64_t past_use_ms_ = 0;                      // when it was noted
  std::deque<JobNumber> ended_;                       // oldest first
  std::uint64_t ended_jobs_ = 0;
  RequestKeys requests_;
  std::map<std::string, UserRecord> users_;
  std::map<std::string, TokenRecord> tokens_;
  std::vector<PolicyRecord> policies_;
  std::map<std::string, ReservationRecord> reservations_;  // by name
  // Not part of a snapshot: follows from the above.
  std::unordered_map<std::string, std::vector<JobNumber>> by_name_;
  std::unordered_map<JobNumber, std::vector<JobNumber>> followers_;
  std::vector<JobNumber> released_;
  std::unordered_map<JobNumber, std::int64_t> active_tasks_;
  // A copy of the state keeps none: what an order points to belongs to the original.
  struct Order {
    Order() = default;
    Order(const Order& /*other*/) {}
    Order(Order&&) = default;
    Order& operator=(const Order& /*other*/) {
      kept.reset();
      return *this;
    }
    Order& operator=(Order&&) = default;
    ~Order() = default;
    std::optional<JobOrder> kept;
  } order_;
};

}  // namespace muster::state
