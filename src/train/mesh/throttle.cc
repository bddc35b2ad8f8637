#include "train/mesh/throttle.h"

#include <algorithm>

#include "train/mesh/socket.h"

namespace muster::train {

std::size_t Throttle::Take(std::size_t bytes) {
  if (rate_ <= 0) return bytes;
  const std::lock_guard lock(mutex_);
  const auto rate = static_cast<double>(rate_);
  const std::int64_t now_ns = NowNs();
  const double burst = std::max(rate * 2e-3, 4096.0);
  const double earned = static_cast<double>(now_ns - filled_ns_) * 1e-9 * rate;
  tokens_ = filled_ns_ == 0 ? burst : std::min(burst, tokens_ + earned);
  filled_ns_ = now_ns;
  // Not in crumbs: a call of the kernel for a few bytes costs more than it moves.
  const double least = std::min(burst / 4, static_cast<double>(bytes));
  if (tokens_ < least) return 0;
  const auto taken = std::min(bytes, static_cast<std::size_t>(tokens_));
  tokens_ -= static_cast<double>(taken);
  return taken;
}

void Throttle::GiveBack(std::size_t bytes) {
  if (rate_ <= 0) return;
  const std::lock_guard lock(mutex_);
  tokens_ += static_cast<double>(bytes);
}

}  // namespace muster::train
