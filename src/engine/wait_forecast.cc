#include "engine/wait_forecast.h"

#include <algorithm>
#include <cmath>

#include "base/quantile.h"

namespace muster::engine {
namespace {

constexpr std::size_t kRuntimesKept = 512;  // of a kind
constexpr std::size_t kEnough = 30;         // runtimes for a kind to be judged by itself
constexpr std::size_t kLongest = 8;         // runtimes beyond an age for it to be judged by them
constexpr double kUnknown_s = 600;
constexpr double kFirstGuess_s = 3600;                       // at most, of the very first wait
constexpr double kFirst_s = 30, kStep = 1.3, kLast_s = 4e6;  // moments that are tried
constexpr std::size_t kPastKept = 3000;
constexpr std::size_t kLike = 200;      // situations that are like this one, at most
constexpr std::size_t kLeastLike = 20;  // and at least
constexpr double kHigh = 0.98;          // of them were over by then
constexpr double kMiss = 0.1;           // bounds that may fail
constexpr double kWiden = 0.05, kWidenEverywhere = 0.01, kWidest = 1;
constexpr std::size_t kStartsKept = 20, kFewStarts = 5;
constexpr double kSoon_s = 60;  // waits below it are alike
constexpr std::array<double, 4> kWeights = {1, 1, 1, 0.3};

}  // namespace

void Runtimes::Add(double seconds) {
  order_.push_back(seconds);
  sorted_.insert(std::ranges::lower_bound(sorted_, seconds), seconds);
  if (order_.size() <= most_) return;
  sorted_.erase(std::ranges::lower_bound(sorted_, order_.front()));
  order_.pop_front();
}

double Runtimes::EndsWithin(double ran_s, double more_s) const {
  const auto longer = std::ranges::upper_bound(sorted_, ran_s);
  const auto left = sorted_.end() - longer;
  // Who has run for long goes on for as long again.
  if (left < static_cast<std::ptrdiff_t>(kLongest)) {
    return more_s / (more_s + std::max(ran_s, kUnknown_s));
  }
  const auto over = std::upper_bound(longer, sorted_.end(), ran_s + more_s) - longer;
  return static_cast<double>(over) / static_cast<double>(left);
}

const Runtimes& WaitForecast::RuntimesOf(const std::string& kind) const {
  const auto found = runtimes_.find(kind);
  return found != runtimes_.end() && found->second.size() >= kEnough ? found->second
                                                                     : all_runtimes_;
}

// When as many GPUs as that have come free, as is to be expected.
double WaitForecast::ComesFree(double gpus, std::span<const Running> running) const {
  std::vector<const Runtimes*> known;
  for (const auto& one : running) known.push_back(&RuntimesOf(one.kind));
  double more = kFirst_s;
  for (; more < kLast_s; more *= kStep) {
    double expected = 0;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto& one = running[i];
      const double ends =
          one.ends_s >= 0 ? (one.ends_s <= more ? 1 : 0) : known[i]->EndsWithin(one.ran_s, more);
      expected += static_cast<double>(one.gpus) * ends;
    }
    if (expected >= gpus) break;
  }
  return more;
}

// For people, who do not care for half a GPU that comes free in the end of all days. Where more are
// waited for than there are, those that come free come again.
double WaitForecast::FreeAlone(std::int64_t gpus, std::span<const Running> running) const {
  double there = 0;
  for (const auto& one : running) there += static_cast<double>(one.gpus);
  const auto wanted = static_cast<double>(gpus);
  if (there < 1) return kFirst_s;
  return ComesFree(std::min(wanted, there) - 0.5, running) * std::max(1.0, wanted / there);
}

WaitForecast::Situation WaitForecast::SituationOf(double now_s, const Question& question,
                                                  double free_s) const {
  const auto starts = starts_.find(question.line);
  const bool few = starts == starts_.end() || starts->second.size() < kFewStarts;
  const double rate = few ? 1e-3
                          : static_cast<double>(starts->second.size()) /
                                std::max(kSoon_s, now_s - starts->second.front());
  const double line_s = static_cast<double>(question.ahead) / rate;
  return {std::log(free_s + kSoon_s), std::log(question.longest_wait_s + kSoon_s),
          std::log(line_s + kSoon_s), std::log(2 * static_cast<double>(question.gpus))};
}

WaitForecast::Answer WaitForecast::AnswerFor(const std::string& line, const Situation& situation,
                                             double free_s) const {
  const double first = std::min(free_s, kFirstGuess_s);
  Answer answer{first, first, free_s};
  if (!past_.empty()) {
    std::vector<std::pair<double, double>> like;  // how far, and how long it waited
    like.reserve(past_.size());
    for (const auto& past : past_) {
      double far = 0;
      for (std::size_t i = 0; i < kWeights.size(); ++i) {
        far += kWeights[i] * std::abs(past.situation[i] - situation[i]);
      }
      like.emplace_back(far, past.waited_s);
    }
    const auto count = std::min(like.size(), std::clamp(like.size() / 4, kLeastLike, kLike));
    std::ranges::nth_element(like, like.begin() + static_cast<std::ptrdiff_t>(count - 1));
    std::vector<double> waits;
    waits.reserve(count);
    for (std::size_t i = 0; i < count; ++i) waits.push_back(like[i].second);
    std::ranges::sort(waits);
    answer = {QuantileOfSorted(waits, 0.5), QuantileOfSorted(waits, kHigh), free_s};
  }
  const auto widened = widened_.find(line);
  const double factor = std::exp(widened == widened_.end() ? widened_everywhere_ : widened->second);
  answer.by_s = (answer.by_s + kSoon_s) * factor - kSoon_s;
  answer.likely_s = std::min(answer.likely_s, answer.by_s);
  return answer;
}

WaitForecast::Answer WaitForecast::Look(double now_s, const Question& question,
                                        std::span<const Running> running) const {
  const double free_s = ComesFree(static_cast<double>(question.missing_gpus), running);
  auto answer = AnswerFor(question.line, SituationOf(now_s, question, free_s), free_s);
  answer.free_s = FreeAlone(question.missing_gpus, running);
  return answer;
}

WaitForecast::Answer WaitForecast::Ask(double now_s, const Question& question,
                                       std::span<const Running> running) {
  LetPass(now_s);
  const double free_s = ComesFree(static_cast<double>(question.missing_gpus), running);
  const auto situation = SituationOf(now_s, question, free_s);
  const auto answer = AnswerFor(question.line, situation, free_s);
  due_.emplace(now_s + answer.by_s, question.job);
  open_[question.job] = {question.line, situation, now_s, answer.by_s};
  return answer;
}

void WaitForecast::LetPass(double now_s) {
  while (!due_.empty() && due_.begin()->first < now_s) {
    const auto open = open_.find(due_.begin()->second);
    due_.erase(due_.begin());
    if (open == open_.end() || open->second.failed) continue;
    open->second.failed = true;
    Learn(open->second.line, true);
  }
}

void WaitForecast::Started(double now_s, std::uint64_t job) {
  LetPass(now_s);
  const auto found = open_.find(job);
  if (found == open_.end()) return;
  const Open& open = found->second;
  const double waited = now_s - open.asked_s;
  if (!open.failed) Learn(open.line, false);
  past_.push_back({open.situation, waited});
  if (past_.size() > kPastKept) past_.pop_front();
  auto& starts = starts_[open.line];
  starts.push_back(now_s);
  if (starts.size() > kStartsKept) starts.pop_front();
  open_.erase(found);
}

void WaitForecast::Ended(const std::string& kind, double ran_s) {
  runtimes_.try_emplace(kind, kRuntimesKept).first->second.Add(ran_s);
  all_runtimes_.Add(ran_s);
}

// Up when a bound has failed and down when one held, so that one of ten fails; never narrower than
// what happened to others.
void WaitForecast::Learn(const std::string& line, bool failed) {
  const double step = (failed ? 1 : 0) - kMiss;
  auto& widened = widened_.try_emplace(line, widened_everywhere_).first->second;
  widened = std::clamp(widened + kWiden * step, 0.0, kWidest);
  widened_everywhere_ = std::clamp(widened_everywhere_ + kWidenEverywhere * step, 0.0, kWidest);
}

}  // namespace muster::engine
