// Members, second part: how a worker that starts finds the others, or finds that there are none.
#include <algorithm>
#include <chrono>
#include <utility>

#include "train/members/keys.h"
#include "train/members/members.h"
#include "train/members/terms.h"

namespace muster::train {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // before knocking again

// Time-outs. A member that is gone is out of the newest view long before as many have passed.
constexpr std::int64_t kRefused = 10;    // by one of its members, and that is the last word
constexpr std::int64_t kUnreached = 20;  // one of its members, and it may be that one who dials
constexpr int kMostDoublings = 6;

// Time-outs to wait after so many setbacks.
std::int64_t PatienceAfter(int setbacks) {
  return setbacks == 0 ? 0 : std::int64_t{1} << std::min(setbacks - 1, kMostDoublings);
}

}  // namespace

Result<std::optional<ChangeMessage>> Members::Newest() {
  std::uint64_t generation = 1;
  const auto hint = store_.Read(kNewestKey);
  if (!hint) return tl::unexpected(hint.error());
  if (*hint) generation = std::max<std::uint64_t>(1, std::strtoull((*hint)->c_str(), nullptr, 10));
  std::optional<ChangeMessage> newest;
  for (;; ++generation) {
    const auto text = store_.Read(ViewKey(generation));
    if (!text) return tl::unexpected(text.error());
    if (!*text) return newest;
    auto message = DecodeMessage(**text);
    if (!message) return tl::unexpected(message.error());
    if (message->change) newest = std::move(message->change);
  }
}

// A view with one that its members do not reach breaks as soon as it is entered, which costs them
// more than a step: so one that does not reach all of them waits first, and so does one with which
// no view came about the last time.
bool Members::KnockAt(const View& newest) {
  std::size_t reached = 0;
  for (const auto& member : newest.members) {
    const auto connected = mesh_->Connect(member);
    if (!connected) {
      const auto code = connected.error().code;
      const bool for_good = code == ErrorCode::kDenied || code == ErrorCode::kInvalid;
      if (for_good) refused_ = connected.error();
      continue;
    }
    const Lock lock(mutex_);
    gone_.erase(member.id);
    ++reached;
  }
  const bool all = reached == newest.members.size();
  const bool knocks = Waited(*came_ns_, PatienceAfter(options_.setbacks)) &&
                      (all || Waited(newest_since_ns_, kUnreached));
  for (const auto& member : newest.members) {
    if (knocks) mesh_->Tell(member.id, Encode(JoinMessage{mesh_->self(), options_.server}));
  }
  return reached > 0;
}

bool Members::Waited(std::int64_t since_ns, std::int64_t timeouts) {
  return clock_.MonotonicNs() - since_ns >= timeouts * options_.mesh.timeout_ms * 1'000'000;
}

Result<void> Members::AgreeOnTerms() {
  if (agreed_) return {};
  const auto terms = store_.Claim(kTermsKey, options_.terms);
  if (!terms) return tl::unexpected(terms.error());
  agreed_ = *terms == options_.terms;
  if (agreed_) return {};
  return Fail(ErrorCode::kInvalid,
              "this worker was started with other options than its job: " +
                  DifferenceOf(options_.terms, *terms),
              "start all workers of a job alike, or begin in another folder; --kernels pins a "
              "level that all their CPUs have");
}

// A lease that nobody renews for two time-outs: those who had it are gone, or cut off from the
// store, without which they can go on to the end of their view and no further.
Result<bool> Members::LeaseIsOld() {
  const auto lease = store_.Read(kLeaseKey);
  if (!lease) return tl::unexpected(lease.error());
  const auto now_ns = clock_.MonotonicNs();
  if (lease_seen_ns_ == 0 || lease->value_or("") != lease_) {
    lease_renewed_ = lease_seen_ns_ != 0;
    lease_ = lease->value_or("");
    lease_seen_ns_ = now_ns;
  }
  return now_ns - lease_seen_ns_ > 2 * options_.mesh.timeout_ms * 1'000'000;
}

// None: somebody else was first.
Result<std::optional<ChangeMessage>> Members::Found(const View& before) {
  ChangeMessage first;
  first.view.generation = before.generation + 1;
  first.view.members = {mesh_->self()};
  if (options_.server) first.view.servers = {id()};
  Decide(first.view, before);
  const auto checkpoint = options_.newest_checkpoint();
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  if (*checkpoint) {
    first.view.checkpoint = (*checkpoint)->first;
    first.view.step = (*checkpoint)->second;
  }
  const auto stands = store_.Claim(ViewKey(first.view.generation), Encode(first));
  if (!stands) return tl::unexpected(stands.error());
  if (*stands != Encode(first)) return std::nullopt;
  return first;
}

// Also after all have left, when what they wrote at the end is there.
Result<bool> Members::NobodyIsThere(const std::optional<ChangeMessage>& last) {
  if (!last) return true;
  const View& newest = last->view;
  if (newest.members.empty()) {
    const auto checkpoint = options_.newest_checkpoint();
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    const bool there = *checkpoint && (*checkpoint)->second >= newest.step;
    if (newest.leaving.empty() || there) return true;
  }
  const auto now_ns = clock_.MonotonicNs();
  if (!came_ns_) came_ns_ = now_ns;
  if (std::exchange(newest_, newest.generation) != newest.generation) newest_since_ns_ = now_ns;
  refused_.reset();
  // Another process may have got the port of one that is gone: only where somebody is there for
  // sure, and the view stays as it is, is a refusal the last word.
  if (KnockAt(newest)) {
    if (refused_ && Waited(newest_since_ns_, kRefused)) return tl::unexpected(*refused_);
    return false;
  }
  auto old = LeaseIsOld();
  if (old && !*old && refused_ && lease_renewed_) return tl::unexpected(*refused_);
  return old;
}

Result<std::optional<Turn>> Members::FoundOrJoin() {
  if (leave_) return Turn{Turn::Kind::kLeft, {}};
  if (const auto agreed = AgreeOnTerms(); !agreed) return tl::unexpected(agreed.error());
  const auto finished = store_.Read(kFinishedKey);
  if (!finished) return tl::unexpected(finished.error());
  if (*finished) return Turn{Turn::Kind::kFinished, {}};
  const auto newest = Newest();
  if (!newest) return tl::unexpected(newest.error());
  if (*newest && (*newest)->view.RankOf(id())) {
    // Who let this one in may have been lost before it could say so, and the others wait for it.
    const Lock lock(mutex_);
    return Take(**newest);
  }
  const auto alone = NobodyIsThere(*newest);
  if (!alone) return tl::unexpected(alone.error());
  if (*alone) {
    const auto found = Found(*newest ? (*newest)->view : View());
    if (!found) return tl::unexpected(found.error());
    const Lock lock(mutex_);
    if (*found) return Take(**found);
    return std::nullopt;
  }
  Lock lock(mutex_);
  news_.wait_for(lock, kPatience, [this] { return change_.has_value(); });
  if (change_ && change_->view.RankOf(id())) return Take(*change_);
  change_.reset();
  return std::nullopt;
}

}  // namespace muster::train
