#include "control/runs.h"

#include <algorithm>
#include <cmath>

namespace muster::control {

using model::JobNumber;
using state::JobRecord;
using state::Run;

namespace {

constexpr std::int64_t kSilentMs = 10'000;
constexpr std::int64_t kSaveEveryMs = 5'000;
constexpr std::int64_t kDropEveryMs = 3'600'000;
constexpr std::size_t kMostUnsaved = 10'000;  // where the store fails for long

std::map<std::string, state::RunNumber> Numbers(const std::map<std::string, double>& from) {
  std::map<std::string, state::RunNumber> to;
  for (const auto& [name, value] : from) {
    if (to.size() < state::kMostNumbers) to[name] = {value};
  }
  return to;
}

void TakePoint(Run& run, const contract::Report& report) {
  auto& head = run.head;
  const bool again =
      run.curve.Add(*report.step, report.at_ms, report.samples.value_or(-1), report.numbers);
  head.step = *report.step;
  head.samples = report.samples.value_or(-1);
  head.numbers = Numbers(report.numbers);
  if (head.reports++ == 0) head.first_ms = report.at_ms;
  if (again && head.best_loss && head.best_step >= head.step) {
    head.best_loss.reset();
    if (const auto lowest = run.curve.Lowest("loss")) {
      head.best_step = lowest->first;
      head.best_loss = {lowest->second};
    }
  }
  const auto loss = report.numbers.find("loss");
  if (loss == report.numbers.end() || std::isnan(loss->second)) return;
  if (head.best_loss && head.best_loss->value <= loss->second) return;
  head.best_loss = {loss->second};
  head.best_step = head.step;
}

}  // namespace

Run* Runs::Live(const JobRecord& job) {
  if (const auto found = live_.find(job.id); found != live_.end()) return &found->second;
  auto run = store_->Load(job.id).value_or(Run{});
  run.head.job = job.id;
  run.head.name = job.name();
  run.head.user = job.user;
  run.head.queue = job.spec->queue;
  run.head.submitted_ms = job.submitted_ms;
  return &live_.emplace(job.id, std::move(run)).first->second;
}

void Runs::Hear(const JobRecord& job, std::uint32_t worker, const contract::Report& report) {
  const bool kept = !report.kept_path.empty();
  if ((!report.step && !kept) || job.ending) return;
  auto& run = *Live(job);
  auto& head = run.head;
  head.end.clear();
  const bool speaks =
      head.reports == 0 || worker <= head.worker || report.at_ms - head.last_ms > kSilentMs;
  // What was heard before is said again after a restart of the daemon.
  const bool news = report.at_ms >= head.last_ms && report.step && *report.step != head.step;
  if (speaks && news) {
    head.worker = worker;
    head.last_ms = report.at_ms;
    TakePoint(run, report);
    unsaved_.insert(job.id);
  }
  if (!kept || (head.model_path == report.kept_path && head.model_hash == report.kept_hash)) return;
  head.model_path = report.kept_path;
  head.model_hash = report.kept_hash;
  head.model_numbers = Numbers(report.kept_numbers);
  // Another worker may have kept the model; the last step of the one who speaks is news all the
  // same.
  if (worker == head.worker) head.last_ms = std::max(head.last_ms, report.at_ms);
  unsaved_.insert(job.id);
}

void Runs::Ended(const JobRecord& job) {
  const auto found = live_.find(job.id);
  if (found == live_.end() || !job.ending) return;
  auto& head = found->second.head;
  head.end = std::string(Name(job.ending->end));
  head.ended_ms = job.ending->at_ms;
  head.ran_ms = job.ran_ms;
  unsaved_.insert(job.id);
  saved_ms_ = 0;  // its last report is forgotten with its workers
}

void Runs::Keep(std::int64_t now_ms, std::int64_t oldest_ms, bool all) {
  if (!all && saved_ms_ > 0 && now_ms - saved_ms_ < kSaveEveryMs) return;
  saved_ms_ = now_ms;
  if (!unsaved_.empty()) {
    std::vector<const Run*> runs;
    runs.reserve(unsaved_.size());
    for (const auto job : unsaved_) runs.push_back(&live_.at(job));
    if (!store_->Save(runs) && unsaved_.size() < kMostUnsaved) return;
    unsaved_.clear();
  }
  std::erase_if(live_, [](const auto& one) { return !one.second.head.end.empty(); });
  if (now_ms - dropped_ms_ < kDropEveryMs) return;
  dropped_ms_ = now_ms;
  (void)store_->Drop(oldest_ms);  // tried again in an hour
}

std::optional<state::RunHead> Runs::Head(JobNumber job) {
  if (const auto found = live_.find(job); found != live_.end()) return found->second.head;
  return store_->Head(job);
}

std::optional<Run> Runs::Find(JobNumber job) {
  if (const auto found = live_.find(job); found != live_.end()) return found->second;
  return store_->Load(job);
}

std::vector<JobNumber> Runs::Latest(std::size_t most) {
  auto jobs = store_->Latest(most);
  for (const auto& [job, run] : live_) jobs.push_back(job);
  std::sort(jobs.rbegin(), jobs.rend());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  jobs.resize(std::min(jobs.size(), most));
  return jobs;
}

}  // namespace muster::control
