// Bounce: the part of a member's shared memory that small offers from elsewhere are copied into.
//
// First fit over what is taken, in order: there are few offers at a time. Nothing is waited for:
// when it is full, the offer goes another way.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <span>

namespace muster::train {

class Bounce {
 public:
  explicit Bounce(std::span<std::byte> area) : area_(area) {}
  // Empty: there is no room.
  std::span<std::byte> Take(std::size_t bytes);
  void Give(std::span<std::byte> bytes);

 private:
  const std::span<std::byte> area_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;  // from, bytes
};

}  // namespace muster::train
