// Wire: a second way for bulk bytes between two members, beside their connection.
//
// Bytes go in chunks through a few slots of fixed size at both ends (wire_port.h), each announced
// over the connection once it has gone: so whoever waits for a chunk waits for what is on its way,
// a wait ends soon whatever becomes of the other side, and the connection alone says who is lost.
// A slot is used again when the other end has said that it is empty. Ends are exchanged over the
// connection, which is trusted; what then arrives first must be a proof made from keys of that
// connection, and where frames are encrypted every chunk is sealed. All of it runs in a thread of
// the wire: the caller's memory is copied to and from slots there, under a lock that Withdraw
// takes. When it breaks, the connection is as good as broken.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/mesh/frame.h"
#include "train/mesh/throttle.h"
#include "train/mesh/wire_port.h"
#include "train/mesh/wire_terms.h"

namespace muster::train {

constexpr int kWireSlots = 4;
constexpr std::size_t kWireChunk = 512U << 10U;

// Whom a wire belongs to; called from its thread.
class WireOwner {
 public:
  virtual ~WireOwner() = default;
  virtual void SayOfWire(const FrameHeader& header, std::string payload) = 0;
  // Of bulk, with its length; false: there is no place for so much.
  virtual bool WireBegins(const FrameHeader& header) = 0;
  // The next bytes of it; false: more than its length.
  virtual bool WireBrings(std::span<const std::byte> bytes) = 0;
  virtual void WireCuts() = 0;  // the rest of it does not come
  virtual void WireBroke() = 0;
};

struct WireParts {
  const WirePort& port;
  WireDevice& device;
  WireTerms terms;
  Throttle& throttle;
  std::int64_t timeout_ms = 0;
};

class Wire {
 public:
  explicit Wire(const WireParts& parts);

  void Run(WireOwner& owner);  // the thread; until it is closed or breaks
  void Close();                // soon
  void Detach();               // and the owner is not called any more

  // Until it can carry bytes, or cannot; its fault, or an error at the deadline.
  Result<void> AwaitReady(std::int64_t deadline_ns);
  std::string fault() const;  // empty: none

  void Offer(std::uint64_t generation, Tag tag, std::span<const std::byte> bytes);
  // What was offered up to the generation is not read any more.
  void Withdraw(std::uint64_t generation);
  // What the other end says of it over the connection; false: it breaks the rules.
  bool Hear(const FrameHeader& header, std::string payload);

 private:
  struct Frame {
    FrameHeader header;
    std::string payload = {};
  };
  struct Bulk {
    std::uint64_t generation = 0;
    Tag tag = 0;
    std::span<const std::byte> rest;
    bool begun = false, cut = false;
  };
  struct Chunk {
    std::size_t bytes = 0;
    bool cut = false;  // the rest of its bulk
  };

  template <typename Call>
  void Tell(const Call& call);
  void Say(FrameKind kind, std::uint64_t number, std::uint64_t bytes, std::string payload = {});
  Result<void> SetUp();
  Result<void> Prove(const std::string& own, const std::string& other);
  Result<Frame> Next(FrameKind kind);
  Result<void> Turn();
  Result<void> Take(const Frame& frame);
  Result<std::span<std::byte>> Receive(const Frame& chunk);
  bool CanSend() const;  // with the lock
  std::optional<std::size_t> Pick();
  Result<void> AwaitTokens(std::size_t bytes);
  Result<void> Begin();
  Chunk Fill(int slot);
  Result<void> SendNext();
  Result<void> Announce();
  void End(const Result<void>& how);

  const WireParts parts_;
  std::optional<Sealer> seal_, open_;
  const std::int64_t deadline_ns_;  // for SetUp

  std::mutex owner_mutex_;
  WireOwner* owner_ = nullptr;
  bool detached_ = false;

  // Of the thread.
  std::uint64_t sent_ = 0, received_ = 0;   // chunks
  std::optional<FrameHeader> unannounced_;  // a chunk

  std::mutex memory_mutex_;  // of others, while it is read; taken before mutex_
  std::optional<Bulk> current_;

  mutable std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  std::deque<Frame> heard_;
  std::deque<Bulk> queue_;
  bool busy_ = false;  // there is a current one
  int free_ = kWireSlots;
  WirePair* pair_ = nullptr;
  bool closed_ = false, ready_ = false, over_ = false;
  std::string fault_;
};

}  // namespace muster::train
