// Link: one trusted connection: frames out, frames in, and what has arrived but is not looked at.
//
// Control messages go before bulk that has not begun. Bulk is written straight from the memory of
// the one who offers and read straight into that of one who waits in Fetch, else into a buffer that
// is used again. Any thread may send or read when it finds the socket free, so that a wait need not
// go through the thread of the mesh; whoever reads, control messages are handed to the owner in
// order. When encrypted, a header is checked by its seal before anything in it is believed, and the
// bytes behind it by theirs before anybody gets them; otherwise nothing is. Where there is a wire,
// bulk that is not small goes over it, and only what is said of it goes here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/mesh/fabric.h"
#include "train/mesh/frame.h"
#include "train/mesh/handshake.h"
#include "train/mesh/pair.h"
#include "train/mesh/throttle.h"
#include "train/mesh/wire.h"

namespace muster::train {

// Bytes of no value yet, taken from a pool and given back.
struct Buffer {
  std::unique_ptr<std::byte[]> data;
  std::size_t capacity = 0, size = 0;
};

// A frame that is being read.
struct Incoming {
  FrameHeader header;
  std::byte* into = nullptr;  // null: thrown away
  std::size_t whole = 0;      // bytes behind the header: the payload and its seal
  std::size_t got = 0;        // of those
  Buffer buffer;
  std::string told;
  bool expected = false;
  std::array<std::byte, kSealBytes> seal{};
};

class Link;
// Whom a link tells, from any thread; must not call back into the link.
class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  virtual void Told(const Link& link, std::string bytes) = 0;
  virtual void WantsRoom(const Link& link) = 0;  // call Flush when the socket takes bytes again
  virtual void WantsTime(const Link& link) = 0;  // call Flush when the throttle lets more through
  virtual void GaveUp(const Link& link) = 0;     // see gave_up
  virtual void Ended(const Link& link) = 0;      // the other side has closed, or broke the rules
};

// The other way for bulk; none without a wire.
struct LinkWire {
  std::shared_ptr<Wire> wire;
  std::size_t least_bytes = 0;  // fewer go over the connection
};

class Link final : private WireOwner {
 public:
  // `number`: no other link of the owner ever has it, as one may have its descriptor.
  Link(int number, Trusted trusted, LinkOwner& owner, Throttle& throttle, LinkWire wire = {});
  ~Link() override;

  MemberId peer() const { return peer_; }
  int number() const { return number_; }
  int fd() const { return fd_.get(); }
  bool shares() const { return theirs_.has_value(); }
  std::span<const std::byte> theirs() const { return theirs_->bytes(); }
  Bell& bell() { return pair_->sides[mine_].bell; }  // where threads of this process sleep
  Bell& their_bell() { return pair_->sides[1 - mine_].bell; }
  std::array<Slot, kPairSlots>& offers() { return pair_->sides[mine_].offers; }
  std::array<Slot, kPairSlots>& their_offers() { return pair_->sides[1 - mine_].offers; }
  Life& life() { return pair_->sides[mine_].life; }
  Life& their_life() { return pair_->sides[1 - mine_].life; }
  std::int64_t heard_ns() const { return heard_ns_.load(std::memory_order_relaxed); }

  // The last generation that the peer has given up; 0: none.
  std::uint64_t gave_up() const { return gave_up_.load(); }

  // Waits until the memory of the peer is mapped, where it is shared, or its wire can be used.
  Result<void> Settle(std::int64_t deadline_ns) {
    if (theirs_) theirs_->Settle();
    return wire_ ? wire_->AwaitReady(deadline_ns) : Result<void>();
  }
  const std::shared_ptr<Wire>& wire() const { return wire_; }
  WireOwner& wire_owner() { return *this; }

  // Why the other side is not listened to any more; null: it may have closed, and nothing else.
  const char* fault() const { return fault_.load(); }

  void Shut();  // both directions, now
  bool shut() const { return shut_.load(); }

  // Sending.
  void Beat();
  void Tell(std::string bytes);
  void GiveUp(std::uint64_t generation);
  void OfferBulk(std::uint64_t generation, Tag tag, std::span<const std::byte> bytes);
  bool Done(std::uint64_t generation, Tag tag) const;  // the peer is done with what was offered
  void Flush();
  // Bulk of the generation no longer touches the memory of those who offered or expected it.
  void Withdraw(std::uint64_t generation);

  // Reading: what is there, at most a few MiB; whether anything was. `wait`: for another thread
  // that reads right now, instead of leaving it to it.
  bool Read(bool wait);
  std::optional<std::span<const std::byte>> Arrived(std::uint64_t generation, Tag tag);
  void Release(std::uint64_t generation, Tag tag);  // and tells the peer that it is done
  // Straight into `into`, unless it has arrived or begun already.
  void Expect(std::uint64_t generation, Tag tag, std::span<std::byte> into);
  bool Filled(std::uint64_t generation, Tag tag);    // all of it is there
  void Unexpect(std::uint64_t generation, Tag tag);  // `into` is not touched any more
  // Frames of generations before are dropped from now on.
  void SetGeneration(std::uint64_t generation);

 private:
  using Key = std::pair<std::uint64_t, Tag>;
  struct Frame {
    FrameHeader header;
    std::string own = {};
    std::span<const std::byte> borrowed = {};
  };
  // What goes out in one piece: control frames and the header of a bulk frame, then its bytes.
  struct Outgoing {
    std::string head;
    std::optional<std::uint64_t> generation;  // of the bulk frame, where there is one
    std::string own;
    std::span<const std::byte> borrowed;
    std::string tail;  // its seal
    std::size_t sent = 0;
    std::span<const std::byte> payload() const {
      return own.empty() ? borrowed : std::as_bytes(std::span(own));
    }
  };
  struct Expected {
    std::span<std::byte> into;
    bool filling = false, filled = false;
  };
  void SayOfWire(const FrameHeader& header, std::string payload) override;
  bool WireBegins(const FrameHeader& header) override;
  bool WireBrings(std::span<const std::byte> bytes) override;
  void WireCuts() override;
  void WireBroke() override;

  void Push(std::deque<Frame>& queue, Frame frame);
  std::optional<Outgoing> Gather();
  enum class Went : std::uint8_t { kAll, kWantsTime, kWantsRoom, kNoMore };
  Went SendSome(Outgoing& out);
  // Behind a header; behind so many bytes of payload.
  std::size_t SealSize() const { return seal_ ? kSealBytes : 0; }
  std::size_t SealSize(std::size_t payload) const { return payload > 0 ? SealSize() : 0; }
  ssize_t ReceiveSome();
  bool TakeStaged();
  void TakePayload(Incoming& frame);
  bool TakeHeader();
  bool Begin(const FrameHeader& header);
  bool FindPlace(Incoming& frame);
  bool Breaks(const char* fault);
  static void Forget(std::optional<Incoming>& frame);
  bool Finish();
  void FinishBulk(Incoming frame);
  Buffer TakeBuffer(std::size_t size);
  void GiveBuffer(Buffer buffer);

  const int number_;
  const MemberId peer_;
  const Fd fd_;
  LinkOwner& owner_;
  Throttle& throttle_;
  std::optional<Segment> pair_segment_, theirs_;
  std::unique_ptr<Pair> own_pair_;  // where memory is not shared
  Pair* pair_ = nullptr;
  const std::size_t mine_;
  std::atomic<bool> shut_ = false;
  std::atomic<std::int64_t> heard_ns_;
  std::atomic<std::uint64_t> gave_up_ = 0;
  std::atomic<const char*> fault_ = nullptr;

  // Who finds it taken leaves his frames to the one who sends: nobody waits while bytes are copied.
  std::mutex send_mutex_;
  std::optional<Outgoing> current_;
  std::optional<Sealer> seal_;
  bool broken_ = false;  // nothing more can be sent
  std::mutex queue_mutex_;
  std::deque<Frame> control_, bulk_;

  std::mutex read_mutex_;
  bool over_ = false;  // the other side has closed, or broke the rules
  std::vector<std::byte> staged_;
  std::size_t staged_from_ = 0, staged_to_ = 0;
  std::optional<Incoming> incoming_;
  std::optional<Sealer> open_;
  std::vector<std::byte> waste_;

  const std::shared_ptr<Wire> wire_;
  const std::size_t wire_least_bytes_;
  std::mutex wire_mutex_;  // taken before arrived_mutex_
  std::optional<Incoming> wire_incoming_;

  mutable std::mutex arrived_mutex_;  // what follows
  std::uint64_t generation_ = 0;
  std::map<Key, Buffer> arrived_;
  std::map<Key, Expected> expected_;
  std::map<Key, bool> unacknowledged_;
  std::vector<Buffer> pool_;
};

}  // namespace muster::train
