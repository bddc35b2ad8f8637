// Mesh: everything between this worker and the other workers of its job.
//
// One connection to each peer carries small control messages and tells who is lost; what is offered
// to a peer in bulk goes through shared memory where both are on one host and over the connection
// where they are not. Connections and mapped memory outlive changes of the gang: a Fabric is the
// use of some of them in one generation, and costs nothing to set up. Who connects must know the
// secret of the job. One thread per Mesh serves the sockets; callbacks run there and must not
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"

namespace muster::train {

// How a worker is reached. A process that comes back is another member: ids are drawn anew.
struct Endpoint {
  MemberId id = 0;
  std::string host;     // equal: memory can be shared
  std::string address;  // "127.0.0.1:41234"; the port is whatever was free
  std::string segment;  // the local socket at which its memory is had; empty: not shared
  std::uint64_t segment_bytes = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

enum class LostHow {
  kClosed,  // its process has ended, or closed the connection
  kSilent,  // nothing was heard for the time-out: frozen, or cut off
};

// Shorter ones are refused: beats and leases come several times within one, and a thread that was
// only late would be taken for lost.
inline constexpr std::int64_t kLeastTimeoutMs = 50;

struct MeshOptions {
  std::string job;     // who belongs to another job is refused by this name before the secret is
  std::string secret;  // of the job
  std::string host;    // empty: found out (boot id and network namespace)
  std::string address = "127.0.0.1";  // to listen on: one that peers on other hosts reach
  std::uint64_t memory_bytes = 0;     // to be shared with peers on this host
  // The one time-out: silence for so long is a loss. The same for all: beats follow it.
  std::int64_t timeout_ms = 900;
  // What goes over connections. Without it the handshake is authenticated, frames are not: whoever
  // can change packets on the way can change them. Shared memory is never encrypted.
  bool encrypt = false;
  bool share_memory = true;  // false: connections also on one host (to measure, to test)
  std::int64_t throttle_bytes_per_s = 0;  // of what goes over connections; 0: not held back
  // How bulk bytes go where memory is not shared: tcp (the connection), gloo (Gloo over TCP),
  // ibverbs (Gloo over RDMA), auto (ibverbs where both sides can, else tcp). See wires.h.
  std::string wire = "auto";
  std::uint64_t wire_least_bytes = 32U << 10U;  // fewer go over the connection
};

struct MeshEvents {
  std::function<void(MemberId from, std::string bytes)> told;
  std::function<void(MemberId who, LostHow how)> lost;
};

class Mesh {
 public:
  static Result<std::unique_ptr<Mesh>> Open(const MeshOptions& options, MeshEvents events);
  virtual ~Mesh() = default;

  virtual const Endpoint& self() const = 0;
  // The memory that peers on this host can read, from its first byte on; page-aligned, prefaulted.
  virtual std::span<std::byte> memory() = 0;

  // Until the connection stands and its memory is mapped, at most the time-out; nothing if it
  // stands already. Either side may begin, also both at once. Not from a callback: it waits.
  virtual Result<void> Connect(const Endpoint& peer) = 0;
  virtual bool Connected(MemberId peer) const = 0;
  // Closes the connection without telling `lost` here; the other side sees kClosed.
  virtual void Drop(MemberId peer) = 0;

  // A control message: small, in order, never waits. To one who is lost: nothing happens. What is
  // told right before Drop or the end of the Mesh may not arrive.
  virtual void Tell(MemberId peer, std::string bytes) = 0;

  // The members, this one among them, in the order of their ranks; all are connected. What earlier
  // generations offered is void. A Fabric must be gone before the next is entered; generations go
  // up.
  virtual Result<std::unique_ptr<Fabric>> Enter(std::uint64_t generation,
                                                const std::vector<MemberId>& members) = 0;
};

}  // namespace muster::train
