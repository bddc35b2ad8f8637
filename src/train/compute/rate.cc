#include "train/compute/rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "train/compute/settings.h"

namespace muster::train {

Result<RateSpec> ParseRate(std::string_view text) {
  const auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  RateSpec out;
  std::vector<Wanted> wanted{{.name = "rate", .number = &out.rate, .least = 1e-9, .most = 1e3},
                             {.name = "warmup", .integer = &out.warmup}};
  if (settings->word == "cosine") {
    out.shape = RateShape::kCosine;
    wanted.push_back({.name = "steps", .integer = &out.steps, .least = 1});
    wanted.push_back({.name = "floor", .number = &out.floor});
  } else if (settings->word != "constant") {
    return Fail(ErrorCode::kInvalid, fmt::format("no learning rate '{}'", settings->word),
                "constant:rate=0.1 or cosine:rate=0.003,steps=1000");
  }
  if (auto read = ReadSettings(*settings, wanted); !read) return tl::unexpected(read.error());
  if (out.shape == RateShape::kCosine && out.steps <= out.warmup) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("'{}': {} steps, {} of them to warm up", text, out.steps, out.warmup),
                "give steps=, the number of steps of the run; more than warmup");
  }
  return out;
}

float RateAt(const RateSpec& spec, std::int64_t step) {
  if (step < spec.warmup) {
    return static_cast<float>(spec.rate * static_cast<double>(step) /
                              static_cast<double>(spec.warmup));
  }
  if (spec.shape == RateShape::kConstant) return static_cast<float>(spec.rate);
  const double done = std::min(
      1.0, static_cast<double>(step - spec.warmup) / static_cast<double>(spec.steps - spec.warmup));
  return static_cast<float>(spec.floor +
                            (spec.rate - spec.floor) * (1 + std::cos(std::numbers::pi * done)) / 2);
}

float ScaledRate(const RateSpec& spec, std::int64_t step, double factor) {
  return static_cast<float>(static_cast<double>(RateAt(spec, step)) * factor);
}

double RateFactor(BatchRule rule, double batch, double base_batch, double noise_scale) {
  const double larger = batch / base_batch;
  switch (rule) {
    case BatchRule::kNone:
      return 1;
    case BatchRule::kLinear:
      return larger;
    case BatchRule::kSquareRoot:
      return std::sqrt(larger);
    case BatchRule::kNoise:
      return (noise_scale / base_batch + 1) / (noise_scale / batch + 1);
  }
  return 1;
}

}  // namespace muster::train
