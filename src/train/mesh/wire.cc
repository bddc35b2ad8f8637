#include "train/mesh/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "train/mesh/socket.h"

namespace muster::train {
namespace {

// Of one wait inside of Gloo. Longer than what decides who is lost: a process that was frozen
// itself finds the time over although the other side was there all along.
constexpr std::int64_t kLeastWaitMs = 10'000;
constexpr std::int64_t kTimeoutsPerWait = 4;
constexpr std::int64_t kMs = 1'000'000;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Hash EndProof(const Hash& key, const std::string& from, const std::string& to) {
  const std::string ends = from + to;
  return ProofOf(TextOf(key), "muster wire", std::as_bytes(std::span(ends)));
}

int SlotOf(std::uint64_t chunk) { return static_cast<int>(chunk % kWireSlots); }

FrameHeader ChunkHeader(std::uint64_t number, std::uint64_t bytes) {
  return {FrameKind::kWireChunk, 0, bytes, number, 0};
}

tl::unexpected<Error> Broken(const std::string& what, const char* why) {
  return Fail(ErrorCode::kUnavailable, fmt::format("the wire {}: {}", what, why),
              "--wire tcp does without it");
}

tl::unexpected<Error> Broken(const std::string& what, const WireFault& why) {
  return Broken(what, why.text);
}

tl::unexpected<Error> BreaksRules() {
  return Broken("is broken", "the other worker does not keep to the protocol");
}

tl::unexpected<Error> Closed() { return Broken("is closed", "so is the connection"); }

}  // namespace

Wire::Wire(const WireParts& parts) : parts_(parts), deadline_ns_(NowNs() + parts.timeout_ms * kMs) {
  if (!parts.terms.encrypt) return;
  seal_.emplace(parts.terms.mine);
  open_.emplace(parts.terms.theirs);
}

// Calls of others.

void Wire::Close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  if (pair_ != nullptr) parts_.port.shut(pair_);
  changed_.notify_all();
}

void Wire::Detach() {
  Close();
  const std::lock_guard lock(owner_mutex_);
  owner_ = nullptr;
  detached_ = true;
}

Result<void> Wire::AwaitReady(std::int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  const auto left = std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline_ns - NowNs()));
  const bool known = changed_.wait_for(lock, left, [&] { return ready_ || over_; });
  if (ready_) return {};
  if (!known) return Broken("does not come about", "the other worker is too slow");
  return Broken("does not come about", fault_.empty() ? "it was closed" : fault_.c_str());
}

std::string Wire::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Wire::Offer(std::uint64_t generation, Tag tag, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  queue_.push_back({generation, tag, bytes});
  changed_.notify_all();
}

void Wire::Withdraw(std::uint64_t generation) {
  const std::lock_guard memory_lock(memory_mutex_);
  if (current_ && current_->generation <= generation) {
    current_->cut = true;
    current_->rest = {};
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Bulk& bulk) { return bulk.generation <= generation; });
}

bool Wire::Hear(const FrameHeader& header, std::string payload) {
  const std::lock_guard lock(mutex_);
  if (header.kind == FrameKind::kWireFree) {
    ++free_;
    changed_.notify_all();
    return free_ <= kWireSlots;
  }
  heard_.push_back({header, std::move(payload)});
  changed_.notify_all();
  return true;
}

// The thread.

template <typename Call>
void Wire::Tell(const Call& call) {
  const std::lock_guard lock(owner_mutex_);
  if (owner_ != nullptr) call(*owner_);
}

void Wire::Say(FrameKind kind, std::uint64_t number, std::uint64_t bytes, std::string payload) {
  const FrameHeader header{kind, 0, bytes, number, payload.size()};
  Tell([&](WireOwner& owner) { owner.SayOfWire(header, std::move(payload)); });
}

void Wire::Run(WireOwner& owner) {
  {
    const std::lock_guard lock(owner_mutex_);
    if (!detached_) owner_ = &owner;
  }
  auto going = SetUp();
  if (going) {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    changed_.notify_all();
  }
  while (going) going = Turn();
  End(going);
}

void Wire::End(const Result<void>& how) {
  WirePair* pair = nullptr;
  bool broke = false;
  {
    const std::lock_guard lock(mutex_);
    pair = std::exchange(pair_, nullptr);
    over_ = true;
    broke = !closed_;
    closed_ = true;
    if (broke) fault_ = how.error().message;
    queue_.clear();
    changed_.notify_all();
  }
  if (pair != nullptr) parts_.port.close_pair(pair);
  if (broke) {
    Tell([](WireOwner& owner) { owner.WireBroke(); });
  }
}

Result<void> Wire::SetUp() {
  const WirePairOptions options{kWireSlots, kWireChunk + kSealBytes, parts_.terms.first,
                                std::max(kLeastWaitMs, kTimeoutsPerWait * parts_.timeout_ms)};
  WireFault why{};
  WirePair* pair = parts_.port.open_pair(&parts_.device, &options, &why);
  if (pair == nullptr) return Broken("cannot be opened", why);
  {
    const std::lock_guard lock(mutex_);
    pair_ = pair;
    if (closed_) return Closed();
  }
  std::string own(kMostWireAddress, '\0');
  own.resize(parts_.port.address(pair_, own.data()));
  Say(FrameKind::kWireAddress, 0, 0, own);
  const auto other = Next(FrameKind::kWireAddress);
  if (!other) return tl::unexpected(other.error());
  const std::string& end = other->payload;
  if (!parts_.port.connect(pair_, end.data(), end.size(), &why)) {
    return Broken("cannot be connected", why);
  }
  // Both, before anything is sent: over RDMA it would be lost.
  Say(FrameKind::kWireConnected, 0, 0);
  if (auto both = Next(FrameKind::kWireConnected); !both) return tl::unexpected(both.error());
  if (!parts_.port.make_slots(pair_, &why)) return Broken("has no memory", why);
  return Prove(own, end);
}

// As chunk 0 in each direction.
Result<void> Wire::Prove(const std::string& own, const std::string& other) {
  WireFault why{};
  const Hash mine = EndProof(parts_.terms.mine, own, other);
  std::memcpy(parts_.port.outgoing(pair_, 0), mine.data(), mine.size());
  if (!parts_.port.send(pair_, 0, mine.size(), &why)) return Broken("is broken", why);
  unannounced_ = ChunkHeader(sent_++, mine.size());
  {
    const std::lock_guard lock(mutex_);
    --free_;
  }
  if (auto said = Announce(); !said) return said;
  const auto chunk = Next(FrameKind::kWireChunk);
  if (!chunk) return tl::unexpected(chunk.error());
  Hash theirs{};
  if (chunk->header.generation != theirs.size() || chunk->header.tag != 0) return BreaksRules();
  if (!parts_.port.await_received(pair_, 0, &why)) return Broken("is broken", why);
  std::memcpy(theirs.data(), parts_.port.incoming(pair_, 0), theirs.size());
  ++received_;
  if (!SameProof(theirs, EndProof(parts_.terms.theirs, other, own))) {
    return Broken("is refused", "what is at its other end does not know the secret of the job");
  }
  Say(FrameKind::kWireFree, 0, 0);
  return {};
}

Result<Wire::Frame> Wire::Next(FrameKind kind) {
  std::unique_lock lock(mutex_);
  const auto left = std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline_ns_ - NowNs()));
  const bool there = changed_.wait_for(lock, left, [&] { return closed_ || !heard_.empty(); });
  if (closed_) return Closed();
  if (!there) return Broken("does not come about", "the other worker is too slow");
  Frame out = std::move(heard_.front());
  heard_.pop_front();
  if (out.header.kind != kind) return BreaksRules();
  return out;
}

bool Wire::CanSend() const { return free_ > 0 && (busy_ || !queue_.empty()); }

Result<void> Wire::Turn() {
  std::deque<Frame> heard;
  bool sends = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !heard_.empty() || CanSend(); });
    if (closed_) return Closed();
    heard.swap(heard_);
    sends = CanSend();
  }
  for (const auto& frame : heard) {
    if (auto taken = Take(frame); !taken) return taken;
  }
  if (!sends) return {};
  if (auto sent = SendNext(); !sent) return sent;
  {
    const std::lock_guard lock(mutex_);
    if (CanSend()) return {};
  }
  return Announce();
}

Result<void> Wire::Take(const Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::kWireBegin: {
      FrameHeader header{FrameKind::kBulk, 0, frame.header.generation, frame.header.tag, 0};
      if (frame.payload.size() != sizeof header.length) return BreaksRules();
      std::memcpy(&header.length, frame.payload.data(), sizeof header.length);
      bool good = true;
      Tell([&](WireOwner& owner) { good = owner.WireBegins(header); });
      if (!good) return BreaksRules();
      return {};
    }
    case FrameKind::kWireChunk: {
      const auto bytes = Receive(frame);
      if (!bytes) return tl::unexpected(bytes.error());
      bool good = true;
      Tell([&](WireOwner& owner) { good = owner.WireBrings(*bytes); });
      if (!good) return BreaksRules();
      Say(FrameKind::kWireFree, 0, 0);
      return {};
    }
    case FrameKind::kWireCut:
      Tell([](WireOwner& owner) { owner.WireCuts(); });
      return {};
    default:
      return BreaksRules();
  }
}

Result<std::span<std::byte>> Wire::Receive(const Frame& chunk) {
  const std::uint64_t bytes = chunk.header.generation;
  const int slot = SlotOf(received_);
  if (chunk.header.tag != received_++ || bytes > kWireChunk) return BreaksRules();
  WireFault why{};
  if (!parts_.port.await_received(pair_, slot, &why)) return Broken("is broken", why);
  const std::span<std::byte> out(parts_.port.incoming(pair_, slot), bytes);
  if (!open_) return out;
  std::array<std::byte, kSealBytes> seal{};
  std::memcpy(seal.data(), out.data() + bytes, seal.size());
  const FrameHeader header = ChunkHeader(chunk.header.tag, bytes);
  if (!open_->Open(std::as_bytes(std::span(&header, 1)), out, seal)) {
    return Broken("is broken", "somebody has changed what goes over it");
  }
  return out;
}

// How many bytes go next, where there is something to send.
std::optional<std::size_t> Wire::Pick() {
  const std::lock_guard memory_lock(memory_mutex_);
  const std::lock_guard lock(mutex_);
  if (!current_ && !queue_.empty()) {
    current_ = queue_.front();
    queue_.pop_front();
  }
  busy_ = current_.has_value();
  if (!busy_) return {};
  return std::min(current_->rest.size(), kWireChunk);
}

// What comes in meanwhile is taken: both directions are throttled, but not by each other.
Result<void> Wire::AwaitTokens(std::size_t bytes) {
  while (true) {
    bytes -= parts_.throttle.Take(bytes);
    if (bytes == 0) return {};
    std::deque<Frame> heard;
    {
      std::unique_lock lock(mutex_);
      const auto wait = std::chrono::nanoseconds(parts_.throttle.WaitNs());
      changed_.wait_for(lock, wait, [&] { return closed_ || !heard_.empty(); });
      if (closed_) return Closed();
      heard.swap(heard_);
    }
    for (const auto& frame : heard) {
      if (auto taken = Take(frame); !taken) return taken;
    }
  }
}

// Says that the current one begins, once, behind all of the one before.
Result<void> Wire::Begin() {
  std::unique_lock lock(memory_mutex_);
  if (current_->begun || current_->cut) return {};
  current_->begun = true;
  const Bulk bulk = *current_;
  lock.unlock();
  if (auto said = Announce(); !said) return said;
  const std::uint64_t length = bulk.rest.size();
  Say(FrameKind::kWireBegin, bulk.tag, bulk.generation,
      std::string(TextOf(std::as_bytes(std::span(&length, 1)))));
  return {};
}

// The next chunk of the current one, into a slot.
Wire::Chunk Wire::Fill(int slot) {
  const std::lock_guard lock(memory_mutex_);
  Bulk& bulk = *current_;
  Chunk out;
  out.bytes = std::min(bulk.rest.size(), kWireChunk);
  out.cut = bulk.cut && bulk.begun;
  const FrameHeader header = ChunkHeader(sent_, out.bytes);
  std::byte* const into = parts_.port.outgoing(pair_, slot);
  if (seal_ && out.bytes > 0) {
    const auto seal =
        seal_->Seal(std::as_bytes(std::span(&header, 1)), bulk.rest.first(out.bytes), into);
    std::memcpy(into + out.bytes, seal.data(), seal.size());
  } else if (out.bytes > 0) {
    std::memcpy(into, bulk.rest.data(), out.bytes);
  }
  bulk.rest = bulk.rest.subspan(out.bytes);
  const bool over = bulk.rest.empty();
  if (over) current_.reset();
  const std::lock_guard state_lock(mutex_);
  busy_ = !over;
  if (out.bytes > 0) --free_;
  return out;
}

// One chunk, and the announcement of the one before: while that goes, this one is copied.
Result<void> Wire::SendNext() {
  const auto next = Pick();
  if (!next) return {};
  if (auto begun = Begin(); !begun) return begun;
  if (auto allowed = AwaitTokens(*next); !allowed) return allowed;
  const int slot = SlotOf(sent_);
  const Chunk chunk = Fill(slot);
  WireFault why{};
  const std::size_t sealed = chunk.bytes + (seal_ ? kSealBytes : 0);
  if (chunk.bytes > 0 && !parts_.port.send(pair_, slot, sealed, &why)) {
    return Broken("is broken", why);
  }
  if (auto said = Announce(); !said) return said;
  if (chunk.bytes > 0) unannounced_ = ChunkHeader(sent_++, chunk.bytes);
  if (chunk.cut) Say(FrameKind::kWireCut, 0, 0);
  return {};
}

Result<void> Wire::Announce() {
  if (!unannounced_) return {};
  const FrameHeader header = *unannounced_;
  unannounced_.reset();
  WireFault why{};
  if (!parts_.port.await_sent(pair_, SlotOf(header.tag), &why)) return Broken("is broken", why);
  Say(header.kind, header.tag, header.generation);
  return {};
}

}  // namespace muster::train
