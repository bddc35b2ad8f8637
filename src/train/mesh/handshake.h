// Handshake: how two members come to trust a connection, or learn why not.
//
// The dialer says who it is, the listener answers with its proof of the secret, the dialer with its
// own, the listener says ready; each proof covers everything said before, fresh numbers of both
// sides among it, so a recording proves nothing. Before the dialer's proof the listener keeps at
// most one message of the other side and the two file descriptors that belong to a proof, and gives
// up at a deadline. Where memory is shared, its descriptors travel with the proof and with ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/mesh/mesh.h"
#include "train/mesh/sealing.h"
#include "train/mesh/segment.h"
#include "train/mesh/socket.h"
#include "train/mesh/wire_terms.h"

namespace muster::train {

constexpr std::uint16_t kMeshVersion = 5;

// What a member says of itself, and knows.
struct Identity {
  MemberId id = 0;
  std::string job, secret;
  bool encrypt = false;
  int segment_fd = -1;  // handed to peers on this host; -1: memory is not shared
  std::uint16_t version = kMeshVersion;
  std::string peers = "worker";                              // what errors call the other side
  WireKinds wires = static_cast<WireKinds>(WireKind::kTcp);  // any of them will do
};

enum class Refusal : std::uint16_t {
  kVersion = 1,
  kJob,
  kMember,
  kSecret,
  kEncrypt,
  kTwice,
  kWire
};

// A connection on which both have proved that they know the secret.
struct Trusted {
  Fd fd;
  MemberId peer = 0;
  bool dialed = false;          // by this member
  std::optional<Segment> pair;  // where memory is shared
  std::optional<Segment> theirs;
  std::optional<Sealer> seal, open;  // where frames are encrypted
  WireTerms wire;                    // where memory is not shared
};

// The dialer's side, at most until the deadline. kConflict: there is a connection already, or the
// other side is dialing too.
Result<Trusted> DialPeer(const Identity& self, const Endpoint& peer, bool share,
                         std::int64_t deadline_ns);

// The listener's side of one connection, as bytes come in.
class Greeter {
 public:
  Greeter(const Identity& self, Fd fd, bool share, std::int64_t deadline_ns);

  enum class Step { kMore, kProved, kOver };
  Step Read();
  // After kProved: maps what the peer shares; false: it is not usable.
  bool Map();
  // Then, once: says ready. Nothing: it has left. Does not wait.
  std::optional<Trusted> Welcome();
  void Refuse(Refusal why);

  int fd() const { return fd_.get(); }
  MemberId peer() const { return peer_; }
  std::int64_t deadline_ns() const { return deadline_ns_; }

 private:
  Step TakeMessage(std::uint16_t kind, const std::vector<std::byte>& message);
  Step TakeHello(const std::vector<std::byte>& message);
  Step TakeProof(const std::vector<std::byte>& message);

  const Identity& self_;
  Fd fd_;
  bool share_;
  std::int64_t deadline_ns_;
  std::vector<std::byte> buffer_;
  std::vector<std::byte> transcript_;
  std::vector<Fd> fds_;
  std::optional<Segment> pair_, theirs_;
  MemberId peer_ = 0;
  WireKind wire_ = WireKind::kTcp;
  bool greeted_ = false;
};

}  // namespace muster::train
