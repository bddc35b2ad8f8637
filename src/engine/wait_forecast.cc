#include "engine/wait_forecast.h"

#include <algorithm>
#include <cmath>

namespace muster::engine {
namespace {

constexpr std::size_t kRuntimesKept = 512;  // of a kind
constexpr std::size_t kEnough = 30;         // runtimes for a kind to be judged by itself
constexpr std::size_t kLongest = 8;         // runtimes beyond an age for it to be judged by them
constexpr double kUnknown_s = 600;
constexpr double kFirst_s = 30, kStep = 1.3, kLast_s = 4e6;  // moments that are tried
constexpr std::size_t kPastKept = 3000;
constexpr std::size_t kOpenLooked = 3000;
constexpr std::size_t kLike = 100;      // situations that are like this one, at most
constexpr std::size_t kLeastLike = 20;  // and at least
constexpr double kHigh = 0.94;          // of them were over by then
constexpr double kMiss = 0.1;           // bounds that may fail
constexpr double kWiden = 0.05, kWidenEverywhere = 0.015;
constexpr double kWidest = 1.5;
constexpr double kBeyond = 0.3;        // over the largest factor, where most still wait
constexpr std::size_t kFewWaits = 10;  // of more, the longest says what is too long
constexpr double kTooLong = 2;
constexpr std::size_t kStartsKept = 20, kFewStarts = 5;
constexpr double kSoon_s = 60;  // waits below it are alike
constexpr std::array<double, 4> kWeights = {1, 0.5, 0.5, 0.3};

// Logarithms of factors before anything is known: ten that lie as a normal distribution does with
// the mean -0.2 and the deviation 1.
constexpr std::array<double, 10> kGuessed = {-1.845, -1.236, -0.874, -0.585, -0.326,
                                             -0.074, 0.185,  0.474,  0.836,  1.445};

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

// When as many GPUs as that have come free, as is to be expected: of those that run, and again of
// whoever was given theirs.
double WaitForecast::Served(double gpus, std::span<const Running> running) const {
  if (running.empty()) return kFirst_s;  // whatever it waits for
  std::vector<const Runtimes*> known;
  for (const auto& one : running) known.push_back(&RuntimesOf(one.kind));
  struct Given {
    double at_s, gpus;
  };
  std::vector<Given> given;
  double before_s = 0, all_given = 0;
  for (double more = kFirst_s; more < kLast_s; more *= kStep) {
    double free = 0;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto& one = running[i];
      const double ends =
          one.ends_s >= 0 ? (one.ends_s <= more ? 1 : 0) : known[i]->EndsWithin(one.ran_s, more);
      free += static_cast<double>(one.gpus) * ends;
    }
    for (const auto& [at_s, gpus_given] : given) {
      free += gpus_given * all_runtimes_.EndsWithin(0, more - at_s);
    }
    if (free >= gpus) return more;
    if (free > all_given) {
      given.push_back({(before_s + more) / 2, free - all_given});
      all_given = free;
    }
    before_s = more;
  }
  return kLast_s;
}

WaitForecast::Situation WaitForecast::SituationOf(double now_s, const Question& question,
                                                  std::span<const Running> running) const {
  const double served_s = Served(static_cast<double>(question.missing_gpus), running);
  const auto starts = starts_.find(question.line);
  const bool few = starts == starts_.end() || starts->second.size() < kFewStarts;
  const double rate = few ? 1e-3
                          : static_cast<double>(starts->second.size()) /
                                std::max(kSoon_s, now_s - starts->second.front());
  const double line_s = static_cast<double>(question.ahead) / rate;
  return {std::log(served_s + kSoon_s), std::log(question.longest_wait_s + kSoon_s),
          std::log(line_s + kSoon_s), std::log(2 * static_cast<double>(question.gpus))};
}

// By which the time to be served was off, sorted.
std::vector<WaitForecast::Factor> WaitForecast::FactorsLike(double now_s,
                                                            const Situation& situation) const {
  std::vector<std::pair<double, Factor>> all;  // by how far they are
  all.reserve(past_.size() + open_.size());
  const auto add = [&](const Situation& other, double waited_s, bool over) {
    double far = 0;
    for (std::size_t i = 0; i < kWeights.size(); ++i) {
      far += kWeights[i] * std::abs(other[i] - situation[i]);
    }
    all.push_back({far, {std::log(waited_s + kSoon_s) - other[0], over}});
  };
  for (const auto& past : past_) add(past.situation, past.waited_s, true);
  // Of very many that wait every so many is enough.
  const auto stride = open_.size() / kOpenLooked + 1;
  std::size_t at = 0;
  for (const auto& [job, open] : open_) {
    if (at++ % stride == 0 && open.asked_s < now_s) {
      add(open.situation, now_s - open.asked_s, false);
    }
  }
  const auto count = std::min(all.size(), std::clamp(all.size() / 4, kLeastLike, kLike));
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(count), {},
                           &std::pair<double, Factor>::first);
  std::vector<Factor> factors;
  factors.reserve(count + kGuessed.size());
  for (std::size_t i = 0; i < count; ++i) factors.push_back(all[i].second);
  for (const double guessed : kGuessed) factors.push_back({guessed, true});
  std::ranges::sort(factors, [](const Factor& a, const Factor& b) {
    return a.log != b.log ? a.log < b.log : a.over > b.over;
  });
  return factors;
}

// By Kaplan and Meier: who still waits counts among those that wait longer, and no further. Where
// two values would do it is the larger.
double WaitForecast::QuantileOf(const std::vector<Factor>& sorted, double share) {
  double longer = 1;  // the chance to wait longer than that
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!sorted[i].over) continue;
    longer *= 1 - 1 / static_cast<double>(sorted.size() - i);
    if (longer < 1 - share - 1e-9) return sorted[i].log;
  }
  return sorted.back().log + kBeyond;
}

double WaitForecast::LongestWait(double now_s) const {
  double longest = 0;
  for (const auto& past : past_) longest = std::max(longest, past.waited_s);
  for (const auto& [job, open] : open_) longest = std::max(longest, now_s - open.asked_s);
  return longest;
}

WaitForecast::Answer WaitForecast::AnswerFor(double now_s, const Question& question,
                                             const Situation& situation) const {
  const auto factors = FactorsLike(now_s, situation);
  const auto widened = widened_.find(question.line);
  const double wider = widened == widened_.end() ? widened_everywhere_ : widened->second;
  const auto seconds = [&](double log) { return std::exp(situation[0] + log) - kSoon_s; };
  Answer answer{seconds(QuantileOf(factors, 0.5)),
                std::max(1.0, seconds(QuantileOf(factors, kHigh) + wider))};
  if (past_.size() >= kFewWaits) {
    answer.by_s = std::min(answer.by_s, kTooLong * LongestWait(now_s) + kSoon_s);
  }
  answer.likely_s = std::clamp(answer.likely_s, 0.0, answer.by_s);
  return answer;
}

WaitForecast::Answer WaitForecast::Look(double now_s, const Question& question,
                                        std::span<const Running> running) const {
  auto answer = AnswerFor(now_s, question, SituationOf(now_s, question, running));
  // For people, who do not care for half a GPU that comes free at the end of all days.
  answer.served_s = Served(static_cast<double>(question.missing_gpus) - 0.5, running);
  return answer;
}

WaitForecast::Answer WaitForecast::Ask(double now_s, const Question& question,
                                       std::span<const Running> running) {
  LetPass(now_s);
  const auto situation = SituationOf(now_s, question, running);
  const auto answer = AnswerFor(now_s, question, situation);
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
