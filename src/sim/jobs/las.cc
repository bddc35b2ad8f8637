#include "sim/jobs/las.h"

#include "base/check.h"
#include "sim/jobs/play.h"

namespace muster::sim {
namespace {

constexpr std::array<std::int64_t, 2> kLimitsGpuMs = {3'250'000, 7'200'000};

}  // namespace

void Las::Submitted(const JobPlay& play, JobIndex job) {
  MUSTER_CHECK(places_.size() == job, "jobs come in the order of the trace");
  places_.emplace_back();
  Wait(play, job, ++back_);
}

void Las::Ended(const JobPlay& play, JobIndex job) { Leave(play, job); }

std::int64_t Las::NextMs() const { return at_limit_.empty() ? kNeverMs : at_limit_.begin()->first; }

void Las::Wait(const JobPlay& play, JobIndex job, std::int64_t rank) {
  places_[job].rank = rank;
  queues_[places_[job].queue].waiting[play.job(job).gpus].emplace(rank, job);
}

// A running job is taken from its queue's books.
void Las::Leave(const JobPlay& play, JobIndex job) {
  Place& place = places_[job];
  Queue& queue = queues_[place.queue];
  queue.running.erase({place.rank, job});
  queue.running_gpus -= play.job(job).gpus;
  if (place.limit_ms >= 0) at_limit_.erase({place.limit_ms, job});
  place.limit_ms = -1;
}

// Goes to the end of the next queue, behind those who wait there: it has to find its place anew.
void Las::Demote(JobPlay& play) {
  while (!at_limit_.empty() && at_limit_.begin()->first <= play.now_ms()) {
    const JobIndex job = at_limit_.begin()->second;
    Leave(play, job);
    play.Stop(job);
    ++places_[job].queue;
    Wait(play, job, ++back_);
  }
}

// Stops who runs in the queue and no longer fits; returns what is left of the room.
std::int64_t Las::KeepWhoFits(JobPlay& play, Queue& queue, std::int64_t room) {
  if (queue.running_gpus <= room) return room - queue.running_gpus;
  std::vector<JobIndex> stopped;
  for (const auto& [rank, job] : queue.running) {
    const auto gpus = play.job(job).gpus;
    if (gpus <= room) {
      room -= gpus;
    } else {
      stopped.push_back(job);
    }
  }
  for (auto job = stopped.rbegin(); job != stopped.rend(); ++job) {
    Leave(play, *job);
    play.Stop(*job);
    Wait(play, *job, --front_);
  }
  return room;
}

// Of those who wait in the queue, in their order.
std::int64_t Las::TakeWhoFits(const JobPlay& play, Queue& queue, std::int64_t room,
                              std::vector<JobIndex>& starts) {
  for (;;) {
    auto first = queue.waiting.end();
    for (auto size = queue.waiting.begin(); size != queue.waiting.end(); ++size) {
      if (size->first > room) break;
      if (size->second.empty()) continue;
      if (first == queue.waiting.end() || *size->second.begin() < *first->second.begin())
        first = size;
    }
    if (first == queue.waiting.end()) return room;
    const JobIndex job = first->second.begin()->second;
    first->second.erase(first->second.begin());
    starts.push_back(job);
    room -= play.job(job).gpus;
  }
}

void Las::Begin(JobPlay& play, JobIndex job) {
  Place& place = places_[job];
  Queue& queue = queues_[place.queue];
  const auto gpus = play.job(job).gpus;
  place.rank = ++back_;
  queue.running.emplace(place.rank, job);
  queue.running_gpus += gpus;
  play.Start(job);
  if (place.queue == kLimitsGpuMs.size()) return;
  const auto left = kLimitsGpuMs[place.queue] - play.DoneMs(job) * gpus;
  // At least a moment later: a job of many GPUs may pass two limits within one millisecond.
  place.limit_ms = play.now_ms() + std::max<std::int64_t>(1, (left + gpus - 1) / gpus);
  at_limit_.emplace(place.limit_ms, job);
}

void Las::Decide(JobPlay& play) {
  Demote(play);
  std::int64_t room = play.gpus();
  std::vector<JobIndex> starts;
  for (Queue& queue : queues_) {
    room = KeepWhoFits(play, queue, room);
    room = TakeWhoFits(play, queue, room, starts);
  }
  for (const JobIndex job : starts) Begin(play, job);
}

}  // namespace muster::sim
