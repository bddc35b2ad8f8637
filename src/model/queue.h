// Queue: a node of the tree that shares the cluster out.
//
// Per resource and, where named, per GPU type: `quota` is guaranteed, `limit` caps, `weight`
// divides what is over. A resource a queue does not name has these values: quota unlimited for
// cores, memory and countables, 0 for GPUs and GPU types; limit none; weight the queue's general
// weight.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/node.h"
#include "model/resources.h"

namespace muster::model {

enum class JobKind : std::uint8_t { kBuild, kTrain, kTune, kServe };

// Where the jobs of a queue, or one kind of them, may run; empty means anywhere.
struct Confinement {
  std::vector<std::string> gpu_types;
  Labels nodes;
  friend bool operator==(const Confinement&, const Confinement&) = default;
};

struct KindRule {
  Confinement confinement;
  std::int64_t idle_ms = 0;  // released after that long without use; 0: never
  friend bool operator==(const KindRule&, const KindRule&) = default;
};

struct Queue {
  std::string name;    // full path: "vision/detection"
  std::string parent;  // empty: top level
  std::int64_t priority = 100;
  std::int64_t created_order = 0;
  Amounts quota;   // kUnlimited is allowed as a value
  Amounts limit;   // absent: none
  Amounts weight;  // thousandths; absent: general_weight_milli
  std::int64_t general_weight_milli = 1000;
  std::int64_t reclaim_min_runtime_ms = 0;  // its jobs are no victims of reclaim before that
  std::int64_t preempt_min_runtime_ms = 0;  // nor of preemption before that
  Confinement confinement;
  std::map<JobKind, KindRule> kinds;
  std::map<std::string, std::string> members;  // "group:vision" -> "user"
  friend bool operator==(const Queue&, const Queue&) = default;
};

}  // namespace muster::model
