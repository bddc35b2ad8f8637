// Past: what was asked of a cluster and what it did, so that it can be decided again.
//
// The nodes, queues and topologies of a cluster, and its jobs: who asked for what and when, and how
// much work it was. Work is counted in thousandths of a worker's millisecond, so that an elastic
// job has the same amount of it at any size; where a job told its speed, a worker counts as much as
// it added. Beside that stands how it really went, where that is known. A past comes from a journal
// or from a public trace; PlayPast decides it again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/goodput.h"
#include "model/event.h"
#include "model/node.h"
#include "model/queue.h"
#include "sim/jobs/trace_job.h"
#include "state/records.h"

namespace muster::sim {

using model::JobNumber;

// How it really went.
struct Truth {
  std::int64_t started_ms = 0;  // for the first time
  std::int64_t ended_ms = 0;    // 0: it has not ended
  std::int64_t ran_ms = 0;
  std::int64_t gpu_milli = 0;  // held at the end
  std::int64_t pauses = 0;
};

struct PastJob {
  JobNumber id = 0;  // grow with the time of submission
  std::shared_ptr<const model::Job> spec;
  std::vector<int> roles;  // of its workers, in the engine's order; empty: there is only one
  std::string user;
  JobNumber array = 0;  // the array it is a task of; tasks are numbered from it on
  std::int64_t submitted_ms = 0;
  std::int64_t work = 0;
  bool checkpoints = false;  // goes on from its last checkpoint, or from where it was stopped
  bool tells = false;        // says when it has written one
  bool regroups = false;     // all of its workers start anew when their number changes
  bool counted = true;       // in the figures; others only take up room
  std::vector<JobNumber> after;
  std::shared_ptr<const state::SpeedRecord> speed;
  std::int64_t pause_ms = -1;  // that a change of its size costs; -1: its workers told of none
  // How long it was expected to take, 0 where nothing was known; none: from those that ended
  // before.
  std::optional<std::int64_t> expected_ms;
  Truth truth;
};

struct Past {
  std::int64_t from_ms = 0;  // the stretch that is looked at
  std::int64_t to_ms = 0;    // 0: until the last job has ended
  std::vector<model::Node> nodes;
  std::vector<model::Queue> queues;
  std::vector<model::Topology> topologies;
  std::vector<PastJob> jobs;     // by id
  std::int64_t left_out = 0;     // jobs that never ran
  std::int64_t still_there = 0;  // jobs that have not ended: counted with what they did so far
  bool recorded = false;         // there is a truth
};

// Where a job works.
struct WorkPlace {
  std::int64_t workers = 0;
  int nodes = 0;
  int gpus = 0;
  std::string gpu_type = {};
};
// How fast a job works there, in thousandths of one worker, on the first of the GPU types that it
// told of.
std::int64_t PaceOf(const engine::JobSpeed* speed, const WorkPlace& place);

std::size_t WorkersOf(const model::Job& spec);
// What a worker of this role holds with these GPUs of a node, in thousandths of one.
std::int64_t HeldMilli(const model::Job& spec, int role, std::uint64_t devices);
// The same of a worker by its number.
std::int64_t HeldMilli(const PastJob& job, std::uint32_t worker, std::uint64_t devices);

// Whether a job of this kind comes back with what it had done.
bool KeepsWork(const model::Job& spec);

// Sorts the jobs and lets each follow those that it names and that are there.
void Finish(Past& past);

// A public trace on so many equal nodes; where no queues are given there is one for each of the
// trace. As everywhere in the lab its jobs keep what they have done, and stopping takes no time.
Result<Past> PastOf(const JobTrace& trace, std::int64_t nodes, std::int64_t gpus_per_node,
                    std::vector<model::Queue> queues);

std::int64_t GpusOf(const Past& past);

}  // namespace muster::sim
