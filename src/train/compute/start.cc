#include "train/compute/start.h"

#include <cmath>

#include "train/exact/philox.h"
#include "train/exact/streams.h"

namespace muster::train {

void StartUniform(const SliceKey& key, std::size_t offset, float limit, std::span<float> part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::size_t index = offset + i;
    const auto numbers = Philox(
        key.seed,
        {static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(key.layer),
         static_cast<std::uint32_t>(key.slice), static_cast<std::uint32_t>(Stream::kParameters)});
    part[i] = limit * (2.0F * UnitFloat(numbers[index % 4]) - 1.0F);
  }
}

float LimitFor(std::size_t inputs, float gain) {
  return std::sqrt(3.0F * gain / static_cast<float>(inputs));
}

}  // namespace muster::train
