// BatchPlan: how many batches the next steps take at once, in runs that may adapt their batch.
//
// Below the noise scale of the gradient a larger batch saves almost as many steps as it adds
// samples, above it none: so the batch grows towards the scale, and the learning rate with it by a
// rule. Sizes are 1, 3, 7, 15, ... batches and the largest that is allowed; all are odd, because
// the state is kept for even and for odd steps apart. One size at a time, after so many steps that
// were measured since the last change; the next size must be below the scale, and a smaller one is
// taken only when the scale is below that one too, so noise in the measuring does not make it
// swing. The chief decides, by its own measurements, and all follow; the same numbers give the same
// sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "train/compute/noise_scale.h"
#include "train/compute/rate.h"

namespace muster::train {

struct BatchSpec {
  BatchRule rule = BatchRule::kNone;  // of the learning rate; kNone: the batch stays as it is
  std::int64_t most = 1;              // batches of a step

  bool adapts() const { return rule != BatchRule::kNone; }
  friend bool operator==(const BatchSpec&, const BatchSpec&) = default;
};

// "linear:most=8", "sqrt:most=8", "noise:most=8".
Result<BatchSpec> ParseBatchSpec(std::string_view text);

// The largest step that may be taken.
std::int64_t MostBatches(const BatchSpec& spec);

// What the chief says of the next step.
struct NextBatch {
  std::int64_t batches = 1;
  double noise = 0;  // the noise scale, in batches; for the rule of the learning rate
  friend bool operator==(const NextBatch&, const NextBatch&) = default;
};

class BatchPlan {
 public:
  static constexpr int kMeasured = 5;  // steps, before anything is decided, and from then on again

  explicit BatchPlan(const BatchSpec& spec) : spec_(spec) {}

  const NextBatch& next() const { return next_; }
  // What the chief said, so that any worker can take its place.
  void Follow(const NextBatch& said);
  // A step was measured. `batch`: samples of a batch.
  void Measured(const NoiseScale& scale, double batch);

 private:
  BatchSpec spec_;
  NextBatch next_;
  int measured_ = 0;  // since the last change
};

}  // namespace muster::train
