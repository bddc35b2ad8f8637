#include "sim/story.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::sim {
namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;

}  // namespace

int QuotaOf(const Researcher& researcher, Sharing sharing) {
  return sharing == Sharing::kPool ? researcher.quota : researcher.fixed_quota;
}

std::vector<Seat> SeatsAt(const Script& script, const StoryRun& run, std::int64_t at_ms) {
  std::vector<const Stay*> here;
  for (const auto& stay : run.stays) {
    if (stay.from_ms <= at_ms && at_ms < stay.to_ms) here.push_back(&stay);
  }
  std::sort(here.begin(), here.end(), [](const Stay* a, const Stay* b) {
    return std::tie(a->job, a->worker) < std::tie(b->job, b->worker);
  });
  std::vector<Seat> seats(static_cast<std::size_t>(script.gpus));
  std::vector<int> held(script.researchers.size(), 0);
  for (const Stay* stay : here) {
    const auto owner = script.jobs[stay->job].owner;
    const bool borrowed = ++held[owner] > QuotaOf(script.researchers[owner], run.sharing);
    seats[static_cast<std::size_t>(stay->gpu)] = {stay->job, borrowed};
  }
  return seats;
}

int WaitingAt(const Script& script, const StoryRun& run, std::int64_t at_ms) {
  int waiting = 0;
  for (std::size_t job = 0; job < script.jobs.size(); ++job) {
    if (script.jobs[job].arrives_ms > at_ms || run.records[job].ended_ms <= at_ms) continue;
    const bool held = std::any_of(run.stays.begin(), run.stays.end(), [&](const Stay& stay) {
      return stay.job == job && stay.from_ms <= at_ms && at_ms < stay.to_ms;
    });
    waiting += held ? 0 : 1;
  }
  return waiting;
}

Script ClassicDay() {
  Script script;
  script.gpus = 8;
  script.day_ms = 24 * kHour;
  script.checkpoint_every_ms = 30 * kMinute;
  script.shrink_ms = 2 * kSecond;
  script.pause_ms = 20 * kSecond;
  script.restart_ms = kMinute;
  script.researchers = {{"ana", 2, 3}, {"ben", 2, 3}, {"chen", 2, 2}};
  const auto add = [&script](std::string name, std::size_t owner, std::int64_t at_minute, int min,
                             int max, std::int64_t work_gpu_minutes) -> ScriptJob& {
    script.jobs.push_back({.name = std::move(name),
                           .owner = owner,
                           .arrives_ms = at_minute * kMinute,
                           .min_workers = min,
                           .max_workers = max,
                           .work_gpu_ms = work_gpu_minutes * kMinute});
    return script.jobs.back();
  };
  constexpr std::size_t kAna = 0, kBen = 1, kChen = 2;
  add("pretrain", kAna, 20, 2, 8, 100 * 60);
  add("notebook", kBen, 9 * 60 + 10, 1, 1, 8 * 60).interactive = true;
  add("finetune", kBen, 9 * 60 + 40, 1, 1, 4 * 60);
  for (int i = 1; i <= 4; ++i) add("sweep-" + std::to_string(i), kChen, 10 * 60 + 30, 1, 1, 130);
  add("eval", kAna, 14 * 60 + 5, 1, 1, 40).priority = 75;
  for (int i = 1; i <= 3; ++i) add("vit-" + std::to_string(i), kChen, 16 * 60 + 45, 2, 2, 10 * 60);
  add("ablate", kAna, 17 * 60 + 30, 2, 2, 9 * 60);
  add("distill", kBen, 20 * 60 + 5, 2, 2, 3 * 60);
  add("probe", kAna, 22 * 60 + 20, 2, 8, 10 * 60);
  return script;
}

}  // namespace muster::sim
