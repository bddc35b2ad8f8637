#include "train/mesh/link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
#endif

namespace muster::train {
namespace {

// The thread sanitizer notes what sendmsg read when the call is over. By then the peer may have
// answered, and another thread may have received the answer into the same place, as it may.
ssize_t SendNow(int fd, const msghdr& message) {
#if defined(__SANITIZE_THREAD__)
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#endif
  const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
#if defined(__SANITIZE_THREAD__)
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  return sent;
}

constexpr std::size_t kHeader = sizeof(FrameHeader);
static_assert(kHeader == 32);
constexpr std::size_t kStaged = 4096;         // read ahead beyond the frame at hand
constexpr std::size_t kWaste = 256 << 10U;    // read at a time of what is thrown away
constexpr std::size_t kReadTurn = 4U << 20U;  // before another connection has its turn
constexpr std::size_t kGathered = 64 << 10U;  // of control frames in one call
constexpr std::size_t kPooled = 64;

constexpr const char* kChanged = "what it sent was changed on the way";
constexpr const char* kBreaksRules = "it does not keep to the protocol";
constexpr const char* kNoMemory = "there is no memory here for what it sends";

std::span<const std::byte> BytesOf(const FrameHeader& header) {
  return std::as_bytes(std::span(&header, 1));
}

}  // namespace

Link::Link(int number, Trusted trusted, LinkOwner& owner, Throttle& throttle, LinkWire wire)
    : number_(number),
      peer_(trusted.peer),
      fd_(std::move(trusted.fd)),
      owner_(owner),
      throttle_(throttle),
      pair_segment_(std::move(trusted.pair)),
      theirs_(std::move(trusted.theirs)),
      mine_(trusted.dialed ? 0 : 1),
      heard_ns_(NowNs()),
      seal_(std::move(trusted.seal)),
      staged_(kStaged),
      open_(std::move(trusted.open)),
      waste_(kWaste),
      wire_(std::move(wire.wire)),
      wire_least_bytes_(wire.least_bytes) {
  if (pair_segment_) {
    pair_ = reinterpret_cast<Pair*>(pair_segment_->bytes().data());
  } else {
    own_pair_ = std::make_unique<Pair>();
    pair_ = own_pair_.get();
  }
}

Link::~Link() {
  if (wire_) wire_->Detach();
}

void Link::Shut() {
  shut_ = true;
  shutdown(fd_.get(), SHUT_RDWR);
  if (wire_) wire_->Close();
}

void Link::Beat() { Push(control_, {.header = {}}); }

void Link::Tell(std::string bytes) {
  MUSTER_CHECK(bytes.size() <= kMostTold, "a control message is small");
  const FrameHeader header{FrameKind::kTold, 0, 0, 0, bytes.size()};
  Push(control_, {.header = header, .own = std::move(bytes)});
}

void Link::GiveUp(std::uint64_t generation) {
  Push(control_, {.header = {FrameKind::kGaveUp, 0, generation, 0, 0}});
}

void Link::OfferBulk(std::uint64_t generation, Tag tag, std::span<const std::byte> bytes) {
  MUSTER_CHECK(bytes.size() <= kMostBulk, "an offer has at most 64 GiB");
  {
    const std::lock_guard lock(arrived_mutex_);
    unacknowledged_[{generation, tag}] = true;
  }
  if (wire_ && bytes.size() >= wire_least_bytes_) {
    wire_->Offer(generation, tag, bytes);
    return;
  }
  const FrameHeader header{FrameKind::kBulk, 0, generation, tag, bytes.size()};
  Push(bulk_, {.header = header, .borrowed = bytes});
}

bool Link::Done(std::uint64_t generation, Tag tag) const {
  const std::lock_guard lock(arrived_mutex_);
  return !unacknowledged_.contains({generation, tag});
}

void Link::Push(std::deque<Frame>& queue, Frame frame) {
  if (shut_) return;
  {
    const std::lock_guard lock(queue_mutex_);
    queue.push_back(std::move(frame));
  }
  Flush();
}

// The owner is told what is wanted when the lock is free again: its thread may come at once, and
// one that finds the lock taken leaves the rest to who has it.
void Link::Flush() {
  while (!shut_) {
    auto went = Went::kAll;
    {
      const std::unique_lock lock(send_mutex_, std::try_to_lock);
      if (!lock || broken_) return;
      if (!current_) current_ = Gather();
      if (current_) went = SendSome(*current_);
      if (went == Went::kAll) current_.reset();
    }
    if (went == Went::kWantsTime) owner_.WantsTime(*this);
    if (went == Went::kWantsRoom) owner_.WantsRoom(*this);
    if (went != Went::kAll) return;
    // What was queued while this thread sent is its to send as well.
    const std::lock_guard lock(queue_mutex_);
    if (control_.empty() && bulk_.empty()) return;
  }
}

// Everything small that waits, and the next bulk frame behind it. That one is sealed when the queue
// is free again: it may be large, and who has a beat to send does not wait for it.
std::optional<Link::Outgoing> Link::Gather() {
  std::unique_lock lock(queue_mutex_);
  if (control_.empty() && bulk_.empty()) return {};
  Outgoing out;
  const auto append = [](std::string& to, std::span<const std::byte> bytes) {
    to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const auto append_header = [&](const FrameHeader& header) {
    append(out.head, BytesOf(header));
    if (seal_) append(out.head, seal_->Seal(BytesOf(header), {}, nullptr));
  };
  while (!control_.empty() && out.head.size() < kGathered) {
    Frame& frame = control_.front();
    append_header(frame.header);
    auto payload = std::as_writable_bytes(std::span(frame.own));
    std::array<std::byte, kSealBytes> seal{};
    const std::size_t seal_size = SealSize(payload.size());
    if (seal_size > 0) seal = seal_->Seal(BytesOf(frame.header), payload, payload.data());
    append(out.head, payload);
    append(out.head, std::span(seal).first(seal_size));
    control_.pop_front();
  }
  if (bulk_.empty() || !control_.empty()) return out;
  const Frame frame = std::move(bulk_.front());
  bulk_.pop_front();
  lock.unlock();
  append_header(frame.header);
  out.generation = frame.header.generation;
  out.borrowed = frame.borrowed;
  if (SealSize(frame.borrowed.size()) > 0) {
    out.own.resize(frame.borrowed.size());
    append(out.tail, seal_->Seal(BytesOf(frame.header), frame.borrowed,
                                 reinterpret_cast<std::byte*>(out.own.data())));
  }
  return out;
}

Link::Went Link::SendSome(Outgoing& out) {
  const auto payload = out.payload();
  const std::array<std::span<const std::byte>, 3> parts{std::as_bytes(std::span(out.head)), payload,
                                                        std::as_bytes(std::span(out.tail))};
  const std::size_t total = out.head.size() + payload.size() + out.tail.size();
  while (out.sent < total) {
    std::size_t allowed = total - out.sent;
    if (out.generation) allowed = throttle_.Take(allowed);
    if (allowed == 0) return Went::kWantsTime;
    std::array<iovec, 3> pieces{};
    std::size_t count = 0, skip = out.sent, left = allowed;
    for (const auto& part : parts) {
      const std::size_t from = std::min(skip, part.size());
      const std::size_t bytes = std::min(left, part.size() - from);
      skip -= from;
      left -= bytes;
      if (bytes > 0) pieces[count++] = {const_cast<std::byte*>(part.data()) + from, bytes};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = SendNow(fd_.get(), message);
    const auto gone = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    if (out.generation) throttle_.GiveBack(allowed - gone);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return Went::kWantsRoom;
    if (sent < 0) {  // what was sent before the end may still be read: the reader tells it
      broken_ = true;
      return Went::kNoMore;
    }
    out.sent += gone;
  }
  return Went::kAll;
}

void Link::Withdraw(std::uint64_t generation) {
  {
    const std::lock_guard lock(queue_mutex_);
    std::erase_if(bulk_, [&](const Frame& f) { return f.header.generation <= generation; });
  }
  {
    const std::lock_guard lock(send_mutex_);
    if (current_ && current_->generation && current_->own.empty()) {
      const auto rest = current_->borrowed;
      current_->own.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
    }
  }
  if (wire_) wire_->Withdraw(generation);
  const std::lock_guard read_lock(read_mutex_);
  const std::lock_guard wire_lock(wire_mutex_);
  const std::lock_guard lock(arrived_mutex_);
  const auto old = [&](const auto& entry) { return entry.first.first <= generation; };
  std::erase_if(unacknowledged_, old);
  std::erase_if(expected_, old);
  for (auto* frame : {&incoming_, &wire_incoming_}) {
    if (*frame && (*frame)->header.generation <= generation) Forget(*frame);
  }
}

// Where it was to go is not written to any more.
void Link::Forget(std::optional<Incoming>& frame) {
  if (!frame->expected) return;
  frame->into = nullptr;
  frame->expected = false;
}

bool Link::Read(bool wait) {
  std::unique_lock lock(read_mutex_, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return false;
  }
  std::size_t total = 0;
  while (total < kReadTurn && !shut_ && !over_) {
    const ssize_t got = ReceiveSome();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    over_ = got <= 0;
    if (!over_) {
      heard_ns_.store(NowNs(), std::memory_order_relaxed);
      total += static_cast<std::size_t>(got);
      over_ = !TakeStaged();
    }
    if (over_) owner_.Ended(*this);
  }
  return total > 0;
}

// Into the frame at hand, and what comes after it into the staging area.
ssize_t Link::ReceiveSome() {
  std::array<iovec, 3> pieces{};
  std::size_t count = 0, direct = 0;
  if (incoming_) {
    const std::size_t length = incoming_->header.length, whole = incoming_->whole;
    if (incoming_->got < length) {
      direct = length - incoming_->got;
      if (incoming_->into != nullptr) {
        pieces[count++] = {incoming_->into + incoming_->got, direct};
      } else {
        direct = std::min(direct, kWaste);
        pieces[count++] = {waste_.data(), direct};
      }
    }
    const std::size_t sealed = incoming_->got + direct;
    if (sealed >= length && sealed < whole) {
      pieces[count++] = {incoming_->seal.data() + (sealed - length), whole - sealed};
      direct += whole - sealed;
    }
  }
  // Only behind the whole of the frame.
  if (!incoming_ || incoming_->got + direct == incoming_->whole) {
    pieces[count++] = {staged_.data() + staged_to_, kStaged - staged_to_};
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t got = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (got > 0) {
    const std::size_t to_frame = std::min(direct, static_cast<std::size_t>(got));
    if (incoming_) incoming_->got += to_frame;
    staged_to_ += static_cast<std::size_t>(got) - to_frame;
  }
  return got;
}

// False: nothing more of the other side is believed.
bool Link::TakeStaged() {
  while (true) {
    if (incoming_) {
      TakePayload(*incoming_);
      if (incoming_->got < incoming_->whole) break;
      if (!Finish()) return false;
    }
    if (staged_to_ - staged_from_ < kHeader + SealSize()) break;
    if (!TakeHeader()) return false;
  }
  std::memmove(staged_.data(), staged_.data() + staged_from_, staged_to_ - staged_from_);
  staged_to_ -= staged_from_;
  staged_from_ = 0;
  return true;
}

// And its seal, as far as they are staged.
void Link::TakePayload(Incoming& frame) {
  const std::size_t length = frame.header.length;
  while (staged_from_ < staged_to_ && frame.got < frame.whole) {
    const bool in_payload = frame.got < length;
    const std::size_t end = in_payload ? length : frame.whole;
    const std::size_t bytes = std::min(staged_to_ - staged_from_, end - frame.got);
    std::byte* into = in_payload ? frame.into : frame.seal.data();
    const std::size_t at = in_payload ? frame.got : frame.got - length;
    if (into != nullptr) std::memcpy(into + at, staged_.data() + staged_from_, bytes);
    frame.got += bytes;
    staged_from_ += bytes;
  }
}

// Nothing in it is looked at before its seal.
bool Link::TakeHeader() {
  FrameHeader header;
  std::memcpy(&header, staged_.data() + staged_from_, kHeader);
  staged_from_ += kHeader;
  if (open_) {
    std::array<std::byte, kSealBytes> seal{};
    std::memcpy(seal.data(), staged_.data() + staged_from_, kSealBytes);
    staged_from_ += kSealBytes;
    if (!open_->Open(BytesOf(header), {}, seal)) return Breaks(kChanged);
  }
  return Begin(header);
}

bool Link::Breaks(const char* fault) {
  fault_ = fault;
  return false;
}

bool Link::Begin(const FrameHeader& header) {
  incoming_.emplace();
  auto& frame = *incoming_;
  frame.header = header;
  frame.whole = header.length + SealSize(header.length);
  switch (header.kind) {
    case FrameKind::kBeat:
    case FrameKind::kDone:
    case FrameKind::kGaveUp:
      return header.length == 0 || Breaks(kBreaksRules);
    case FrameKind::kWireAddress:
    case FrameKind::kWireConnected:
    case FrameKind::kWireBegin:
    case FrameKind::kWireChunk:
    case FrameKind::kWireFree:
    case FrameKind::kWireCut:
      if (!wire_ || header.length > kMostWireAddress) return Breaks(kBreaksRules);
      [[fallthrough]];
    case FrameKind::kTold:
      if (header.length > kMostTold) return Breaks(kBreaksRules);
      frame.told.resize(header.length);
      frame.into = reinterpret_cast<std::byte*>(frame.told.data());
      return true;
    case FrameKind::kBulk:
      return FindPlace(frame);
    default:
      return Breaks(kBreaksRules);
  }
}

// For the bytes of bulk; none where it is of an earlier generation. False: there cannot be one.
bool Link::FindPlace(Incoming& frame) {
  const auto& header = frame.header;
  if (header.length > kMostBulk) return Breaks(kBreaksRules);
  const std::lock_guard lock(arrived_mutex_);
  if (header.generation < generation_) return true;
  const auto expected = expected_.find({header.generation, header.tag});
  if (expected != expected_.end() && !expected->second.filling &&
      expected->second.into.size() == header.length) {
    expected->second.filling = true;
    frame.expected = true;
    frame.into = expected->second.into.data();
  } else {
    frame.buffer = TakeBuffer(header.length);
    frame.into = frame.buffer.data.get();
    if (frame.into == nullptr) return Breaks(kNoMemory);
  }
  return true;
}

bool Link::Finish() {
  Incoming frame = std::move(*incoming_);
  incoming_.reset();
  if (frame.header.kind != FrameKind::kBulk) {  // it moved along with the string
    frame.into = reinterpret_cast<std::byte*>(frame.told.data());
  }
  if (SealSize(frame.header.length) > 0) {
    if (frame.into == nullptr) {
      open_->Skip();
    } else if (!open_->Open(BytesOf(frame.header), {frame.into, frame.header.length}, frame.seal)) {
      return Breaks(kChanged);
    }
  }
  switch (frame.header.kind) {
    case FrameKind::kTold:
      owner_.Told(*this, std::move(frame.told));
      break;
    case FrameKind::kBulk:
      FinishBulk(std::move(frame));
      break;
    case FrameKind::kDone: {
      {
        const std::lock_guard lock(arrived_mutex_);
        unacknowledged_.erase({frame.header.generation, frame.header.tag});
      }
      bell().Ring();
      break;
    }
    case FrameKind::kGaveUp:
      gave_up_ = frame.header.generation;
      owner_.GaveUp(*this);
      break;
    case FrameKind::kBeat:
      break;
    case FrameKind::kWireAddress:
    case FrameKind::kWireConnected:
    case FrameKind::kWireBegin:
    case FrameKind::kWireChunk:
    case FrameKind::kWireFree:
    case FrameKind::kWireCut:
      return wire_->Hear(frame.header, std::move(frame.told)) || Breaks(kBreaksRules);
  }
  return true;
}

void Link::FinishBulk(Incoming frame) {
  const Key key{frame.header.generation, frame.header.tag};
  {
    const std::lock_guard lock(arrived_mutex_);
    if (frame.expected) {
      expected_[key].filled = true;
    } else if (frame.header.generation < generation_ || arrived_.contains(key) ||
               frame.into == nullptr) {
      GiveBuffer(std::move(frame.buffer));
      return;
    } else {
      arrived_[key] = std::move(frame.buffer);
    }
  }
  if (frame.expected) {
    Push(control_, {.header = {FrameKind::kDone, 0, key.first, key.second, 0}});
  }
  bell().Ring();
}

// What the wire brings, in its thread.

void Link::SayOfWire(const FrameHeader& header, std::string payload) {
  Push(control_, {.header = header, .own = std::move(payload)});
}

bool Link::WireBegins(const FrameHeader& header) {
  const std::lock_guard lock(wire_mutex_);
  wire_incoming_.emplace();
  wire_incoming_->header = header;
  if (!FindPlace(*wire_incoming_)) return false;
  if (header.length > 0) return true;
  FinishBulk(std::move(*wire_incoming_));
  wire_incoming_.reset();
  return true;
}

bool Link::WireBrings(std::span<const std::byte> bytes) {
  const std::lock_guard lock(wire_mutex_);
  if (!wire_incoming_ || bytes.size() > wire_incoming_->header.length - wire_incoming_->got) {
    return false;
  }
  Incoming& frame = *wire_incoming_;
  if (frame.into != nullptr) std::memcpy(frame.into + frame.got, bytes.data(), bytes.size());
  frame.got += bytes.size();
  if (frame.got < frame.header.length) return true;
  FinishBulk(std::move(frame));
  wire_incoming_.reset();
  return true;
}

void Link::WireCuts() {
  const std::lock_guard lock(wire_mutex_);
  if (!wire_incoming_) return;
  const std::lock_guard arrived_lock(arrived_mutex_);
  GiveBuffer(std::move(wire_incoming_->buffer));
  wire_incoming_.reset();
}

void Link::WireBroke() { owner_.Ended(*this); }

std::optional<std::span<const std::byte>> Link::Arrived(std::uint64_t generation, Tag tag) {
  const std::lock_guard lock(arrived_mutex_);
  const auto found = arrived_.find({generation, tag});
  if (found == arrived_.end()) return {};
  return std::span<const std::byte>(found->second.data.get(), found->second.size);
}

void Link::Release(std::uint64_t generation, Tag tag) {
  {
    const std::lock_guard lock(arrived_mutex_);
    const auto found = arrived_.find({generation, tag});
    if (found == arrived_.end()) return;
    GiveBuffer(std::move(found->second));
    arrived_.erase(found);
  }
  Push(control_, {.header = {FrameKind::kDone, 0, generation, tag, 0}});
}

void Link::Expect(std::uint64_t generation, Tag tag, std::span<std::byte> into) {
  const std::lock_guard lock(arrived_mutex_);
  expected_.try_emplace({generation, tag}, Expected{into, false, false});
}

bool Link::Filled(std::uint64_t generation, Tag tag) {
  const std::lock_guard lock(arrived_mutex_);
  const auto found = expected_.find({generation, tag});
  return found != expected_.end() && found->second.filled;
}

void Link::Unexpect(std::uint64_t generation, Tag tag) {
  const std::lock_guard read_lock(read_mutex_);
  const std::lock_guard wire_lock(wire_mutex_);
  const std::lock_guard lock(arrived_mutex_);
  const auto found = expected_.find({generation, tag});
  if (found == expected_.end()) return;
  for (auto* frame : {&incoming_, &wire_incoming_}) {
    if (*frame && (*frame)->header.generation == generation && (*frame)->header.tag == tag) {
      Forget(*frame);
    }
  }
  expected_.erase(found);
}

void Link::SetGeneration(std::uint64_t generation) {
  const std::lock_guard lock(arrived_mutex_);
  generation_ = generation;
  for (auto at = arrived_.begin(); at != arrived_.end() && at->first.first < generation;) {
    GiveBuffer(std::move(at->second));
    at = arrived_.erase(at);
  }
}

Buffer Link::TakeBuffer(std::size_t size) {
  const auto fits = [&](const Buffer& b) { return b.capacity >= size && b.capacity / 4 <= size; };
  const auto found = std::ranges::find_if(pool_, fits);
  if (found == pool_.end()) {
    // Its size is the other side's to say: one that cannot be had ends the link, not the process.
    // Pages that nothing is written to cost nothing.
    return {
        std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[std::max<std::size_t>(size, 1)]),
        size, size};
  }
  Buffer out = std::move(*found);
  *found = std::move(pool_.back());
  pool_.pop_back();
  out.size = size;
  return out;
}

void Link::GiveBuffer(Buffer buffer) {
  if (buffer.data == nullptr || pool_.size() >= kPooled) return;
  pool_.push_back(std::move(buffer));
}

}  // namespace muster::train
