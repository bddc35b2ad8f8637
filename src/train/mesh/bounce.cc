#include "train/mesh/bounce.h"

namespace muster::train {

std::span<std::byte> Bounce::Take(std::size_t bytes) {
  const std::size_t whole = (bytes + 63) / 64 * 64;
  const std::lock_guard lock(mutex_);
  std::size_t from = 0;
  for (const auto& [at, count] : taken_) {
    if (at - from >= whole) break;
    from = at + count;
  }
  if (whole == 0 || area_.size() - from < whole) return {};
  taken_[from] = whole;
  return area_.subspan(from, bytes);
}

void Bounce::Give(std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  taken_.erase(static_cast<std::size_t>(bytes.data() - area_.data()));
}

}  // namespace muster::train
