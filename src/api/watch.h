// Watch: events as they happen, to whoever wants to see them.
//
// What was committed is handed over by the controller's thread once, with what it takes to decide
// who may see it; each event is written as JSON once, however many watch. Watchers of one caller
// share the decision, and of one choice of kinds the bytes; a caller has few such choices, and no
// filter, for each would be work and memory of the scheduler's. The first event is sent at once;
// those that follow within kPaceMs are sent together: a thousand watchers cost one hand-over, and
// each one write a pace. A watcher begins where it says, with what the store has, and goes on
// without a gap; one that does not read is cut off and comes back with Last-Event-ID.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/desk.h"
#include "api/fan_out.h"
#include "model/event.h"

namespace muster::api {

struct Event {
  const state::Record* record = nullptr;
  model::EventBody body;
};

class Watch {
 public:
  explicit Watch(Desk& desk) : desk_(desk) {}

  // The call `watchEvents`: a list, or a stream.
  void Events(const Call& call);

  // On the controller's thread, after each commit.
  void Written(const Controller& control, std::span<const Event> events);

  std::size_t watchers() const { return watchers_; }

 private:
  struct Stream {  // of one caller, for one choice of kinds
    std::vector<std::shared_ptr<net::Exchange>> watchers;
    std::string waiting;  // frames that are sent at the next pace
  };
  struct Group {  // of one caller
    control::Caller caller;
    std::unique_ptr<Access> access;
    std::uint64_t access_at = 0;            // revision of the rights that it was made from
    std::map<std::string, Stream> streams;  // by kinds: ",a,b,"; empty: all
    void Forget();                          // those that have gone
  };

  struct Replay;
  void Catch(const std::shared_ptr<Replay>& replay, Controller& control);
  void GoOn(const std::shared_ptr<Replay>& replay);
  bool HasRoom(const Access& access, const std::string& kinds);
  void Join(const Replay& replay, const Access& access);
  void Send();
  void KeepAlive();

  Desk& desk_;
  std::shared_ptr<FanOut> fan_out_ = std::make_shared<FanOut>();
  // All on the controller's thread.
  std::map<std::string, Group> groups_;
  std::atomic<std::size_t> watchers_ = 0;  // read by others
  std::uint64_t rights_at_ = 0;            // the last event that may have changed who may see what
  bool ticking_ = false;
  bool pacing_ = false;  // something was sent less than kPaceMs ago
};

}  // namespace muster::api
