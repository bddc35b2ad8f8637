// Cluster: the one mutable state of the engine, with an undo log.
//
// Facts come in through Add*, Remove*, Set* and Report*; a scheduling cycle changes workers only
// through Move(), which keeps nodes, queues, groups and counters in step and logs the place it
// replaced. A trial is a Mark and either nothing (commit) or RollbackTo(mark), in time proportional
// to what it touched. There are no copies of the cluster anywhere. The same calls give the same
// state, byte for byte (see Dump), whatever was tried and rolled back in between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/ids.h"
#include "engine/jobs.h"
#include "engine/nodes.h"
#include "engine/policy.h"
#include "engine/queues.h"
#include "engine/shapes.h"
#include "engine/topology.h"
#include "engine/waiting.h"
#include "engine/worth_index.h"
#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/reservation.h"

namespace muster::engine {

// The steps of a cycle that look for victims.
enum class Step : std::uint8_t { kShrink, kReclaim, kPreempt };

struct Setup {
  std::vector<model::Topology> topologies;
  std::vector<model::Queue> queues;
  std::vector<std::string> countables;  // resources beside GPUs, cores and memory
  Policy policy;
};

// What all jobs of one class ask for first; equal for all of them.
struct JobClass {
  struct Need {
    ShapeId shape;
    std::uint32_t count;
  };
  std::vector<Need> needs;  // what certainly must be placed; with a choice of groups only a part
  Vec cost;
  bool exact = false;  // enough slots for `needs` means that it fits
};

// Room that is kept for somebody: GPUs of a bank, and what a node has beside them.
struct Hold {
  BankId bank = kNone;
  std::uint64_t devices = 0;
  HostVec host{};
};

class Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> Make(Setup setup);

  // --- Facts
  Result<NodeId> AddNode(const model::Node& added);
  // A node that goes down loses its workers; the jobs that had some there ask for new places.
  void SetNodeUp(NodeId node, bool up);
  void SetNodeCordoned(NodeId node, bool cordoned, bool draining);
  // `known_as` where several jobs have one name; otherwise the job's own name, which is unique.
  Result<JobId> AddJob(const model::Job& job, std::int64_t submitted_ms,
                       const std::string& known_as = {});
  void RemoveJob(JobId job);  // finished or cancelled: gives everything back
  void SetHold(JobId job, bool on_hold);
  void SetStaleSince(JobId job, std::int64_t since_ms);
  void ReportCheckpoint(JobId job, std::int64_t at_ms);
  void SetPastUse(QueueId queue, std::int64_t gpu_ms);
  void ReportSpeed(JobId job, const JobSpeed& speed);
  void ReportResizeCost(JobId job, std::int64_t ms);
  // How long it takes from its start, the latest or the next one; -1: nothing is known.
  void SetExpected(JobId job, std::int64_t expected_ms);
  // All that stand.
  void SetReservations(std::vector<model::Reservation> reservations) {
    if (bookings_ != reservations) ++facts_for_sizes_;
    bookings_ = std::move(reservations);
  }
  // A worker as it was found: running, leaving, stuck, failed or succeeded.
  Result<void> ReportWorker(WorkerRef worker, WorkerState state, NodeId node, std::uint64_t devices,
                            std::int64_t started_ms);
  void ReportLeft(WorkerRef worker);  // a leaving worker has gone and asks for a new place

  // --- Reading
  const Policy& policy() const { return policy_; }
  const std::vector<model::Reservation>& reservations() const { return bookings_; }
  const NodeTable& nodes() const { return *nodes_; }
  const TopologyTable& topology() const { return *topology_; }
  const QueueTable& queues() const { return *queues_; }
  // The dimension in which a GPU type is shared out; dims() where no queue names it.
  std::size_t TypeDim(TypeId type) const { return type_dims_[type]; }
  ShapeTable& shapes() { return *shapes_; }
  const ShapeTable& shapes() const { return *shapes_; }
  WorthIndex& worth() { return *worth_; }
  WaitingIndex& waiting() { return waiting_; }
  const WaitingIndex& waiting() const { return waiting_; }
  std::size_t job_slots() const { return jobs_.size(); }
  const JobState& job(JobId id) const { return jobs_[id]; }
  const Worker& worker(WorkerRef ref) const { return jobs_[ref.job].workers[ref.index]; }
  const JobClass& job_class(ClassId id) const { return classes_[id]; }
  std::size_t class_count() const { return classes_.size(); }
  // Whether slot counts allow what every job of the class asks for first.
  bool MayFit(ClassId id, Mode mode);
  JobId FindJob(const std::string& name) const;    // kNone: there is none
  NodeId FindNode(const std::string& name) const;  // kNone: there is none
  std::string WorkerName(WorkerRef ref) const;
  // The workers that hold or are leaving a place on the node, in no particular order.
  std::span<const WorkerRef> WorkersOn(NodeId node) const { return on_node_[node]; }
  // The jobs of a leaf queue that hold something, in no particular order.
  std::span<const JobId> RunningIn(QueueId queue) const { return running_in_[queue]; }
  // The jobs that hold something but less than their minimum, in no particular order.
  std::span<const JobId> Broken() const { return broken_; }
  std::span<const NodeId> Draining() const { return draining_; }
  std::span<const WorkerRef> Promised() const { return hinted_; }
  // The jobs that hold something, by when they are expected to end: after now. Who takes longer
  // than expected is taken to need half as long again.
  using Ends = std::set<std::pair<std::int64_t, JobId>>;
  const Ends& EndsAfter(std::int64_t now_ms);
  std::int64_t TakesMs(const JobState& job) const;  // from its start
  // Grows with every change to what a job of the queue holds or would lose.
  std::uint64_t changes_in(QueueId queue) const { return changes_in_[queue]; }
  // The lowest priority of a preemptible job that holds something; kUnlimited where there is none.
  std::int64_t LowestVictimPriority(QueueId queue) const {
    const auto& held = victim_priorities_[queue];
    return held.empty() ? kUnlimited : held.begin()->first;
  }
  // Whether the queue or an ancestor was above its fair share at the last Unsettle().
  bool AboveShare(QueueId queue) const { return above_[queue] != 0; }
  // Workers and groups above their job's minimum that could be taken back.
  std::int64_t SurplusIn(QueueId queue) const { return surplus_in_[queue]; }
  // A queue for which a step looked for victims in vain keeps that verdict until its own jobs
  // change, room is left over, or new victims appear; a job class likewise for consolidation.
  bool Unsettled(QueueId queue, Step step) const { return (unsettled_[queue] & Bit(step)) != 0; }
  bool UnsettledClass(ClassId id) const { return unsettled_classes_[id]; }
  std::int64_t moves() const { return moves_; }  // changes of place so far, undone ones too
  // Whether the place of a worker, taken or promised, is held by nobody else any more.
  bool RoomIsFree(WorkerRef ref) const;
  // Grows with every fact that the sizes of elastic jobs depend on.
  std::uint64_t facts_for_sizes() const { return facts_for_sizes_; }
  void NoteFactForSizes() { ++facts_for_sizes_; }
  // The GPU type that the job holds, of its first worker that holds one; kNone: none.
  TypeId TypeOf(JobId job) const;
  // Whether its size is given out by goodput, and it could have several types: it has one at a
  // time.
  bool KeepsToType(JobId job) const {
    return jobs_[job].target != kNone && nodes_->type_count() > 1;
  }
  // What the queue is charged for a worker at its place, or would be charged while it waits.
  Vec CostOf(WorkerRef ref) const;
  // GPU-milliseconds that stopping `gpu_milli` of the job now would cost; -1 where nothing is
  // known.
  std::int64_t LostWorkMs(const JobState& job, std::int64_t gpu_milli, std::int64_t now_ms) const;

  // --- Trials
  using Mark = std::size_t;
  Mark mark() const { return log_.size(); }
  void Move(WorkerRef ref, const Place& to);
  // Tells a worker to leave its place: it holds the place no longer but still stands there, unless
  // it was only placed in this cycle.
  void Leave(WorkerRef ref);
  void RollbackTo(Mark mark);
  std::span<const WorkerRef> TouchedSince(Mark mark, std::vector<WorkerRef>& storage) const;
  // Every worker touched since the log was forgotten, with the place it had then.
  void ListChanges(std::vector<std::pair<WorkerRef, Place>>& out) const;
  // Where workers are to go once there is room: promises of the last cycle, in its order. They
  // replace those of the cycle before.
  void SetHints(std::span<const std::pair<WorkerRef, BankId>> hints);
  void SetGate(JobId job, model::Gate gate) { jobs_[job].gate = gate; }
  void SetTarget(JobId job, std::uint32_t workers) { jobs_[job].target = workers; }
  void SetServed(JobId job, std::int64_t gpu_ms, std::int64_t until_ms) {
    jobs_[job].served_gpu_ms = gpu_ms;
    jobs_[job].served_until_ms = until_ms;
  }
  void SetStarted(WorkerRef ref, std::int64_t at_ms) {
    jobs_[ref.job].workers[ref.index].started_ms = at_ms;
    started_[jobs_[ref.job].queue] = 1;
    ++changes_in_[jobs_[ref.job].queue];
    if (const BankId bank = worker(ref).place.bank; bank != kNone)
      left_over_[bank] = LeftOver(bank);
  }
  // For a look ahead, and to be taken back: room as if the job had left, or room that nobody has.
  void Vacate(JobId job, int sign);
  void Keep(const Hold& hold, int sign);
  void KeepWithin(QueueId queue, const Vec& room, bool fixed, int sign) {
    queues_->Keep(queue, room, fixed, sign);
  }
  void SetKept(JobId job, const Kept& kept) {
    jobs_[job].gate = model::Gate::kReserved;
    jobs_[job].kept = kept;
  }
  void ForgetLog() { log_.clear(); }  // what was done stays done
  void BeginCycle() {
    ForgetLog();
    ++cycles_;
  }
  std::uint64_t cycles() const { return cycles_; }  // so far
  void DivideShares();
  void RefreshWaiting(JobId job);  // puts the job where its state says it waits
  ClassId ClassOf(JobId job);      // of what it would ask for next
  void Settle(QueueId queue, Step step) {
    unsettled_[queue] = static_cast<std::uint8_t>(unsettled_[queue] & ~Bit(step));
  }
  // Queues whose own jobs changed since the last call, each once.
  void TakeChangedQueues(std::vector<QueueId>& out);
  void SettleClass(ClassId id) { unsettled_classes_[id] = false; }
  // After the free room was handed out: whoever may hope again does. That is everybody where some
  // of what came free is left, and every claimer where a queue above its share has something new to
  // give.
  void Unsettle();

  void UnsettleAll();

  // Everything that decisions depend on, in one canonical text.
  std::string Dump() const;

 private:
  Cluster() = default;
  struct LogEntry {
    WorkerRef ref;
    Place before;
  };

  void Contribute(JobId id, const Worker& worker, int sign);
  Take TakeOf(const Worker& worker, BankId bank, std::uint64_t devices) const;
  void Occupy(JobId id, const Worker& worker, BankId bank, std::uint64_t devices, ModeSet modes,
              int sign);
  void NoteChanged(QueueId queue);
  void Enlist(std::vector<JobId>& list, JobId id, std::uint32_t JobState::*position, bool on_list);
  void CountActive(JobState& job, std::uint32_t group, int sign);
  JobId PutIntoSlot(JobState state);
  Result<void> AddGroups(const model::Job& job, JobState& state) const;
  Wish Resolve(const model::TopologyWish& wish) const;
  ShapeSpec SpecOf(const model::Job& job, const model::Role& role, QueueId queue) const;
  ClassId InternFresh(const JobState& job);
  ClassId InternExtra(ShapeId shape);
  void AddClass(JobClass made);
  ModeSet ModesOf(const JobState& job, const Place& place) const;
  void ForEachNeed(const JobState& job, std::uint32_t group, JobClass& out) const;
  void AddRequest(JobId id, const Worker& worker, int sign);

  Policy policy_;
  std::unique_ptr<NodeTable> nodes_;
  std::unique_ptr<TopologyTable> topology_;
  std::unique_ptr<QueueTable> queues_;
  std::unique_ptr<ShapeTable> shapes_;
  std::unique_ptr<WorthIndex> worth_;
  std::vector<JobState> jobs_;
  std::vector<JobId> free_slots_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t cycles_ = 0;
  std::uint64_t facts_for_sizes_ = 0;
  std::map<std::string, JobId> job_by_name_;
  std::map<std::string, NodeId> node_by_name_;
  std::vector<std::vector<WorkerRef>> on_node_;
  std::vector<std::vector<JobId>> running_in_;                            // by queue
  std::vector<std::map<std::int64_t, std::uint32_t>> victim_priorities_;  // by queue
  std::vector<std::int64_t> surplus_in_;                                  // by queue
  std::vector<std::uint64_t> changes_in_;                                 // by queue
  std::int64_t moves_ = 0;
  static constexpr std::uint8_t kAllSteps = 7;
  static constexpr std::uint8_t Bit(Step step) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(step));
  }
  std::vector<std::uint8_t> unsettled_;  // by queue: a bit for each step
  std::vector<std::uint8_t> above_;      // by queue: it or an ancestor was above its share
  std::vector<std::uint8_t> started_;    // by queue: something started since Unsettle()
  std::vector<bool> unsettled_classes_;
  // Room that nobody took.
  struct Remainder {
    std::int64_t gpus = 0;  // unoccupied ones times 100 and the class of the largest shared room
    std::int64_t cores = 0;
    std::int64_t memory = 0;
    bool Exceeds(const Remainder& other) const {
      return gpus > other.gpus || cores > other.cores || memory > other.memory;
    }
  };
  Remainder LeftOver(BankId bank) const;
  void RefreshCosts();
  void NodeReturns(NodeId node);
  void NodeLeaves(NodeId node);
  std::vector<Remainder> left_over_;     // by bank, as last seen
  std::vector<QueueId> changed_queues_;  // since they were last taken
  std::vector<BankId> came_free_;        // since the last cycle
  std::int64_t EndOf(const JobState& job, std::int64_t now_ms) const;
  void RefreshEnds(std::int64_t now_ms);
  void NoteEnd(JobId id);
  Ends ends_;
  std::vector<std::int64_t> end_of_;    // by job: as it is in ends_; 0: it is not
  std::vector<JobId> ends_changed_;     // who may end at another time
  std::vector<std::uint8_t> end_open_;  // by job: whether it is among those
  std::vector<JobId> broken_;
  std::vector<NodeId> draining_;
  std::vector<WorkerRef> hinted_;
  std::vector<std::size_t> type_dims_;  // by TypeId: its dimension, or dims() if no queue names it
  std::vector<model::Reservation> bookings_;
  std::vector<JobClass> classes_;
  std::map<std::vector<std::int64_t>, ClassId> class_by_key_;
  WaitingIndex waiting_;
  std::vector<LogEntry> log_;
};

}  // namespace muster::engine
