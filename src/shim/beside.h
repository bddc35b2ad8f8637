// Beside: one program that somebody runs beside the worker, with its user, folder and limits.
//
// It belongs to the connection that asked for it: its output goes there and waits while nobody
// reads (the worker never does), and it is told to end when the connection is gone. Whatever it
// then does, it ends with the worker's tree. How it ended is no concern of the worker's record.
#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "contract/door.h"
#include "contract/order.h"
#include "shim/console.h"
#include "shim/peer.h"
#include "shim/spawn.h"

namespace muster::shim {

// What the worker has and a program beside it gets as well. Must outlive both.
struct Place {
  const contract::LaunchOrder& order;
  const std::vector<Handle>& doors;
  bool use_rlimits = false;
};

class Beside {
 public:
  static Result<std::unique_ptr<Beside>> Start(const Place& place, const contract::Exec& wish);

  Beside(Worker process, contract::LaunchOrder order)
      : process_(std::move(process)), order_(std::move(order)) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  pid_t pid() const { return process_.pid; }
  Console& console() { return console_; }
  bool ended() const { return ended_; }

  void AddTo(std::vector<pollfd>& polled, const Peer& peer) const;
  void Copy(Peer& peer);    // its output; once it has ended and all is told, its end
  void Finish(Peer& peer);  // its end, whatever else there might be to tell

  void Ended(int status);  // as wait() has it
  void Leave();            // whoever asked for it is gone

 private:
  bool CopyStream(Handle& from, contract::FrameKind kind, Peer& peer);

  Worker process_;
  contract::LaunchOrder order_;
  Console console_{process_};
  bool ended_ = false;
  contract::Ended end_;
  std::size_t late_bytes_ = 0;  // told since it ended
};

}  // namespace muster::shim
