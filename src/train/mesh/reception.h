// Reception: everybody who connects, until they have proved that they know the secret.
//
// For the one thread that waits on its owner's epoll, in which it watches the listeners and the
// strangers. Strangers are held to a number and a time: the one that has dawdled longest makes room
// for the next, and who has not proved himself in time is hung up on. Without file descriptors the
// listeners rest until ListenAgain(), because a caller would be announced again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "train/mesh/handshake.h"

namespace muster::train {

struct Entrance {
  Fd listener;
  bool shares = false;  // memory, with those who come here
};

class Reception {
 public:
  // `self` and `epoll` outlive it.
  Reception(const Identity& self, int epoll, std::int64_t timeout_ns,
            std::vector<Entrance> entrances);

  // False: it is nothing of ours. `admit` is handed who has just proved himself, and may keep no
  // reference.
  bool Serve(int fd, const std::function<void(Greeter&)>& admit);
  // When the next one has been a stranger for too long; never before the time that is given.
  std::int64_t OverAtNs(std::int64_t latest_ns) const;
  void HangUp(std::int64_t now_ns);  // on those
  void ListenAgain() { Listen(true); }

 private:
  void Listen(bool on);
  void Accept(const Entrance& entrance);

  const Identity& self_;
  int epoll_;
  std::int64_t timeout_ns_;
  std::vector<Entrance> entrances_;
  std::map<int, std::unique_ptr<Greeter>> strangers_;
  bool listening_ = false;
};

// In an epoll: descriptors are told apart by their numbers.
void Watch(int epoll, int operation, int fd, std::uint32_t events);

}  // namespace muster::train
