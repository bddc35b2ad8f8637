// When the jobs that run are expected to end, and room as it will be then.
#include <algorithm>

#include "engine/cluster.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kShortestMs = 60'000;  // no job is expected to take less

}  // namespace

void Cluster::SetExpected(JobId job, std::int64_t expected_ms) {
  jobs_[job].expected_ms = expected_ms;
  NoteEnd(job);
}

std::int64_t Cluster::TakesMs(const JobState& job) const {
  return job.expected_ms < 0 ? policy_.assumed_runtime_ms : std::max(kShortestMs, job.expected_ms);
}

void Cluster::NoteEnd(JobId id) {
  if (end_open_.size() <= id) {
    end_open_.resize(id + 1, 0);
    end_of_.resize(id + 1, 0);
  }
  if (end_open_[id] != 0) return;
  end_open_[id] = 1;
  ends_changed_.push_back(id);
}

// Follows from facts and the time alone, so that a cluster that is built anew knows the same.
std::int64_t Cluster::EndOf(const JobState& job, std::int64_t now_ms) const {
  std::int64_t since = now_ms;
  for (const auto& worker : job.workers) {
    if (worker.place.Holds() && !worker.place.fresh) since = std::min(since, worker.started_ms);
  }
  std::int64_t takes = TakesMs(job);
  while (since + takes <= now_ms) takes += takes / 2;
  return since + takes;
}

void Cluster::RefreshEnds(std::int64_t now_ms) {
  while (!ends_.empty() && ends_.begin()->first <= now_ms) {  // they take longer than expected
    const JobId id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    end_of_[id] = 0;
    NoteEnd(id);
  }
  for (const JobId id : ends_changed_) {
    end_open_[id] = 0;
    const JobState& job = jobs_[id];
    const auto end = job.present && job.active > 0 ? EndOf(job, now_ms) : 0;
    if (end == end_of_[id]) continue;
    if (end_of_[id] != 0) ends_.erase({end_of_[id], id});
    if (end != 0) ends_.insert({end, id});
    end_of_[id] = end;
  }
  ends_changed_.clear();
}

const Cluster::Ends& Cluster::EndsAfter(std::int64_t now_ms) {
  RefreshEnds(now_ms);
  return ends_;
}

void Cluster::Vacate(JobId id, int sign) {
  for (const auto& worker : jobs_[id].workers) {
    if (!worker.place.Holds()) continue;
    nodes_->Occupy(worker.place.bank, TakeOf(worker, worker.place.bank, worker.place.devices),
                   In(Mode::kFuture), -sign);
  }
}

void Cluster::Keep(const Hold& hold, int sign) {
  Take take;
  take.devices = hold.devices;
  take.whole = true;
  take.host = hold.host;
  nodes_->Occupy(hold.bank, take, kInAll, sign);
}

}  // namespace muster::engine
