#include "sim/jobs/estimates.h"

#include <algorithm>
#include <cmath>

#include "sim/jobs/muster_jobs.h"

namespace muster::sim {
namespace {

constexpr double kLevel = 0.9;

double Seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

// The least that is not passed by so many of them.
double QuantileOf(const std::vector<double>& sorted) {
  const auto below = std::ceil(kLevel * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, below)) - 1];
}

void Insert(std::vector<double>& sorted, double value) {
  sorted.insert(std::ranges::upper_bound(sorted, value), value);
}

double Middle(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double Loss(double bound, double value) {
  return value >= bound ? kLevel * (value - bound) : (1 - kLevel) * (bound - value);
}

}  // namespace

void Estimates::Submitted(const JobPlay& play, JobIndex job) {
  fresh_.push_back(job);
  GuessRuntime(play.job(job), job);
}

void Estimates::GuessRuntime(const TraceJob& job, JobIndex index) {
  const auto guess = runtimes_.Guess(RuntimeKindOf(job));
  if (!guess) return;
  guesses_[index] = {static_cast<double>(guess->likely_ms),
                     all_runtimes_[(all_runtimes_.size() - 1) / 2]};
}

void Estimates::Ended(const JobPlay& play, JobIndex job) {
  const auto ran = std::max(1.0, static_cast<double>(play.job(job).duration_ms));
  if (const auto guess = guesses_.find(job); guess != guesses_.end()) {
    const auto factor = [&](double guessed) {
      guessed = std::max(1.0, guessed);
      return std::max(guessed / ran, ran / guessed);
    };
    factors_.push_back(factor(guess->second.ours_ms));
    plain_factors_.push_back(factor(guess->second.plain_ms));
    guesses_.erase(guess);
  }
  runtimes_.Add(RuntimeKindOf(play.job(job)), play.job(job).duration_ms);
  Insert(all_runtimes_, ran);
  const auto& ended = play.job(job);
  forecast_.Ended(engine::WaitForecast::KindOf(ended.queue, ended.gpus),
                  Seconds(play.job(job).duration_ms));
}

Result<void> Estimates::Decided(const JobPlay& play) {
  for (const auto job : fresh_) {
    if (play.track(job).started_ms < 0) waiting_.insert(job);
  }
  for (const auto job : fresh_) {
    if (waiting_.contains(job)) Ask(play, job);
  }
  fresh_.clear();
  return {};
}

// As the daemon tells the forecast: who runs for longer than was guessed may end at any time.
double Estimates::EndsIn(const JobPlay& play, JobIndex job) const {
  const auto guess = guesses_.find(job);
  if (guess == guesses_.end()) return -1;
  const double left_ms = guess->second.ours_ms - static_cast<double>(play.DoneMs(job));
  return left_ms < 0 ? -1 : left_ms / 1000;
}

void Estimates::Ask(const JobPlay& play, JobIndex job) {
  const auto& asks = play.job(job);
  std::vector<engine::WaitForecast::Running> running;
  for (const auto& [end_ms, other] : play.ends()) {
    const auto& runs = play.job(other);
    running.push_back({engine::WaitForecast::KindOf(runs.queue, runs.gpus),
                       Seconds(play.DoneMs(other)), runs.gpus, EndsIn(play, other)});
  }
  engine::WaitForecast::Question question{job, asks.queue, asks.gpus, asks.gpus - play.free_gpus()};
  for (const auto other : waiting_) {
    if (other == job) continue;
    question.missing_gpus += play.job(other).gpus;
    if (play.job(other).queue != asks.queue) continue;
    ++question.ahead;
    question.longest_wait_s =
        std::max(question.longest_wait_s, Seconds(play.now_ms() - play.job(other).submit_ms));
  }
  const auto answer = forecast_.Ask(Seconds(play.now_ms()), question, running);
  const auto& mine = waits_[asks.queue];
  const double queue_s = !mine.empty()         ? QuantileOf(mine)
                         : !all_waits_.empty() ? QuantileOf(all_waits_)
                                               : 0;
  bounds_[job] = {answer.by_s, queue_s};
}

void Estimates::Started(const JobPlay& play, JobIndex job) {
  if (waiting_.erase(job) == 0) return;
  const double waited = Seconds(play.now_ms() - play.job(job).submit_ms);
  const auto bounds = bounds_.extract(job).mapped();
  ++waited_;
  covered_ += waited <= bounds.ours_s ? 1 : 0;
  loss_ += Loss(bounds.ours_s, waited);
  queue_loss_ += Loss(bounds.queue_s, waited);
  Insert(waits_[play.job(job).queue], waited);
  Insert(all_waits_, waited);
  forecast_.Started(Seconds(play.now_ms()), job);
}

EstimateScore Estimates::Score() const {
  EstimateScore score;
  if (waited_ > 0) {
    const auto count = static_cast<double>(waited_);
    score = {waited_, 100 * static_cast<double>(covered_) / count, loss_ / count,
             queue_loss_ / count};
  }
  if (!factors_.empty()) {
    score.runtimes = static_cast<std::int64_t>(factors_.size());
    score.runtime_factor = Middle(factors_);
    score.plain_factor = Middle(plain_factors_);
  }
  return score;
}

}  // namespace muster::sim
