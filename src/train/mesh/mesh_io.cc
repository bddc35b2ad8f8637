#include "train/mesh/mesh_io.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/check.h"

namespace muster::train {
namespace {

constexpr int kBeatsPerTimeout = 5;
constexpr std::int64_t kMs = 1'000'000;

std::int64_t BeatNs(const MeshOptions& options) {
  return std::max<std::int64_t>(options.timeout_ms * kMs / kBeatsPerTimeout, kMs);
}

}  // namespace

MeshIo::MeshIo(MeshParts parts)
    : parts_(std::move(parts)),
      bounce_(parts_.segment.bytes().last(parts_.bounce_bytes)),
      throttle_(parts_.options.throttle_bytes_per_s),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  identity_ = {parts_.self.id, parts_.options.job, parts_.options.secret, parts_.options.encrypt,
               parts_.options.share_memory ? parts_.segment.fd() : -1};
  wires_ = std::move(parts_.wires);
  identity_.wires = wires_->kinds();
  MUSTER_CHECK(epoll_ && wake_, "the system has file descriptors left");
  lifelines_ = std::make_unique<Lifelines>([this](int number) { Over(number); });
  Watch(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN);
  std::vector<Entrance> entrances;
  entrances.push_back({std::move(parts_.tcp), false});
  if (parts_.local) entrances.push_back({std::move(parts_.local), true});
  reception_.emplace(identity_, epoll_.get(), TimeoutNs(), std::move(entrances));
  next_beat_ns_ = NowNs() + BeatNs(parts_.options);
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "muster-mesh");
}

MeshIo::~MeshIo() {
  {
    const std::lock_guard lock(fabric_mutex_);
    MUSTER_CHECK(fabric_ == nullptr, "a Fabric is gone before its Mesh");
  }
  stop_ = true;
  Wake();
  thread_.join();
  lifelines_.reset();
  for (const auto& link : AllLinks()) link->Shut();
}

std::span<std::byte> MeshIo::memory() {
  return parts_.segment.bytes().first(parts_.options.memory_bytes);
}

std::vector<MeshIo::LinkPtr> MeshIo::AllLinks() const {
  const std::lock_guard lock(mutex_);
  std::vector<LinkPtr> out;
  out.reserve(links_.size());
  for (const auto& [id, link] : links_) out.push_back(link);
  return out;
}

// Calls of others.

Result<void> MeshIo::Connect(const Endpoint& peer) {
  MUSTER_CHECK(std::this_thread::get_id() != thread_id_.load(), "callbacks do not wait");
  if (peer.id == parts_.self.id) return Fail(ErrorCode::kInvalid, "a worker has itself as a peer");
  const bool share =
      parts_.options.share_memory && !peer.segment.empty() && peer.host == parts_.self.host;
  const std::int64_t deadline_ns = NowNs() + TimeoutNs();
  constexpr auto kPlain = static_cast<WireKinds>(WireKind::kTcp);
  Identity identity = identity_;
  std::unique_lock lock(mutex_);
  while (true) {
    if (links_.contains(peer.id)) return {};
    const std::int64_t left_ns = deadline_ns - NowNs();
    if (left_ns <= 0) {
      return Fail(ErrorCode::kTimeout,
                  fmt::format("no connection to the worker at {} within {} ms", peer.address,
                              parts_.options.timeout_ms),
                  "a longer time-out waits longer");
    }
    if (admitting_.contains(peer.id) || dialing_.contains(peer.id)) {
      changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
      continue;
    }
    dialing_.insert(peer.id);
    lock.unlock();
    auto trusted = DialPeer(identity, peer, share, deadline_ns);
    lock.lock();
    dialing_.erase(peer.id);
    LinkPtr dialed;
    if (trusted && !links_.contains(peer.id)) dialed = Insert(std::move(*trusted));
    changed_.notify_all();
    if (dialed) {
      lock.unlock();
      const bool optional = dialed->wire() != nullptr && (identity.wires & kPlain) != 0;
      auto settled = dialed->Settle(optional ? NowNs() + (deadline_ns - NowNs()) / 2 : deadline_ns);
      if (settled) return {};
      TakeOut(dialed, settled.error().message);
      if (!optional) return settled;
      identity.wires = kPlain;  // both have it, and it does not work between them: without it
      lock.lock();
      continue;
    }
    if (links_.contains(peer.id)) return {};
    if (!trusted && trusted.error().code != ErrorCode::kConflict) {
      return tl::unexpected(trusted.error());
    }
    // It dials too, or has not seen yet that an earlier connection is gone.
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }
}

MeshIo::LinkPtr MeshIo::Insert(Trusted trusted) {
  const MemberId id = trusted.peer;
  auto wire = wires_->Make(trusted.wire, throttle_);
  auto link =
      std::make_shared<Link>(++links_made_, std::move(trusted), static_cast<LinkOwner&>(*this),
                             throttle_, LinkWire{std::move(wire), parts_.options.wire_least_bytes});
  link->SetGeneration(generation_);
  links_[id] = link;
  by_fd_[link->fd()] = link;
  Watch(epoll_.get(), EPOLL_CTL_ADD, link->fd(), EPOLLIN);
  if (link->wire()) wires_->Start(link->wire(), link->wire_owner());
  if (link->shares()) lifelines_->Add(link->number(), link, link->life(), link->their_life());
  changed_.notify_all();
  return link;
}

bool MeshIo::Connected(MemberId peer) const {
  const std::lock_guard lock(mutex_);
  return links_.contains(peer);
}

void MeshIo::Drop(MemberId peer) {
  LinkPtr link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(peer);
    if (found == links_.end()) return;
    link = found->second;
  }
  TakeOut(link, fmt::format("member {} was dropped", peer));
}

void MeshIo::Tell(MemberId peer, std::string bytes) {
  LinkPtr link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(peer);
    if (found == links_.end()) return;
    link = found->second;
  }
  link->Tell(std::move(bytes));
}

Result<std::unique_ptr<Fabric>> MeshIo::Enter(std::uint64_t generation,
                                              const std::vector<MemberId>& members) {
  const std::lock_guard lock(mutex_);
  GangFabric::Links gang;
  gang.reserve(members.size());
  int rank = -1;
  for (const MemberId id : members) {
    const auto found = links_.find(id);
    if (id == parts_.self.id) {
      rank = static_cast<int>(gang.size());
    } else if (found == links_.end()) {
      return Fail(ErrorCode::kUnavailable, fmt::format("member {} is not connected", id),
                  "connect to all members of a gang before it is entered");
    }
    gang.push_back(id == parts_.self.id ? nullptr : found->second);
  }
  if (rank < 0) return Fail(ErrorCode::kInvalid, "this member is not in the gang");
  const std::lock_guard fabric_lock(fabric_mutex_);
  MUSTER_CHECK(fabric_ == nullptr, "a Fabric is gone before the next is entered");
  MUSTER_CHECK(generation > generation_, "generations go up");
  generation_ = generation;
  for (const auto& [id, link] : links_) link->SetGeneration(generation);
  auto fabric = std::make_unique<GangFabric>(generation, rank, std::move(gang),
                                             parts_.segment.bytes(), bounce_, [this] {
                                               const std::lock_guard gone(fabric_mutex_);
                                               fabric_ = nullptr;
                                             });
  fabric_ = fabric.get();
  fabric_->LookForGivenUp();
  return fabric;
}

// What links ask for, from any thread.

void MeshIo::Told(const Link& link, std::string bytes) {
  {
    const std::lock_guard lock(inbox_mutex_);
    told_.emplace_back(link.peer(), std::move(bytes));
  }
  Wake();
}

void MeshIo::WantsRoom(const Link& link) {
  Watch(epoll_.get(), EPOLL_CTL_MOD, link.fd(), EPOLLIN | EPOLLOUT);
}

void MeshIo::WantsTime(const Link& link) {
  {
    const std::lock_guard lock(inbox_mutex_);
    timed_.insert(link.fd());
  }
  Wake();
}

void MeshIo::GaveUp(const Link& /*link*/) {
  {
    const std::lock_guard lock(inbox_mutex_);
    gave_up_ = true;
  }
  Wake();
}

void MeshIo::Ended(const Link& link) { Over(link.number()); }

void MeshIo::Over(int number) {
  {
    const std::lock_guard lock(inbox_mutex_);
    ended_.insert(number);
  }
  Wake();
}

void MeshIo::Wake() {
  if (std::this_thread::get_id() == thread_id_.load()) return;  // it looks before it sleeps
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

// The thread.

void MeshIo::Run() {
  thread_id_ = std::this_thread::get_id();
  std::array<epoll_event, 64> events{};
  while (!stop_) {
    const std::int64_t looked_ns = NowNs();
    // Whoever was frozen itself has heard nobody: that says nothing of them.
    if (looked_ns - last_look_ns_ > TimeoutNs() / 2) awake_since_ns_ = looked_ns;
    last_look_ns_ = looked_ns;
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), WaitMs(looked_ns));
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      const int fd = event.data.fd;
      if (fd == wake_.get()) {
        std::uint64_t many = 0;
        static_cast<void>(!read(fd, &many, sizeof many));
      } else if (!reception_->Serve(fd, [this](Greeter& greeter) { Admit(greeter); })) {
        Serve(fd, event.events);
      }
    }
    Deliver();
    // Who was quiet at that time and has nothing to be read since is silent. Not by the clock of
    // now: this process may itself have been frozen in between.
    if (count < static_cast<int>(events.size())) FindSilent(looked_ns);
    Tick(NowNs());
  }
}

int MeshIo::WaitMs(std::int64_t now_ns) const {
  {
    const std::lock_guard lock(inbox_mutex_);
    if (!told_.empty() || !ended_.empty() || gave_up_) return 0;
    if (!timed_.empty()) return 1;
  }
  std::int64_t until_ns = reception_->OverAtNs(next_beat_ns_);
  for (const auto& link : AllLinks()) until_ns = std::min(until_ns, SilentAtNs(*link) + 1);
  return static_cast<int>(std::max<std::int64_t>(0, (until_ns - now_ns + kMs - 1) / kMs));
}

void MeshIo::Admit(Greeter& greeter) {
  const MemberId peer = greeter.peer();
  {
    const std::lock_guard lock(mutex_);
    if (links_.contains(peer) || (dialing_.contains(peer) && parts_.self.id < peer)) {
      greeter.Refuse(Refusal::kTwice);
      return;
    }
    admitting_.insert(peer);
  }
  const bool mapped = greeter.Map();  // may take long: not under the lock
  // Under it, so that whoever hears "ready" finds the connection here.
  const std::lock_guard lock(mutex_);
  admitting_.erase(peer);
  if (mapped && !links_.contains(peer)) {
    if (auto trusted = greeter.Welcome()) Insert(std::move(*trusted));
  }
  changed_.notify_all();
}

void MeshIo::Serve(int fd, std::uint32_t events) {
  LinkPtr link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_fd_.find(fd);
    if (found == by_fd_.end()) return;
    link = found->second;
  }
  if ((events & EPOLLOUT) != 0) {
    Watch(epoll_.get(), EPOLL_CTL_MOD, fd, EPOLLIN);  // asked for again when there is no room
    link->Flush();
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) link->Read(true);
}

// Those of whom nothing more will be heard, after all that they have said.
std::vector<MeshIo::LinkPtr> MeshIo::HearOut(const std::set<int>& ended) {
  std::vector<LinkPtr> out;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fd, link] : by_fd_) {
      if (ended.contains(link->number())) out.push_back(link);
    }
  }
  for (const auto& link : out) {
    while (link->Read(true)) {
    }
  }
  return out;
}

void MeshIo::Deliver() {
  std::vector<std::pair<MemberId, std::string>> told;
  std::set<int> ended;
  bool gave_up = false;
  {
    const std::lock_guard lock(inbox_mutex_);
    ended.swap(ended_);
  }
  const auto over = HearOut(ended);
  {
    const std::lock_guard lock(inbox_mutex_);
    std::swap(gave_up, gave_up_);
    told.swap(told_);
  }
  if (gave_up) {
    const std::lock_guard lock(fabric_mutex_);
    if (fabric_ != nullptr) fabric_->LookForGivenUp();
  }
  for (auto& [from, bytes] : told) {
    if (parts_.events.told) parts_.events.told(from, std::move(bytes));
  }
  for (const auto& link : over) Lose(link, LostHow::kClosed);
}

void MeshIo::TakeOut(const LinkPtr& link, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (by_fd_.erase(link->fd()) == 0) return;
    links_.erase(link->peer());
    Watch(epoll_.get(), EPOLL_CTL_DEL, link->fd(), 0);
    changed_.notify_all();
  }
  lifelines_->Remove(link->number());
  link->Shut();
  const std::lock_guard lock(fabric_mutex_);
  if (fabric_ != nullptr && fabric_->Has(*link)) fabric_->AbortHere(why);
}

void MeshIo::Lose(const LinkPtr& link, LostHow how) {
  const bool known = Connected(link->peer());
  const std::string fault = link->wire() ? link->wire()->fault() : "";
  std::string why = "its process has ended";
  if (how == LostHow::kSilent) {
    why = fmt::format("it was silent for {} ms", parts_.options.timeout_ms);
  } else if (link->fault() != nullptr) {
    why = link->fault();
  } else if (!fault.empty()) {
    why = fault;
  }
  TakeOut(link, fmt::format("member {} is lost: {}", link->peer(), why));
  if (known && parts_.events.lost) parts_.events.lost(link->peer(), how);
}

std::int64_t MeshIo::SilentAtNs(const Link& link) const {
  return std::max(link.heard_ns(), awake_since_ns_) + TimeoutNs();
}

void MeshIo::FindSilent(std::int64_t looked_ns) {
  for (const auto& link : AllLinks()) {
    if (looked_ns > SilentAtNs(*link)) Lose(link, LostHow::kSilent);
  }
}

void MeshIo::Tick(std::int64_t now_ns) {
  std::set<int> timed;
  {
    const std::lock_guard lock(inbox_mutex_);
    timed.swap(timed_);
  }
  for (const int fd : timed) Serve(fd, EPOLLOUT);
  reception_->HangUp(now_ns);
  if (now_ns < next_beat_ns_) return;
  next_beat_ns_ = now_ns + BeatNs(parts_.options);
  reception_->ListenAgain();
  for (const auto& link : AllLinks()) link->Beat();
}

}  // namespace muster::train
