// Job: what somebody wants run, as a value.
//
// A job is a tree of groups; the leaves hold roles, a role is a number of identical workers. A
// group states the minimum below which it does not run: workers for a leaf, groups for an inner
// one. Workers above the minimum are elastic: they come and go one by one. groups[0] is the root.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/queue.h"
#include "model/resources.h"

namespace muster::model {

enum class Framework : std::uint8_t {
  kNone,
  kTorch,
  kTensorflow,
  kHorovod,
  kMpi,
  kDeepspeed,
  kRay,
  kMuster
};

// Levels are names of the topology's levels; empty means no wish.
struct TopologyWish {
  std::string topology;  // empty: the cluster's only one
  std::string require;   // all workers inside one domain of this level, or wait
  std::string prefer;    // this level first, wider if it cannot be
  friend bool operator==(const TopologyWish&, const TopologyWish&) = default;
};

struct Group {
  std::string name;
  int parent = -1;  // index into Job::groups; -1 for the root
  int minimum = 1;  // workers (leaf) or groups (inner)
  TopologyWish topology;
  friend bool operator==(const Group&, const Group&) = default;
};

struct Role {
  std::string name;
  int group = 0;  // index of a leaf in Job::groups
  int count = 1;  // workers at full size
  WorkerRequest request;
  std::vector<std::string> gpu_types;                  // ordered preference; empty: any
  std::optional<std::vector<std::string>> node_names;  // only on these, where set
  int priority = 0;                                    // higher roles get their workers first
  friend bool operator==(const Role&, const Role&) = default;
};

struct Checkpoint {
  std::string dir;
  std::string signal;
  std::int64_t grace_ms = 30'000;
  std::int64_t every_ms = 0;         // declared interval; 0: not known
  std::int64_t restart_cost_ms = 0;  // what a restart costs beside the lost work
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

struct Limits {
  std::int64_t time_ms = 0;  // 0: none
  std::int64_t idle_ms = 0;
  int retries = 0;
  friend bool operator==(const Limits&, const Limits&) = default;
};

enum class AfterCondition : std::uint8_t { kOk, kAny, kFailed };

struct Dependency {
  std::string job;
  AfterCondition condition = AfterCondition::kOk;
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct ArrayRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t at_once = 0;  // 0: no bound
  friend bool operator==(const ArrayRange&, const ArrayRange&) = default;
};

struct Job {
  std::string name;
  std::string queue;
  JobKind kind = JobKind::kTrain;
  std::int64_t priority = 50;
  bool preemptible = true;
  std::vector<Group> groups;
  std::vector<Role> roles;
  Labels nodes;              // label selector
  bool same_device = false;  // members may share one GPU
  Framework framework = Framework::kNone;
  std::vector<std::string> command;
  std::string workdir;
  std::string image;
  bool terminal = false;  // its workers have a terminal each, to attach to
  std::string job_template;
  std::map<std::string, std::string> env;
  Labels labels;
  Checkpoint checkpoint;
  Limits limits;
  std::vector<Dependency> after;
  std::optional<ArrayRange> array;
  std::int64_t preemption_delay_ms = 0;  // causes no eviction until it is that old
  std::optional<std::int64_t> stale_grace_ms =
      60'000;  // below its minimum that long: evicted; unset: never
  friend bool operator==(const Job&, const Job&) = default;
};

inline constexpr std::int64_t kFirstFixedPriority = 100;  // from here on not preemptible by default

// Build work holds a fixed share and is never taken away inside it; the rest goes by priority.
inline bool PreemptibleByDefault(const Job& job) {
  return job.kind != JobKind::kBuild && job.priority < kFirstFixedPriority;
}

// GPUs that all its workers would hold, in thousandths; memory of a GPU counts as all of it.
inline std::int64_t AskedGpuMilli(const Job& job) {
  std::int64_t asked = 0;
  for (const auto& role : job.roles) {
    const auto& gpu = role.request.gpu;
    const auto each = gpu.kind == GpuKind::kShare ? gpu.share_milli : kMilli;
    asked += role.count * gpu.devices * each;
  }
  return asked;
}

}  // namespace muster::model
