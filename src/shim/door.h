// Door: those who look at a worker, type to it, or run something beside it.
//
// Nothing they do can hold up the worker: what one of them does not read is bounded (who is too
// slow is dropped and told so), what they type and the worker does not read makes them wait, not
// the shim. While nobody is there it costs one descriptor in the poll and, for a worker with a
// terminal, one copy of what it prints.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contract/door.h"
#include "contract/frames.h"
#include "shim/beside.h"
#include "shim/console.h"
#include "shim/peer.h"
#include "shim/replay.h"

namespace muster::shim {

class Door {
 public:
  // `worker` must outlive this.
  Door(int listener, const Place& place, Console& worker);

  void AddTo(std::vector<pollfd>& polled);
  // Takes whatever there is, without waiting; `polled` as poll() left it.
  void Serve(const std::vector<pollfd>& polled);

  void Show(contract::FrameKind kind, std::string_view bytes);  // what the worker printed
  void Ended(pid_t pid, int status);                            // of any process that was reaped
  void RefuseExecs() { takes_execs_ = false; }                  // the worker is being stopped
  bool TakeTyped();  // whether anybody typed at a terminal since this was asked

  // The worker has ended and nothing of it is alive; all are told.
  void Conclude(contract::FrameKind kind, std::string_view last);
  bool empty() const { return sessions_.empty(); }

 private:
  struct Session {
    explicit Session(Handle socket) : peer(std::move(socket)) {}
    Peer peer;
    bool attached = false;
    std::unique_ptr<Beside> beside;
  };

  void Accept();
  void Serve(Session& session);
  void Take(Session& session);
  void Begin(Session& session, std::string_view line);
  void Obey(Session& session, const contract::Frame& frame);
  Console& ConsoleOf(Session& session);
  void DropGone();

  int listener_;
  std::size_t listener_at_ = 0;  // in what is polled
  Place place_;
  Console& worker_;
  Replay replay_;
  std::vector<std::unique_ptr<Session>> sessions_;
  bool takes_execs_ = true;
  bool typed_ = false;
};

}  // namespace muster::shim
