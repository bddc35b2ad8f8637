// ShimLine: the worker contract from the worker's side (docs/contract.md).
//
// Connects to the socket that the shim beside this worker listens on, says what the training says,
// and remembers when it is told to leave or to write a checkpoint. A line that cannot be sent is
// dropped, because work goes on without anybody listening. One thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "contract/lines.h"

namespace muster::train {

class ShimLine {
 public:
  // What this worker is told.
  struct Orders {
    std::atomic<bool>& leave;  // to stop, to leave, or that it is not a member any more
    std::atomic<std::int64_t>& checkpoints;  // how often to write one
  };
  // Says hello and waits for the welcome.
  static Result<std::unique_ptr<ShimLine>> Open(const std::string& socket, Orders orders);
  ShimLine(const ShimLine&) = delete;
  ShimLine& operator=(const ShimLine&) = delete;
  ~ShimLine();

  const contract::Welcome& welcome() const { return welcome_; }
  void Say(const contract::Said& said);

 private:
  ShimLine(int fd, Orders orders) : fd_(fd), orders_(orders) {}
  bool Leaves(const contract::Told& told) const;
  Result<std::string> NextLine();
  void Listen();

  int fd_;
  Orders orders_;
  std::string unread_;
  contract::Welcome welcome_;
  std::mutex saying_;
  std::thread thread_;
};

}  // namespace muster::train
