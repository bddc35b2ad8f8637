// Resizing: the step of a cycle that gives the jobs of a queue the sizes and GPU types that pay
// best.
//
// A queue takes part once one of its jobs has reported its speed; then all its preemptible jobs
// whose workers have whole GPUs are looked at together, not more often than the policy says and
// only when something has changed. What they may hold together is the queue's fair share; how it is
// divided and where the workers sit is engine/elastic.h, but for jobs that wish for a place, whose
// workers are placed by the ordinary rules. Workers whose seat is given up are told to leave; the
// others of their job are promised theirs, or start where room is free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster.h"
#include "engine/elastic.h"
#include "engine/placement.h"

namespace muster::engine {

class Resizing {
 public:
  Resizing(Cluster& cluster, Placement& placement) : cluster_(cluster), placement_(placement) {}

  // Not more often than the policy says, and only when something has changed.
  bool Due(std::int64_t now_ms) const;
  // Those whose sizes are found together, and reservations.
  struct Held {
    std::vector<JobId> reserved;    // would have room kept for themselves
    std::vector<JobId> counted_on;  // others wait for their end: what they have is not given away
  };
  // Told which jobs are divided among next: what it keeps is not there for them.
  using KeepRoom = std::function<Held(std::span<const JobId> jobs)>;
  void Run(std::int64_t now_ms, const KeepRoom& keep_room);
  struct Told {
    WorkerRef leaves;
    JobId whom;  // who gets most of its job's places; its own job where nobody does
  };
  // Workers that the last run told to leave, and jobs whose target it changed.
  std::span<const Told> told() const { return told_; }
  std::span<const JobId> changed() const { return changed_; }

 private:
  struct Candidate {
    JobId job = kNone;
    int each = 1;          // GPUs of a worker
    int held = 0;          // GPUs that it has,
    TypeId type = kNone;   // of one type; kNone: of several, or none
    bool wished = false;   // for a place
    ElasticChoice choice;  // by type
  };
  // The banks of one type, and the GPUs there that the candidates have or could have.
  struct Hall {
    std::vector<BankId> banks;
    std::vector<int> room;
    int node = 0;   // GPUs of the largest one
    int there = 0;  // in all
  };
  // What a candidate is to have; for one that wishes for a place, only how many.
  struct Part {
    TypeId type = kNone;
    int gpus = 0;
    bool stays = false;  // as it is
    std::vector<BankId> seats;
  };

  static int LeastOf(const JobState& job);
  std::vector<JobId> JobsOf(QueueId queue) const;
  void SetFree(QueueId queue);
  void CompareTypes();
  double RatioOf(const std::string& from, const std::string& to) const;
  bool TakesPart(const JobState& job) const;
  int EachOf(const JobState& job) const;
  const Shape& ShapeOf(const Candidate& candidate) const;
  std::vector<Candidate> List(QueueId queue) const;
  std::vector<TypeId> TypesOf(const Candidate& candidate) const;
  void Survey(std::span<const Candidate> candidates);
  int Reach(const Candidate& candidate, TypeId type) const;
  double Goodput(const Candidate& candidate, TypeId type, int workers) const;
  double LogGoodput(const Candidate& candidate, TypeId type, int workers) const;
  double LeastLogGoodput(const Candidate& candidate) const;
  double WeightOf(const JobState& job) const;
  double CostMs(const JobState& job, bool restarts) const;
  ElasticJob Weigh(const Candidate& candidate, TypeId type) const;
  int Budget(QueueId queue, std::span<const Candidate> candidates) const;
  int RoomOf(QueueId queue, TypeId type, std::span<const Candidate> candidates) const;
  void Divide(QueueId queue, const KeepRoom& keep_room);
  void LeaveOutTheLast(std::vector<Candidate>& candidates, const KeepRoom& keep_room);
  void DivideTogether(QueueId queue, std::vector<Candidate> candidates, const KeepRoom& keep_room);
  void DivideAmong(QueueId queue, std::vector<Candidate>& candidates,
                   std::span<const JobId> reserved, std::vector<JobId>& stuck);
  std::vector<Part> PartsOf(std::span<const Candidate> candidates,
                            std::span<const ElasticPart> found) const;
  bool Seat(std::span<const Candidate> candidates, std::vector<Part> parts, bool all_types,
            std::vector<JobId>& stuck);
  bool SeatType(TypeId type, std::span<const Candidate> candidates, std::vector<Part>& parts,
                const std::map<BankId, int>& kept) const;
  std::map<BankId, int> TryWished(std::span<const Candidate> candidates, std::vector<Part>& parts,
                                  std::vector<JobId>& stuck);
  std::vector<WorkerRef> Leavers(const Candidate& candidate, const Part& part) const;
  void Take(const Candidate& candidate, const Part& part);
  void PlaceWished(const Candidate& candidate, const Part& part);
  bool WithinBounds(const JobState& job) const;
  void Tell(std::span<const WorkerRef> leavers, std::span<const Candidate> candidates);

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_ = 0;
  std::optional<std::int64_t> last_ms_;
  std::uint64_t seen_ = 0;                // facts, at the last run
  std::vector<bool> divided_;             // by queue: its jobs have targets
  std::vector<Hall> halls_;               // by type, as they are for the queue that is looked at
  std::map<BankId, std::uint64_t> open_;  // by bank: the GPUs in `room`
  // By two types: log of what a GPU of the second does against one of the first, and by how many
  // jobs that is known.
  std::map<std::pair<std::string, std::string>, std::pair<double, int>> ratios_;
  std::vector<Told> told_;
  std::vector<JobId> changed_;
};

}  // namespace muster::engine
