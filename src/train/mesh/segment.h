// Segment: memory that several processes of one machine see.
//
// A memfd without a name: it goes away with the last process that has it, so a killed worker leaves
// nothing behind. Its size is sealed before it is handed out, and a received one without that seal
// is refused: a peer that could shrink it could end this process. The pages of a received one are
// mapped beside the work: who reads one before that waits for it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "base/result.h"
#include "train/mesh/socket.h"

namespace muster::train {

class Segment {
 public:
  Segment() = default;
  static Result<Segment> Create(std::uint64_t bytes);  // zeros, in memory already
  static Result<Segment> Map(Fd fd, bool writable);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  void Settle();  // waits until all pages are mapped

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  Fd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::jthread mapping_;
};

}  // namespace muster::train
