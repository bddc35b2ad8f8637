// Arena: floats inside the memory that peers on this host can read.
//
// First fit over a map of what is free; a handful of large blocks live here at a time. A block is
// given back when its handle goes. Blocks begin on pages, so that none is shared by two uses. What
// finds no room lies in memory of its own, from where it is copied when it is offered.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>

namespace muster::train {

class Arena {
 public:
  explicit Arena(std::span<std::byte> memory) : memory_(memory) { free_[0] = memory.size(); }

  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept { *this = std::move(other); }
    Block& operator=(Block&& other) noexcept {
      std::swap(arena_, other.arena_);
      std::swap(offset_, other.offset_);
      std::swap(floats_, other.floats_);
      std::swap(apart_, other.apart_);
      return *this;
    }
    ~Block() {
      if (arena_ != nullptr) arena_->Free(offset_, floats_.size() * sizeof(float));
    }
    std::span<float> floats() const { return floats_; }

   private:
    friend class Arena;
    Arena* arena_ = nullptr;
    std::size_t offset_ = 0;
    std::span<float> floats_;
    std::unique_ptr<float[]> apart_;
  };

  // Bytes that so many floats take.
  static std::size_t BytesFor(std::size_t floats) {
    return (floats * sizeof(float) + kPage - 1) / kPage * kPage;
  }

  Block Take(std::size_t floats) {
    const std::size_t bytes = BytesFor(floats);
    for (auto [offset, size] : free_) {
      if (size < bytes) continue;
      free_.erase(offset);
      if (size > bytes) free_[offset + bytes] = size - bytes;
      Block out;
      out.arena_ = this;
      out.offset_ = offset;
      out.floats_ = {reinterpret_cast<float*>(memory_.data() + offset), floats};
      return out;
    }
    Block out;
    out.apart_ = std::make_unique<float[]>(floats);
    out.floats_ = {out.apart_.get(), floats};
    return out;
  }

 private:
  static constexpr std::size_t kPage = 4096;

  void Free(std::size_t offset, std::size_t bytes) {
    bytes = (bytes + kPage - 1) / kPage * kPage;
    if (bytes == 0) return;
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + bytes == after->first) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free_[offset] = bytes;
  }

  std::span<std::byte> memory_;
  std::map<std::size_t, std::size_t> free_;  // offset, bytes
};

}  // namespace muster::train
