#include "pools/local/speed_gauge.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace muster::pools {
namespace {

constexpr std::int64_t kAgainMs = 30'000;
constexpr double kMostSamples = 1e9;
constexpr double kMostMs = 1e9;
constexpr double kMostNoise = 1e15;  // thousandths: it may hide the signal altogether
constexpr std::size_t kMostSizes = 256;

// None: it is missing, or nothing that can be counted with.
std::optional<double> NumberOf(const contract::Report& report, const char* name, double least,
                               double most) {
  const auto found = report.numbers.find(name);
  if (found == report.numbers.end() || !(found->second >= least)) return std::nullopt;
  return std::min(found->second, most);
}

std::int32_t SamplesOf(const contract::Report& report, const char* name, double otherwise) {
  return static_cast<std::int32_t>(NumberOf(report, name, 1, kMostSamples).value_or(otherwise));
}

bool Differs(std::int64_t a, std::int64_t b) { return std::abs(a - b) > std::max(a, b) / 10; }

bool IsNews(const model::Speed& before, const model::Speed& now) {
  model::Speed same = before;  // but for what is measured, and varies
  same.step_us = now.step_us;
  same.compute_us = now.compute_us;
  same.noise_milli = now.noise_milli;
  return !(same == now) || Differs(before.step_us, now.step_us) ||
         Differs(before.compute_us, now.compute_us);
}

}  // namespace

std::optional<SpeedGauge::News> SpeedGauge::Read(const contract::Report& report) {
  const auto workers = NumberOf(report, "workers", 1, kMostSamples);
  const auto step_ms = NumberOf(report, "step_ms", 1e-3, kMostMs);
  const auto batch = NumberOf(report, "batch", 1, kMostSamples);
  if (!workers || !step_ms || !batch) return std::nullopt;
  const auto compute_ms = NumberOf(report, "compute_ms", 1e-3, *step_ms).value_or(*step_ms);
  News news;
  news.workers = static_cast<std::int64_t>(*workers);
  auto& speed = news.speed;
  speed.gpus = 0;
  speed.samples = static_cast<std::int32_t>(*batch);
  speed.step_us = std::llround(*step_ms * 1e3);
  speed.compute_us = std::llround(compute_ms * 1e3);
  speed.first_batch = SamplesOf(report, "first_batch", *batch);
  speed.most_batch = SamplesOf(report, "most_batch", *batch);
  speed.least_samples = SamplesOf(report, "least_samples", 1);
  speed.most_samples = SamplesOf(report, "most_samples", speed.most_batch);
  if (const auto noise = NumberOf(report, "noise_scale", 0, kMostSamples)) {
    speed.noise_milli = std::llround(std::min(1e3 * *noise / speed.first_batch, kMostNoise));
  }
  const auto known = passed_.find(news.workers);
  if (known != passed_.end()) {
    const auto& [at_ms, before] = known->second;
    if (report.at_ms < at_ms + kAgainMs || !IsNews(before, speed)) return std::nullopt;
  } else if (passed_.size() == kMostSizes) {
    return std::nullopt;
  }
  passed_[news.workers] = {report.at_ms, speed};
  return news;
}

}  // namespace muster::pools
