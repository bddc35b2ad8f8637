#include "train/mesh/gang_fabric.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "train/mesh/socket.h"

namespace muster::train {
namespace {

constexpr std::size_t kProbes = 16;  // slots that a tag may lie in
constexpr std::int64_t kSpinNs = 30'000;
constexpr std::int64_t kCrowdedSpinNs = 2'000;
constexpr int kSpinsPerLook = 16;  // at the clock

Slot& SlotFor(std::array<Slot, kPairSlots>& slots, Tag tag, std::size_t probe) {
  static_assert(std::has_single_bit(kPairSlots));
  constexpr int kUnused = 64 - std::countr_zero(kPairSlots);  // bits of the product
  return slots[((tag * 0x9E3779B97F4A7C15ULL >> kUnused) + probe) % kPairSlots];
}

int Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::int64_t SpinFor(const GangFabric::Links& links) {
  const auto near = std::ranges::count_if(links, [](const auto& l) { return l && l->shares(); });
  return near + 1 <= Processors() ? kSpinNs : kCrowdedSpinNs;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

GangFabric::GangFabric(std::uint64_t generation, int rank, Links links,
                       std::span<const std::byte> segment, Bounce& bounce,
                       std::function<void()> gone)
    : generation_(generation),
      rank_(rank),
      segment_(segment),
      bounce_(bounce),
      gone_(std::move(gone)),
      spin_ns_(SpinFor(links)) {
  peers_.reserve(links.size());
  for (auto& link : links) {
    peers_.push_back(link ? std::make_unique<Peer>() : nullptr);
    if (link) peers_.back()->link = std::move(link);
  }
}

GangFabric::~GangFabric() {
  gone_();
  Withdraw();
}

bool GangFabric::Has(const Link& link) const {
  return std::ranges::any_of(peers_, [&link](const auto& peer) {
    return peer != nullptr && peer->link.get() == &link && !peer->released;
  });
}

void GangFabric::Release(int peer) { At(peer).released = true; }

GangFabric::Peer& GangFabric::At(int peer) const {
  const bool other = peer >= 0 && peer < size() && peer != rank_;
  MUSTER_CHECK(other, "a peer is another member of the gang");
  return *peers_[static_cast<std::size_t>(peer)];
}

bool GangFabric::SharesMemory(int peer) const { return peer == rank_ || At(peer).link->shares(); }

tl::unexpected<Error> GangFabric::Aborted() const {
  const std::lock_guard lock(why_mutex_);
  return Fail(ErrorCode::kUnavailable, why_, "form the gang anew, with those who are left");
}

void GangFabric::Abort(const std::string& why) {
  if (!End(why)) return;
  for (const auto& peer : peers_) {
    if (peer) peer->link->GiveUp(generation_);
  }
}

void GangFabric::AbortHere(const std::string& why) { End(why); }

// False: it has been aborted before. Whoever comes second waits for the first to be through: when
// Abort returns, nothing touches the caller's memory.
bool GangFabric::End(const std::string& why) {
  const std::lock_guard end_lock(end_mutex_);
  if (aborted_) return false;
  {
    const std::lock_guard lock(why_mutex_);
    why_ = why.empty() ? "the generation was given up" : why;
  }
  Withdraw();
  aborted_ = true;
  for (const auto& peer : peers_) {
    if (peer) peer->link->bell().Ring();
  }
  return true;
}

void GangFabric::LookForGivenUp() {
  for (const auto& peer : peers_) {
    if (!peer || peer->link->gave_up() < generation_) continue;
    AbortHere(fmt::format("member {} has given up the generation", peer->link->peer()));
  }
}

// From here on nothing is offered; what was is neither read by peers that notice nor sent.
void GangFabric::Withdraw() {
  for (const auto& peer : peers_) {
    if (!peer) continue;
    const std::lock_guard lock(peer->mutex);
    peer->withdrawn = true;
    for (auto& [tag, offered] : peer->offered) Free(offered);
    peer->offered.clear();
    peer->link->Withdraw(generation_);
  }
}

void GangFabric::Free(Offered& offered) {
  if (offered.slot != nullptr) offered.slot->word.store(SlotWord(offered.use, SlotState::kFree));
  if (!offered.bounced.empty()) bounce_.Give(offered.bounced);
}

template <typename Ready>
bool GangFabric::Await(Link& link, const Ready& ready) {
  const std::int64_t until_ns = NowNs() + spin_ns_;
  do {
    for (int i = 0; i < kSpinsPerLook; ++i) {
      if (aborted_) return false;
      if (ready()) return true;
      Pause();
    }
    if (!link.shares()) link.Read(false);
  } while (NowNs() < until_ns);
  Bell& bell = link.bell();
  bell.sleepers.fetch_add(1);
  bool good = false;
  while (true) {
    const std::uint32_t seen = bell.count.load();
    if (aborted_) break;
    good = ready();
    if (good) break;
    bell.Sleep(seen);
  }
  bell.sleepers.fetch_sub(1);
  return good;
}

void GangFabric::Offer(int peer, Tag tag, std::span<const std::byte> bytes) {
  Peer& at = At(peer);
  {
    const std::lock_guard lock(at.mutex);
    if (at.withdrawn) return;
    MUSTER_CHECK(!at.offered.contains(tag), "a tag is offered again after Taken only");
    if (at.link->shares() && OfferInTable(at, tag, bytes)) return;
    at.offered[tag] = {};
    at.link->OfferBulk(generation_, tag, bytes);
  }
}

// A free one, else one that the peer is done with: who offered there may ask for it only a step
// later. Null: there is none.
Slot* GangFabric::SlotToUse(Peer& peer, Tag tag) {
  auto& slots = peer.link->offers();
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Slot& tried = SlotFor(slots, tag, probe);
    if (StateOf(tried.word.load()) == SlotState::kFree) return &tried;
  }
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Slot& tried = SlotFor(slots, tag, probe);
    const auto before = peer.offered.find(tried.tag.load(std::memory_order_relaxed));
    if (before == peer.offered.end() || before->second.slot != &tried) continue;
    if (tried.word.load() != SlotWord(before->second.use, SlotState::kDone)) continue;
    Free(before->second);
    before->second = {.taken = true};
    return &tried;
  }
  return nullptr;
}

bool GangFabric::OfferInTable(Peer& peer, Tag tag, std::span<const std::byte> bytes) {
  Slot* const slot = SlotToUse(peer, tag);
  if (slot == nullptr) return false;
  Offered offered{slot, slot->word.load() / 4 + 1, {}};
  const std::byte* from = bytes.empty() ? segment_.data() : bytes.data();
  const bool inside =
      from >= segment_.data() && from + bytes.size() <= segment_.data() + segment_.size();
  if (!inside) {
    offered.bounced = bounce_.Take(bytes.size());
    if (offered.bounced.empty()) return false;
    std::memcpy(offered.bounced.data(), bytes.data(), bytes.size());
    from = offered.bounced.data();
  }
  slot->generation.store(generation_, std::memory_order_relaxed);
  slot->tag.store(tag, std::memory_order_relaxed);
  slot->offset.store(static_cast<std::uint64_t>(from - segment_.data()), std::memory_order_relaxed);
  slot->length.store(bytes.size(), std::memory_order_relaxed);
  peer.offered[tag] = offered;
  slot->word.store(SlotWord(offered.use, SlotState::kOffered));
  peer.link->their_bell().Ring();
  return true;
}

bool GangFabric::FindOffer(Peer& peer, Tag tag, Found& found) {
  Link& link = *peer.link;
  for (std::size_t probe = 0; link.shares() && probe < kProbes; ++probe) {
    Slot& slot = SlotFor(link.their_offers(), tag, probe);
    const std::uint64_t word = slot.word.load();
    if (StateOf(word) != SlotState::kOffered ||
        slot.generation.load(std::memory_order_acquire) != generation_ ||
        slot.tag.load(std::memory_order_acquire) != tag) {
      continue;
    }
    const std::uint64_t offset = slot.offset.load(std::memory_order_acquire);
    const std::uint64_t length = slot.length.load(std::memory_order_acquire);
    if (slot.word.load() != word) continue;
    const auto theirs = link.theirs();
    if (offset > theirs.size() || length > theirs.size() - offset) continue;  // no such memory
    found = {{&slot, word}, theirs.subspan(offset, length)};
    return true;
  }
  const auto arrived = link.Arrived(generation_, tag);
  if (arrived) found = {{}, *arrived};
  return arrived.has_value();
}

Result<GangFabric::Found> GangFabric::AwaitOffer(Peer& peer, Tag tag) {
  Found found;
  if (!Await(*peer.link, [&] { return FindOffer(peer, tag, found); })) return Aborted();
  return found;
}

Result<std::span<const std::byte>> GangFabric::Look(int peer, Tag tag) {
  Peer& at = At(peer);
  const auto found = AwaitOffer(at, tag);
  if (!found) return tl::unexpected(found.error());
  if (found->where.slot != nullptr) {
    const std::lock_guard lock(at.mutex);
    at.looked[tag] = found->where;
  }
  return found->bytes;
}

void GangFabric::Expect(int peer, Tag tag, std::span<std::byte> into) {
  Peer& at = At(peer);
  const std::lock_guard lock(at.mutex);
  if (!at.withdrawn && !at.link->shares()) at.link->Expect(generation_, tag, into);
}

void GangFabric::Done(int peer, Tag tag) {
  Peer& at = At(peer);
  Looked looked;
  {
    const std::lock_guard lock(at.mutex);
    const auto found = at.looked.find(tag);
    if (found != at.looked.end()) {
      looked = found->second;
      at.looked.erase(found);
    }
  }
  if (looked.slot == nullptr) {
    at.link->Release(generation_, tag);
    return;
  }
  const std::uint64_t done = SlotWord(looked.word / 4, SlotState::kDone);
  if (!looked.slot->word.compare_exchange_strong(looked.word, done)) {
    // It may have been overwritten while it was looked at.
    AbortHere(fmt::format("member {} has left the generation", at.link->peer()));
    return;
  }
  at.link->their_bell().Ring();
}

Result<void> GangFabric::Fetch(int peer, Tag tag, std::span<std::byte> into) {
  Peer& at = At(peer);
  if (!at.link->shares()) return FetchSent(at, tag, into);
  const auto bytes = Look(peer, tag);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::size_t size = bytes->size();
  if (size == into.size() && size > 0) std::memcpy(into.data(), bytes->data(), size);
  Done(peer, tag);
  if (aborted_) return Aborted();
  if (size == into.size()) return {};
  return Fail(ErrorCode::kInternal,
              fmt::format("{} bytes were offered where {} were expected", size, into.size()));
}

Result<void> GangFabric::FetchSent(Peer& peer, Tag tag, std::span<std::byte> into) {
  Link& link = *peer.link;
  {
    const std::lock_guard lock(peer.mutex);
    if (!peer.withdrawn) link.Expect(generation_, tag, into);
  }
  bool filled = false;
  const bool good = Await(link, [&] {
    filled = link.Filled(generation_, tag);
    return filled || link.Arrived(generation_, tag).has_value();
  });
  link.Unexpect(generation_, tag);
  if (!good) return Aborted();
  if (filled) return {};
  const auto arrived = *link.Arrived(generation_, tag);
  const std::size_t size = arrived.size();
  if (size == into.size() && size > 0) std::memcpy(into.data(), arrived.data(), size);
  link.Release(generation_, tag);
  if (size == into.size()) return {};
  return Fail(ErrorCode::kInternal,
              fmt::format("{} bytes were offered where {} were expected", size, into.size()));
}

Result<void> GangFabric::Taken(int peer, Tag tag) {
  Peer& at = At(peer);
  Offered offered;
  {
    const std::lock_guard lock(at.mutex);
    const auto found = at.offered.find(tag);
    if (found != at.offered.end()) {
      offered = found->second;
    } else {
      MUSTER_CHECK(at.withdrawn, "what is waited for was offered");
    }
  }
  if (offered.slot == nullptr && offered.use == 0 && aborted_) return Aborted();
  // Done, or another's by now.
  const std::uint64_t open = SlotWord(offered.use, SlotState::kOffered);
  const bool good = Await(*at.link, [&] {
    if (offered.slot != nullptr) return offered.slot->word.load() != open;
    return offered.taken || at.link->Done(generation_, tag);
  });
  if (!good) return Aborted();
  const std::lock_guard lock(at.mutex);
  const auto found = at.offered.find(tag);
  if (found == at.offered.end()) return Aborted();  // withdrawn in this moment
  Free(found->second);
  at.offered.erase(found);
  return {};
}

}  // namespace muster::train
