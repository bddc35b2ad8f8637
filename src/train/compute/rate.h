// Rate: the learning rate of each step, and how it changes with the size of the batch.
//
// A function of the step alone, so that a run that was cut short goes on as it would have. Scaling
// for a changed batch is for runs that may adapt it; an exact run never does.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster::train {

enum class RateShape { kConstant, kCosine };

struct RateSpec {
  RateShape shape = RateShape::kConstant;
  double rate = 0.1;
  std::int64_t warmup = 0;  // steps in which the rate grows linearly from nothing
  std::int64_t steps = 0;   // kCosine: the rate reaches its floor at this one
  double floor = 0;         // kCosine

  friend bool operator==(const RateSpec&, const RateSpec&) = default;
};

// "constant:rate=0.1", "constant:rate=0.1,warmup=100",
// "cosine:rate=0.003,warmup=100,steps=1000,floor=0.0003".
Result<RateSpec> ParseRate(std::string_view text);

// The first step is 1.
float RateAt(const RateSpec& spec, std::int64_t step);

// Multiplied for a larger batch.
float ScaledRate(const RateSpec& spec, std::int64_t step, double factor);

enum class BatchRule {
  kNone,
  kLinear,      // twice the batch, twice the rate: while the noise of gradients is most of them
  kSquareRoot,  // keeps the noise of a step of Adam
  kNoise,       // by the gain of AdaScale: between 1 and linear, as the noise scale says
};

// What the rate is multiplied by when a batch of so many samples takes the place of the one that
// the rate was chosen for. `noise_scale`: as NoiseScale gives it, for kNoise.
double RateFactor(BatchRule rule, double batch, double base_batch, double noise_scale);

}  // namespace muster::train
