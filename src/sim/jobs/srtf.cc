#include "sim/jobs/srtf.h"

#include <iterator>

#include "sim/jobs/play.h"

namespace muster::sim {

void Srtf::Submitted(const JobPlay& play, JobIndex job) {
  waiting_[play.job(job).gpus].emplace(play.RemainingMs(job), job);
}

void Srtf::Ended(const JobPlay& /*play*/, JobIndex /*job*/) {}

// Whether there is room beside those that run and are shorter. Looks at no more jobs than it asks
// for GPUs.
bool Srtf::MayRun(const JobPlay& play, std::int64_t gpus, const Key& key) const {
  std::int64_t room = play.free_gpus();
  for (auto last = play.ends().rbegin(); room < gpus && last != play.ends().rend(); ++last) {
    if (Key(last->first - play.now_ms(), last->second) <= key) return false;
    room += play.job(last->second).gpus;
  }
  return room >= gpus;
}

void Srtf::MakeRoom(JobPlay& play, std::int64_t gpus) {
  while (play.free_gpus() < gpus) {
    const JobIndex longest = play.ends().rbegin()->second;
    play.Stop(longest);
    Submitted(play, longest);
  }
}

// Each turn starts the shortest job that may run. Who was stopped for it may be started again by a
// later turn, in what is left over.
void Srtf::Decide(JobPlay& play) {
  for (;;) {
    auto chosen = waiting_.end();
    for (auto size = waiting_.begin(); size != waiting_.end(); ++size) {
      if (size->second.empty()) continue;
      const Key& shortest = *size->second.begin();
      if (chosen != waiting_.end() && *chosen->second.begin() < shortest) continue;
      if (MayRun(play, size->first, shortest)) chosen = size;
    }
    if (chosen == waiting_.end()) return;
    const JobIndex job = chosen->second.begin()->second;
    chosen->second.erase(chosen->second.begin());
    MakeRoom(play, chosen->first);
    play.Start(job);
  }
}

}  // namespace muster::sim
