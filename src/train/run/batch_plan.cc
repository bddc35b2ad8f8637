#include "train/run/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "train/compute/settings.h"

namespace muster::train {

namespace {

// Tags of steps repeat after 1,024 of them.
constexpr std::int64_t kMostBatches = 1023;

// The largest of 1, 3, 7, 15, ... that is smaller.
std::int64_t SizeBelow(std::int64_t batches) {
  std::int64_t size = 1;
  while (2 * size + 1 < batches) size = 2 * size + 1;
  return size;
}

}  // namespace

Result<BatchSpec> ParseBatchSpec(std::string_view text) {
  const auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  struct Named {
    std::string_view word;
    BatchRule rule;
  };
  constexpr std::array kRules{Named{"linear", BatchRule::kLinear},
                              Named{"sqrt", BatchRule::kSquareRoot},
                              Named{"noise", BatchRule::kNoise}};
  const auto* const found = std::ranges::find(kRules, settings->word, &Named::word);
  if (found == kRules.end()) {
    return Fail(ErrorCode::kInvalid, fmt::format("no rule '{}' for a batch", settings->word),
                "linear:most=8, sqrt:most=8 or noise:most=8");
  }
  BatchSpec out{.rule = found->rule};
  const Wanted wanted[] = {
      {.name = "most", .integer = &out.most, .least = 3, .most = kMostBatches}};
  if (auto read = ReadSettings(*settings, wanted); !read) return tl::unexpected(read.error());
  if (settings->list.empty()) {
    return Fail(ErrorCode::kInvalid, fmt::format("'{}' does not say how large it may become", text),
                fmt::format("{}:most=8 for 8 times --batch", text));
  }
  return out;
}

std::int64_t MostBatches(const BatchSpec& spec) {
  return spec.adapts() ? spec.most - (spec.most + 1) % 2 : 1;
}

void BatchPlan::Follow(const NextBatch& said) {
  if (said.batches != next_.batches) measured_ = 0;
  next_ = said;
}

void BatchPlan::Measured(const NoiseScale& scale, double batch) {
  const auto value = scale.value();
  ++measured_;
  if (!spec_.adapts() || !value || batch <= 0) return;
  next_.noise = *value / batch;
  if (measured_ < kMeasured) return;
  const auto now = next_.batches;
  const auto larger = std::min(2 * now + 1, MostBatches(spec_));
  const auto smaller = SizeBelow(now);
  if (next_.noise >= static_cast<double>(larger)) next_.batches = larger;
  if (next_.noise < static_cast<double>(smaller)) next_.batches = smaller;
  if (next_.batches != now) measured_ = 0;
}

}  // namespace muster::train
