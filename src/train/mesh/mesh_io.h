// MeshIo: the Mesh itself: who is connected, and the one thread that serves the sockets.
//
// The thread accepts, greets, reads what nobody reads himself, writes what found no room, sends
// heartbeats and decides who is lost; a process of this host that ends is told by its lifeline.
// Callbacks run there, without a lock. Dialing waits in the thread of the caller. Of two
// connections between the same two members the one that the lower id dialed is kept: the lower
// refuses while it dials, and the higher gives way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "train/mesh/bounce.h"
#include "train/mesh/gang_fabric.h"
#include "train/mesh/lifeline.h"
#include "train/mesh/link.h"
#include "train/mesh/mesh.h"
#include "train/mesh/reception.h"
#include "train/mesh/segment.h"
#include "train/mesh/throttle.h"
#include "train/mesh/wires.h"

namespace muster::train {

struct MeshParts {
  MeshOptions options;
  MeshEvents events;
  Endpoint self;
  Segment segment;  // the memory and the bounce area behind it
  std::size_t bounce_bytes = 0;
  Fd tcp, local;
  std::unique_ptr<Wires> wires;
};

class MeshIo final : public Mesh, private LinkOwner {
 public:
  explicit MeshIo(MeshParts parts);
  ~MeshIo() override;

  const Endpoint& self() const override { return parts_.self; }
  std::span<std::byte> memory() override;
  Result<void> Connect(const Endpoint& peer) override;
  bool Connected(MemberId peer) const override;
  void Drop(MemberId peer) override;
  void Tell(MemberId peer, std::string bytes) override;
  Result<std::unique_ptr<Fabric>> Enter(std::uint64_t generation,
                                        const std::vector<MemberId>& members) override;

 private:
  using LinkPtr = std::shared_ptr<Link>;  // shared with a Fabric that may outlive the connection

  void Told(const Link& link, std::string bytes) override;
  void WantsRoom(const Link& link) override;
  void WantsTime(const Link& link) override;
  void GaveUp(const Link& link) override;
  void Ended(const Link& link) override;

  void Over(int number);
  void Run();
  void Wake();
  int WaitMs(std::int64_t now_ns) const;
  void Admit(Greeter& greeter);
  void Serve(int fd, std::uint32_t events);
  void Deliver();
  std::vector<LinkPtr> HearOut(const std::set<int>& ended);
  void Lose(const LinkPtr& link, LostHow how);
  void TakeOut(const LinkPtr& link, const std::string& why);
  std::int64_t TimeoutNs() const { return parts_.options.timeout_ms * 1'000'000; }
  std::int64_t SilentAtNs(const Link& link) const;
  void FindSilent(std::int64_t looked_ns);
  void Tick(std::int64_t now_ns);
  LinkPtr Insert(Trusted trusted);  // with the lock
  std::vector<LinkPtr> AllLinks() const;

  MeshParts parts_;
  Identity identity_;
  Bounce bounce_;
  Throttle throttle_;
  Fd epoll_, wake_;
  std::atomic<bool> stop_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<MemberId, LinkPtr> links_;
  std::map<int, LinkPtr> by_fd_;
  int links_made_ = 0;
  std::set<MemberId> dialing_, admitting_;
  std::uint64_t generation_ = 0;

  std::mutex fabric_mutex_;
  GangFabric* fabric_ = nullptr;

  mutable std::mutex inbox_mutex_;  // the last one taken
  std::vector<std::pair<MemberId, std::string>> told_;
  std::set<int> ended_;   // by their number
  std::set<int> timed_;   // by their descriptor
  bool gave_up_ = false;  // somebody, some generation

  // Of the thread alone.
  std::optional<Reception> reception_;
  std::int64_t next_beat_ns_ = 0;
  std::int64_t last_look_ns_ = 0;    // at the sockets
  std::int64_t awake_since_ns_ = 0;  // after a pause of this process itself
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_;
  std::unique_ptr<Lifelines> lifelines_;
  std::unique_ptr<Wires> wires_;  // the last one made: their threads use the others
};

}  // namespace muster::train
