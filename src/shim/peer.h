// Peer: one connection at the door: a line, then frames, both ways, without ever waiting.
//
// What the other side does not read is kept as whole frames, and unsent() says how much that is:
// whoever sends decides what is too much. After Finish() nothing more is taken or sent, and the
// connection is done() when the last frame is on its way.
#pragma once

#include <poll.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/frames.h"
#include "shim/handle.h"

namespace muster::shim {

class Peer {
 public:
  explicit Peer(Handle socket) : socket_(std::move(socket)) {}

  bool finishing() const { return finishing_; }
  bool done() const { return gone_ || (finishing_ && frames_.empty()); }
  std::size_t unsent() const { return unsent_; }

  void AddTo(std::vector<pollfd>& polled, bool takes) const;

  bool Receive();                             // one read; false: nothing has come
  void NoticeHangUp();                        // for when nothing is received
  Result<std::optional<std::string>> Line();  // the first; none: more must come
  Result<std::optional<contract::Frame>> Next();

  void Send(contract::FrameKind kind, std::string_view bytes);
  void Finish(contract::FrameKind kind, std::string_view bytes);
  void Drop(std::string_view why);  // finishes at once: what was not sent yet never will be
  void Push();

 private:
  Handle socket_;
  std::string line_;
  bool has_line_ = false;
  contract::FrameReader reader_;
  std::deque<std::string> frames_;
  std::size_t sent_ = 0;  // of the first
  std::size_t unsent_ = 0;
  bool finishing_ = false;
  bool gone_ = false;
};

}  // namespace muster::shim
