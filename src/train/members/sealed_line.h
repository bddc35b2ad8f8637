// SealedLine: messages over a connection that a handshake has made trusted, each sealed.
//
// For the store, whose messages are few and small: they are always encrypted, so that nobody on the
// way can change who the members of a job are. Neither side ever waits here; a message that is
// larger than allowed, or that somebody changed, ends the line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "train/mesh/handshake.h"

namespace muster::train {

class SealedLine {
 public:
  static constexpr std::size_t kMostBytes = (std::size_t{4} << 20U) + 1024;

  explicit SealedLine(Trusted trusted) : trusted_(std::move(trusted)) {}

  enum class Step { kDone, kMore, kOver };
  // At most kMostBytes and not empty, to be sent behind what has not been sent yet.
  void Put(std::string_view message);
  Step Flush();
  // kDone: one message.
  Step Read(std::string& message);

  int fd() const { return trusted_.fd.get(); }

 private:
  Trusted trusted_;
  std::string in_, out_;
  std::size_t sent_ = 0;
};

}  // namespace muster::train
