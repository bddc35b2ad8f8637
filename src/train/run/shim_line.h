// ShimLine: the worker contract from the worker's side (docs/contract.md).
//
// Connects to the socket that the shim beside this worker listens on, says what the training says,
// and remembers when it is told to leave or to write a checkpoint. A line that cannot be sent at
// once is dropped, because work goes on without anybody listening; of one that was sent in part the
// rest goes before the next, so that the shim never sees half a line. One thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
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
  // Says hello and waits for the welcome, for so long.
  static Result<std::unique_ptr<ShimLine>> Open(const std::string& socket, Orders orders,
                                                std::int64_t timeout_ms);
  ShimLine(const ShimLine&) = delete;
  ShimLine& operator=(const ShimLine&) = delete;
  ~ShimLine();

  const contract::Welcome& welcome() const { return welcome_; }
  void Say(const contract::Said& said);  // never waits

 private:
  ShimLine(int fd, Orders orders) : fd_(fd), orders_(orders) {}
  bool Leaves(const contract::Told& told) const;
  Result<std::string> NextLine();
  void Listen();
  // How much of it went; less: nobody takes more just now.
  std::size_t Send(std::string_view text) const;

  int fd_;
  Orders orders_;
  std::string unread_;
  contract::Welcome welcome_;
  std::mutex saying_;
  std::string unsaid_;  // of a line that was begun
  std::thread thread_;
};

}  // namespace muster::train
