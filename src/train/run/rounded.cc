#include "train/run/rounded.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "train/collective/half.h"

namespace muster::train {
namespace {

constexpr float kLargestHalf = 65504.0F;
constexpr std::size_t kBlock = 2048;  // floats at once: they stay in the cache

}  // namespace

Rounded::Rounded(std::size_t floats, Arena& arena)
    : block_(arena.Take((floats + 1) / 2)),
      halves_(reinterpret_cast<std::uint16_t*>(block_.floats().data()), floats),
      kept_(floats) {}

std::span<const std::byte> Rounded::Round(Extent at, std::span<float> values) {
  const auto halves = halves_.subspan(at.first, at.size());
  const auto kept = std::span(kept_).subspan(at.first, at.size());
  std::array<float, kBlock> near{};
  for (std::size_t first = 0; first < values.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - first);
    const auto part = values.subspan(first, count);
    const auto rest = kept.subspan(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      part[i] += rest[i];
      near[i] = std::clamp(part[i], -kLargestHalf, kLargestHalf);
    }
    ToHalf(std::span(near).first(count), halves.data() + first);
    FromHalf(halves.subspan(first, count), near.data());
    for (std::size_t i = 0; i < count; ++i) rest[i] = part[i] - near[i];
  }
  return std::as_bytes(halves);
}

void Rounded::Widen(std::span<const std::byte> rounded, std::span<float> into) {
  MUSTER_CHECK(rounded.size() == into.size() * sizeof(std::uint16_t), "all cut a bucket alike");
  FromHalf({reinterpret_cast<const std::uint16_t*>(rounded.data()), into.size()}, into.data());
}

}  // namespace muster::train
