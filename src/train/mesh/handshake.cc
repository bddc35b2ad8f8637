#include "train/mesh/handshake.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "train/mesh/pair.h"

namespace muster::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// Every message of the handshake begins so, in all versions.
struct Prefix {
  std::array<char, 8> magic;
  std::uint16_t version;
  std::uint16_t kind;
  std::uint32_t size;  // of all, this included
};
constexpr std::array<char, 8> kMagic{'m', 'u', 's', 't', 'e', 'r', 't', 'm'};
constexpr std::size_t kMostBytes = 512;
constexpr std::size_t kProofFds = 2;  // with the proof of a dialer who shares memory
constexpr std::size_t kReadyFds = 1;  // with what a listener says then

enum Kind : std::uint16_t { kHello = 1, kAnswer, kProof, kReady, kRefused };

struct Hello {
  Prefix prefix;
  std::uint64_t id, to;
  Hash nonce;
  std::uint16_t encrypt, share, job_bytes, wires;
};  // and the name of the job
struct Answer {
  Prefix prefix;
  Hash nonce, proof;
  std::uint16_t wires, unused, unused2, unused3;
};
struct Proof {
  Prefix prefix;
  Hash proof;
};
struct Refused {
  Prefix prefix;
  std::uint16_t why, unused, unused2, unused3;
};

using Bytes = std::vector<std::byte>;

template <typename T>
Bytes Message(const Identity& self, Kind kind, T body, std::string_view more = {}) {
  body.prefix = {kMagic, self.version, kind, static_cast<std::uint32_t>(sizeof body + more.size())};
  Bytes out(sizeof body + more.size());
  std::memcpy(out.data(), &body, sizeof body);
  if (!more.empty()) std::memcpy(out.data() + sizeof body, more.data(), more.size());
  return out;
}

template <typename T>
std::optional<T> As(const Bytes& message) {
  T out;
  if (message.size() < sizeof out) return {};
  std::memcpy(&out, message.data(), sizeof out);
  return out;
}

Bytes RefusedMessage(const Identity& self, Refusal why) {
  return Message(self, kRefused, Refused{{}, static_cast<std::uint16_t>(why), 0, 0, 0});
}

void Append(Bytes& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

void AppendAnswer(Bytes& transcript, const Answer& answer) {
  Append(transcript, answer.nonce);
  Append(transcript, std::as_bytes(std::span(&answer.wires, 1)));
}

// The best that both have. Where memory is shared, nothing goes over a wire.
std::optional<WireKind> ChooseWire(WireKinds one, WireKinds other, bool share) {
  if (share) return WireKind::kTcp;
  for (const WireKind kind : {WireKind::kIbverbs, WireKind::kGloo, WireKind::kTcp}) {
    if ((one & other & static_cast<WireKinds>(kind)) != 0) return kind;
  }
  return {};
}

std::string WireNames(WireKinds kinds) {
  std::string out;
  for (const auto& [kind, name] : {std::pair{WireKind::kTcp, "tcp"},
                                   {WireKind::kGloo, "gloo"},
                                   {WireKind::kIbverbs, "ibverbs"}}) {
    if ((kinds & static_cast<WireKinds>(kind)) == 0) continue;
    out += (out.empty() ? "" : " or ") + std::string(name);
  }
  return out;
}

// What the listener proves covers the hello and what it answers; what the dialer proves, all of
// that.
Hash AnswerProof(const Identity& self, const Bytes& transcript) {
  return ProofOf(self.secret, "muster mesh listener", transcript);
}
Hash DialerProof(const Identity& self, const Bytes& transcript) {
  return ProofOf(self.secret, "muster mesh dialer", transcript);
}

void SetKeys(const Identity& self, const Bytes& transcript, Trusted& out) {
  if (out.wire.kind != WireKind::kTcp) {
    const Hash forth = KeyOf(self.secret, transcript, "wire, dialer to listener");
    const Hash back = KeyOf(self.secret, transcript, "wire, listener to dialer");
    out.wire.first = out.dialed;
    out.wire.encrypt = self.encrypt;
    out.wire.mine = out.dialed ? forth : back;
    out.wire.theirs = out.dialed ? back : forth;
  }
  if (!self.encrypt) return;
  const Hash forth = KeyOf(self.secret, transcript, "dialer to listener");
  const Hash back = KeyOf(self.secret, transcript, "listener to dialer");
  out.seal.emplace(out.dialed ? forth : back);
  out.open.emplace(out.dialed ? back : forth);
}

tl::unexpected<Error> Explain(const Identity& self, const Endpoint& peer, Refusal why,
                              std::uint16_t their_version) {
  const std::string who = fmt::format("the {} at {}", self.peers, peer.address);
  switch (why) {
    case Refusal::kVersion:
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{} speaks version {} of the mesh, this one {}", who, their_version,
                              self.version),
                  "run all workers of a job with one version of Muster");
    case Refusal::kJob:
      return Fail(ErrorCode::kDenied,
                  fmt::format("{} belongs to another job than \"{}\"", who, self.job),
                  "check the endpoint: its port may have been given to another process");
    case Refusal::kMember:
      return Fail(ErrorCode::kNotFound, fmt::format("{} is not the member that was meant", who),
                  "the one that was meant has ended");
    case Refusal::kSecret:
      return Fail(ErrorCode::kDenied, fmt::format("{} has another secret", who),
                  "give all workers of a job the same secret");
    case Refusal::kEncrypt:
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{} {} connections, this one does not", who,
                              self.encrypt ? "does not encrypt" : "encrypts"),
                  "give all workers of a job the same options");
    case Refusal::kWire:
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{} moves bulk bytes another way than this one, which has --wire {}",
                              who, WireNames(self.wires)),
                  "give all workers of a job the same --wire; auto takes what both of two have");
    case Refusal::kTwice:
      return Fail(ErrorCode::kConflict, fmt::format("{} has a connection already", who));
  }
  return Fail(ErrorCode::kInvalid, fmt::format("{} refused for an unknown reason", who));
}

tl::unexpected<Error> NoMember(const Identity& self, const Endpoint& peer) {
  return Fail(ErrorCode::kInvalid,
              fmt::format("what answers at {} is no {}", peer.address, self.peers),
              "check the endpoint: its port may have been given to another process");
}

// The dialer's end of the line, which waits.
struct Line {
  const Identity& self;
  const Endpoint& peer;
  Fd fd;
  std::int64_t deadline_ns;
  std::vector<Fd> fds;

  Result<void> Read(std::span<std::byte> into) {
    std::size_t got = 0;
    while (got < into.size()) {
      if (auto ready = AwaitSocket(fd.get(), POLLIN, deadline_ns); !ready) {
        return Fail(ErrorCode::kTimeout,
                    fmt::format("the {} at {} does not answer", self.peers, peer.address),
                    "it may be frozen; a longer time-out waits longer");
      }
      const ssize_t count = ReceiveWith(fd.get(), into.subspan(got), fds);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count <= 0) {
        return Fail(ErrorCode::kUnavailable,
                    fmt::format("the {} at {} closed the connection", self.peers, peer.address),
                    "its process may have ended");
      }
      if (fds.size() > kReadyFds) return NoMember(self, peer);
      got += static_cast<std::size_t>(count);
    }
    return {};
  }

  Result<Bytes> Next(Kind wanted) {
    Bytes message(sizeof(Prefix));
    if (auto read = Read(message); !read) return tl::unexpected(read.error());
    const Prefix prefix = *As<Prefix>(message);
    if (prefix.magic != kMagic || prefix.size < sizeof(Prefix) || prefix.size > kMostBytes) {
      return NoMember(self, peer);
    }
    if (prefix.version != self.version) {
      return Explain(self, peer, Refusal::kVersion, prefix.version);
    }
    message.resize(prefix.size);
    if (auto read = Read(std::span(message).subspan(sizeof(Prefix))); !read) {
      return tl::unexpected(read.error());
    }
    if (prefix.kind == kRefused) {
      const auto refused = As<Refused>(message);
      if (!refused) return NoMember(self, peer);
      return Explain(self, peer, static_cast<Refusal>(refused->why), prefix.version);
    }
    if (prefix.kind != wanted) return NoMember(self, peer);
    return message;
  }
};

}  // namespace

Result<Trusted> DialPeer(const Identity& self, const Endpoint& peer, bool share,
                         std::int64_t deadline_ns) {
  auto fd = share ? DialUnix(peer.segment, deadline_ns) : DialTcp(peer.address, deadline_ns);
  if (!fd) return tl::unexpected(fd.error());
  Line line{self, peer, std::move(*fd), deadline_ns, {}};
  const Hello hello{{},
                    self.id,
                    peer.id,
                    NewNonce(),
                    static_cast<std::uint16_t>(self.encrypt),
                    static_cast<std::uint16_t>(share),
                    static_cast<std::uint16_t>(self.job.size()),
                    self.wires};
  Bytes transcript = Message(self, kHello, hello, self.job);
  if (auto sent = SendWith(line.fd.get(), transcript, {}); !sent) {
    return tl::unexpected(sent.error());
  }
  const auto message = line.Next(kAnswer);
  if (!message) return tl::unexpected(message.error());
  const auto answer = As<Answer>(*message);
  if (!answer) return NoMember(self, peer);
  AppendAnswer(transcript, *answer);
  if (!SameProof(answer->proof, AnswerProof(self, transcript))) {
    return Explain(self, peer, Refusal::kSecret, self.version);
  }
  const auto wire = ChooseWire(self.wires, answer->wires, share);
  if (!wire) return Explain(self, peer, Refusal::kWire, self.version);
  Trusted out;
  out.peer = peer.id;
  out.dialed = true;
  out.wire.kind = *wire;
  std::vector<int> fds;
  if (share) {
    auto pair = Segment::Create(sizeof(Pair));
    if (!pair) return tl::unexpected(pair.error());
    out.pair = std::move(*pair);
    fds = {out.pair->fd(), self.segment_fd};
  }
  const Proof proof{{}, DialerProof(self, transcript)};
  if (auto sent = SendWith(line.fd.get(), Message(self, kProof, proof), fds); !sent) {
    return tl::unexpected(sent.error());
  }
  if (auto ready = line.Next(kReady); !ready) return tl::unexpected(ready.error());
  if (share) {
    if (line.fds.size() != kReadyFds) return NoMember(self, peer);
    auto theirs = Segment::Map(std::move(line.fds[0]), false);
    if (!theirs) return tl::unexpected(theirs.error());
    out.theirs = std::move(*theirs);
  }
  SetKeys(self, transcript, out);
  out.fd = std::move(line.fd);
  return out;
}

Greeter::Greeter(const Identity& self, Fd fd, bool share, std::int64_t deadline_ns)
    : self_(self), fd_(std::move(fd)), share_(share), deadline_ns_(deadline_ns) {}

Greeter::Step Greeter::Read() {
  while (true) {
    // Not one byte more than the message at hand, so that nothing is left over when it is proved.
    const auto prefix = As<Prefix>(buffer_);
    std::size_t wanted = sizeof(Prefix);
    if (prefix) {
      if (prefix->magic != kMagic) return Step::kOver;
      if (prefix->version != self_.version) {
        Refuse(Refusal::kVersion);
        return Step::kOver;
      }
      if (prefix->size < sizeof(Prefix) || prefix->size > kMostBytes) return Step::kOver;
      wanted = prefix->size;
    }
    if (prefix && buffer_.size() == wanted) {
      const Bytes message = std::exchange(buffer_, {});
      const Step step = TakeMessage(prefix->kind, message);
      if (step != Step::kMore) return step;
      continue;
    }
    std::array<std::byte, kMostBytes> piece;
    const ssize_t got =
        ReceiveWith(fd_.get(), std::span(piece).first(wanted - buffer_.size()), fds_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Step::kMore;
    if (got <= 0) return Step::kOver;
    if (!greeted_) fds_.clear();
    if (fds_.size() > kProofFds) return Step::kOver;
    Append(buffer_, std::span(piece).first(static_cast<std::size_t>(got)));
  }
}

Greeter::Step Greeter::TakeMessage(std::uint16_t kind, const Bytes& message) {
  if (kind == kHello && !greeted_) return TakeHello(message);
  if (kind == kProof && greeted_) return TakeProof(message);
  return Step::kOver;
}

Greeter::Step Greeter::TakeHello(const Bytes& message) {
  const auto hello = As<Hello>(message);
  if (!hello || message.size() != sizeof(Hello) + hello->job_bytes) return Step::kOver;
  const std::string_view job(reinterpret_cast<const char*>(message.data()) + sizeof(Hello),
                             hello->job_bytes);
  std::optional<Refusal> refusal;
  if (job != self_.job) {
    refusal = Refusal::kJob;
  } else if (hello->to != self_.id || hello->id == self_.id) {
    refusal = Refusal::kMember;
  } else if ((hello->encrypt != 0) != self_.encrypt || (hello->share != 0) != share_) {
    refusal = Refusal::kEncrypt;
  }
  const auto wire = ChooseWire(self_.wires, hello->wires, share_);
  if (!refusal && !wire) refusal = Refusal::kWire;
  if (refusal) {
    Refuse(*refusal);
    return Step::kOver;
  }
  greeted_ = true;
  peer_ = hello->id;
  wire_ = *wire;
  transcript_ = message;
  Answer answer{{}, NewNonce(), {}, self_.wires, 0, 0, 0};
  AppendAnswer(transcript_, answer);
  answer.proof = AnswerProof(self_, transcript_);
  return SendWith(fd_.get(), Message(self_, kAnswer, answer), {}) ? Step::kMore : Step::kOver;
}

Greeter::Step Greeter::TakeProof(const Bytes& message) {
  const auto proof = As<Proof>(message);
  if (!proof || !SameProof(proof->proof, DialerProof(self_, transcript_))) {
    Refuse(Refusal::kSecret);
    return Step::kOver;
  }
  return fds_.size() == (share_ ? kProofFds : 0U) ? Step::kProved : Step::kOver;
}

bool Greeter::Map() {
  if (!share_) return true;
  auto pair = Segment::Map(std::move(fds_[0]), true);
  auto theirs = Segment::Map(std::move(fds_[1]), false);
  if (!pair || !theirs || pair->bytes().size() < sizeof(Pair)) return false;
  pair_ = std::move(*pair);
  theirs_ = std::move(*theirs);
  return true;
}

std::optional<Trusted> Greeter::Welcome() {
  std::vector<int> fds;
  if (share_) fds = {self_.segment_fd};
  if (!SendWith(fd_.get(), Message(self_, kReady, Refused{}), fds)) return {};
  Trusted out;
  out.peer = peer_;
  out.pair = std::move(pair_);
  out.theirs = std::move(theirs_);
  out.wire.kind = wire_;
  SetKeys(self_, transcript_, out);
  out.fd = std::move(fd_);
  return out;
}

void Greeter::Refuse(Refusal why) {
  // One that has left already need not hear it.
  static_cast<void>(SendWith(fd_.get(), RefusedMessage(self_, why), {}));
}

}  // namespace muster::train
