// VictimList: who may be asked to leave, in the order in which they are asked.
//
// A victim is a unit: one worker above its job's minimum, one group above its parent's minimum, or
// what is left of a job. Order: placed in this very cycle, lowest priority, units above the minimum
// before whole jobs, youngest. Where the lost work of two units is known it decides first; units of
// which nothing is known keep the positions that the plain order gave them. The order is made
// lazily: looking at the first k of n units costs O(n + k log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cluster.h"

namespace muster::engine {

struct VictimUnit {
  enum class Part : std::uint8_t { kWorker, kGroup, kJob };
  JobId job = kNone;
  bool fresh = false;  // placed in this very cycle: leaving costs it nothing
  Part part = Part::kJob;
  std::uint32_t index = 0;  // the worker or the group
  std::uint32_t turn = 0;   // inside its job
  std::int64_t priority = 0;
  std::int64_t submitted_ms = 0;
  std::uint64_t sequence = 0;
  std::int64_t lost_gpu_ms = -1;  // -1: not known

  // The group that must find a place together; kNone: a worker for itself.
  std::uint32_t RehousedAs() const {
    return part == Part::kWorker ? kNone : part == Part::kGroup ? index : 0;
  }
};

// The order in which units are asked, where nothing is known of lost work.
bool AskedBefore(const VictimUnit& a, const VictimUnit& b);

// The preemptible running units by queue, kept until a job of the queue changes.
class RunningUnits {
 public:
  explicit RunningUnits(const Cluster& cluster) : cluster_(cluster) {}
  std::span<const VictimUnit> Of(QueueId queue, std::int64_t now_ms);

 private:
  struct Listed {
    std::uint64_t changes = 0;  // of the queue, at the time
    std::int64_t now_ms = 0;
    bool ages = false;  // lost work grows with time
    std::vector<VictimUnit> units;
  };
  const Cluster& cluster_;
  std::vector<Listed> kept_;
};

class VictimList {
 public:
  // The units of these queues; with `surplus_only` no whole jobs.
  void Build(RunningUnits& running, std::span<const QueueId> queues, std::int64_t now_ms,
             bool surplus_only);
  // The preemptible running units of these jobs.
  void BuildFor(const Cluster& cluster, std::span<const JobId> jobs, std::int64_t now_ms);
  // The i-th unit, or nullptr behind the last.
  const VictimUnit* At(std::size_t i);
  std::size_t size() const { return units_.size(); }
  std::span<const VictimUnit> units() const { return units_; }  // not all in order

  // The workers of the unit that still hold their places.
  static void Workers(const Cluster& cluster, const VictimUnit& unit, std::vector<WorkerRef>& out);

 private:
  void Arrange();

  bool by_lost_work_ = false;
  std::size_t sorted_ = 0;  // units_[0, sorted_) are final, the rest is a heap
  std::vector<VictimUnit> units_;
};

}  // namespace muster::engine
