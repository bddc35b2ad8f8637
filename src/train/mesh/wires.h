// Wires: over what this member can move bulk bytes to members with which it shares no memory
// (MeshOptions::wire), and the threads of the wires that it has.
//
// Gloo is loaded, and its device opened, only where a wire is asked for, or where "auto" finds a
// device for RDMA; "auto" without one, or without Gloo, is "tcp". A wire whose connection is gone
// ends by itself: nobody waits for its thread but the end of the Mesh.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "train/mesh/mesh.h"
#include "train/mesh/throttle.h"
#include "train/mesh/wire.h"
#include "train/mesh/wire_port.h"
#include "train/mesh/wire_terms.h"

namespace muster::train {

// "tcp", "gloo", "ibverbs", "auto"; "ibverbs:DEVICE/PORT/GID" says which device, which port of it
// and which of the port's addresses. "auto:gloo", for tests: gloo where both can, else tcp.
struct WireChoice {
  bool automatic = false;
  WireKind kind = WireKind::kTcp;
  std::string device;  // empty: the first
  int port = 1, gid_index = 0;
};
Result<WireChoice> ParseWire(const std::string& text);

class Wires {
 public:
  // `sources`: where the kernel lists devices for RDMA.
  static Result<std::unique_ptr<Wires>> Open(const MeshOptions& options,
                                             const std::string& sources = "/sys/class/infiniband");
  ~Wires();  // closes them and waits for their threads

  WireKinds kinds() const { return kinds_; }
  // Null: the connection itself. Begins with Start.
  std::shared_ptr<Wire> Make(const WireTerms& terms, Throttle& throttle);
  void Start(std::shared_ptr<Wire> wire, WireOwner& owner);

 private:
  struct Running {
    std::shared_ptr<Wire> wire;
    std::thread thread;
    std::atomic<bool> over = false;
  };

  Wires() = default;
  Result<void> OpenDevice(const WireChoice& choice, const MeshOptions& options);
  void Reap();  // with the lock

  std::int64_t timeout_ms_ = 0;
  WireKinds kinds_ = static_cast<WireKinds>(WireKind::kTcp);
  const WirePort* port_ = nullptr;
  WireDevice* device_ = nullptr;
  std::mutex mutex_;
  std::list<Running> running_;
};

}  // namespace muster::train
