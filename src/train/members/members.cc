#include "train/members/members.h"

#include <algorithm>
#include <chrono>

#include "train/members/keys.h"

namespace muster::train {

namespace {

// Who cannot piece the state together leaves it to others for so many time-outs.
constexpr std::int64_t kDeference = 3;
constexpr auto kGlance = std::chrono::milliseconds(20);  // at the store, while waiting for others

}  // namespace

Result<std::unique_ptr<Members>> Members::Open(const MembersOptions& options, Store& store,
                                               Clock& clock, const std::atomic<bool>& leave) {
  std::unique_ptr<Members> members(new Members(options, store, clock, leave));
  Members* self = members.get();
  auto mesh = Mesh::Open(
      options.mesh,
      {.told = [self](MemberId from, const std::string& bytes) { self->Told(from, bytes); },
       .lost =
           [self](MemberId who, LostHow how) {
             if (self->Lost(who) && self->options_.lost) self->options_.lost(how);
           }});
  if (!mesh) return tl::unexpected(mesh.error());
  members->mesh_ = std::move(*mesh);
  members->renewing_ = std::thread([self] { self->Renew(); });
  return members;
}

Members::~Members() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  news_.notify_all();
  if (renewing_.joinable()) renewing_.join();
  std::unique_ptr<Fabric> fabric;
  {
    const Lock lock(mutex_);
    fabric = std::move(fabric_);
  }
  fabric.reset();
  mesh_.reset();
}

void Members::Told(MemberId from, const std::string& bytes) {
  auto message = DecodeMessage(bytes);
  if (!message) return;  // of nobody we could answer
  const Lock lock(mutex_);
  if (message->join) {
    gone_.erase(from);
    // Who waits knocks again and again, also when it has just been let in.
    const bool known =
        view_.Knows(from) || std::ranges::find(joiners_, from, &Endpoint::id) != joiners_.end();
    if (!known && message->join->endpoint.id == from) {
      joiners_.push_back(message->join->endpoint);
      if (message->join->server) serving_.insert(from);
    }
  } else if (message->leave) {
    leaving_.insert(from);
  } else if (message->stopped) {
    auto& stopped = *message->stopped;
    if (stopped.generation > view_.generation) early_[from] = stopped;
    if (stopped.generation != view_.generation) return;
    if (!stopped.planned && fabric_) fabric_->Abort("another worker has stopped");
    stopped_[from] = std::move(stopped);
  } else if (message->change && message->change->view.generation > view_.generation) {
    if (!change_ || change_->view.generation < message->change->view.generation) {
      change_ = std::move(message->change);
    }
  }
  news_.notify_all();
}

// Whether it was a member of the view.
bool Members::Lost(MemberId who) {
  const Lock lock(mutex_);
  gone_.insert(who);
  const bool known = view_.Knows(who);
  if (known) lost_.insert(who);
  std::erase_if(joiners_, [who](const Endpoint& joiner) { return joiner.id == who; });
  news_.notify_all();
  return known;
}

// The chief renews the lease, and stops when others have gone on without it.
void Members::Renew() {
  Lock lock(mutex_);
  for (std::uint64_t count = 0; !ending_; ++count) {
    if (Chief() == id()) {
      const auto next = ViewKey(view_.generation + 1);
      const auto lease = std::to_string(id()) + " " + std::to_string(count);
      lock.unlock();
      const auto written = store_.Write(kLeaseKey, lease);  // else others found anew: no harm
      const auto newer = store_.Read(next);
      lock.lock();
      const bool deposed = newer && *newer && next == ViewKey(view_.generation + 1);
      if (deposed && fabric_ && !change_) fabric_->Abort("the others go on without this worker");
    }
    news_.wait_for(lock, std::chrono::milliseconds(options_.mesh.timeout_ms / 3),
                   [this] { return ending_; });
  }
}

bool Members::IsChief() const {
  const Lock lock(mutex_);
  return Chief() == id();
}

bool Members::ChangeWanted() const {
  const Lock lock(mutex_);
  return !joiners_.empty() || !leaving_.empty();
}

void Members::Leave() {
  Lock lock(mutex_);
  Leave(lock);
}

void Members::Leave(const Lock& /*held*/) {
  leaving_.insert(id());
  for (const auto& member : view_.members) {
    if (member.id != id()) mesh_->Tell(member.id, Encode(LeaveMessage{}));
  }
  news_.notify_all();
}

Result<void> Members::Finish(std::int64_t step) {
  const auto finished = Insist([&]() -> Result<std::optional<Turn>> {
    const auto stands = store_.Claim(kFinishedKey, std::to_string(step));
    if (!stands) return tl::unexpected(stands.error());
    return Turn{Turn::Kind::kFinished, {}};
  });
  if (!finished) return tl::unexpected(finished.error());
  return {};
}

std::optional<MemberId> Members::Chief() const {
  for (const auto& who : Everybody()) {
    if (!lost_.contains(who.id)) return who.id;
  }
  return std::nullopt;
}

std::vector<Endpoint> Members::Everybody() const {
  std::vector<Endpoint> out = view_.members;
  out.insert(out.end(), view_.leaving.begin(), view_.leaving.end());
  return out;
}

// Those who cannot be reached by somebody of lower rank, which counts for more: two who have lost
// each other cannot both stay.
std::set<MemberId> Members::CutOff() const {
  std::set<MemberId> out = lost_;
  const auto all = Everybody();
  for (auto member = all.begin(); member != all.end(); ++member) {
    const auto found = stopped_.find(member->id);
    if (out.contains(member->id) || found == stopped_.end()) continue;
    for (const MemberId who : found->second.unreachable) {
      if (std::ranges::find(member, all.end(), who, &Endpoint::id) != all.end()) out.insert(who);
    }
  }
  return out;
}

bool Members::AllStopped() const {
  const auto gone = CutOff();
  return std::ranges::all_of(Everybody(), [&](const Endpoint& who) {
    return gone.contains(who.id) || stopped_.contains(who.id);
  });
}

ChangeMessage Members::Propose(bool& recoverable) const {
  const auto gone = CutOff();
  ChangeMessage out;
  out.view.generation = view_.generation + 1;
  // The least that somebody has completed comes first: all of them hold it, with all their mirrors,
  // where a later one may be held by few, who may be lost as well before the others have it.
  std::set<std::int64_t> steps;
  for (const auto& who : Everybody()) {
    if (gone.contains(who.id)) continue;
    const bool goes = leaving_.contains(who.id) || !view_.RankOf(who.id);
    (goes ? out.view.leaving : out.view.members).push_back(who);
    const auto found = stopped_.find(who.id);
    // Who holds nothing, because it has only just come, has nothing to say of the step.
    if (found == stopped_.end() || found->second.holdings.empty()) continue;
    out.holdings[who.id] = found->second.holdings;
    steps.insert(found->second.completed);
  }
  for (const auto& joiner : joiners_) out.view.members.push_back(joiner);
  for (const auto& member : out.view.members) {
    if (serving_.contains(member.id)) out.view.servers.push_back(member.id);
  }
  Decide(out.view, view_);
  const auto step = std::ranges::find_if(
      steps, [&](std::int64_t one) { return options_.recoverable(out.holdings, one); });
  recoverable = step != steps.end();
  if (recoverable) {
    out.view.step = *step;
  } else {
    out.holdings.clear();
  }
  return out;
}

// The same members again, too few to work, would only stop again.
bool Members::WorthAView(const View& next) const {
  return !next.waits || next.members != view_.members;
}

// Who was there at the start need not be there for ever: what has begun goes on with fewer. Where
// all have left, the next to come start anew.
void Members::Decide(View& next, const View& before) const {
  next.begun = !before.members.empty() && (before.begun || !before.waits);
  const int least =
      next.begun ? options_.min_workers : std::max(options_.min_workers, options_.first_workers);
  next.waits = static_cast<int>(next.members.size()) < least;
}

void Members::Stop(const Standing& standing) {
  StoppedMessage message{.generation = view_.generation,
                         .planned = standing.planned,
                         .completed = standing.completed,
                         .holdings = standing.holdings,
                         .unreachable = {lost_.begin(), lost_.end()}};
  for (const auto& who : Everybody()) {
    if (who.id != id()) mesh_->Tell(who.id, Encode(message));
  }
  stopped_[id()] = std::move(message);
}

void Members::Announce(const ChangeMessage& change) {
  for (const auto* group : {&change.view.members, &change.view.leaving}) {
    for (const auto& who : *group) {
      if (who.id != id()) mesh_->Tell(who.id, Encode(change));
    }
  }
}

Turn Members::Take(const ChangeMessage& change) {
  view_ = change.view;
  serving_.insert(view_.servers.begin(), view_.servers.end());
  lost_.clear();
  for (const auto& who : Everybody()) {
    if (who.id != id() && gone_.contains(who.id)) lost_.insert(who.id);
    std::erase_if(joiners_, [&](const Endpoint& joiner) { return joiner.id == who.id; });
  }
  std::erase_if(leaving_, [&](MemberId who) { return !view_.RankOf(who); });
  stopped_.clear();
  for (const auto& [who, message] : early_) {
    if (message.generation == view_.generation) stopped_[who] = message;
  }
  std::erase_if(early_, [&](const auto& one) { return one.second.generation <= view_.generation; });
  Turn out{Turn::Kind::kView, change};
  change_.reset();
  return out;
}

// The chief's part. None: it is not the time, or somebody else was first. Where what is held here
// is not enough, others may hold more and be on their way: going back is what is done last.
Result<std::optional<ChangeMessage>> Members::ProposeWhenAllStopped(Lock& lock) {
  if (Chief() != id() || !AllStopped()) return std::nullopt;
  bool recoverable = false;
  ChangeMessage proposal = Propose(recoverable);
  if (!WorthAView(proposal.view)) return std::nullopt;
  if (!recoverable) {
    const auto waited_ns = clock_.MonotonicNs() - stopped_since_ns_;
    const auto defers_ns = kDeference * options_.mesh.timeout_ms * 1'000'000;
    if (!CutOff().empty() && waited_ns < defers_ns) return std::nullopt;
    lock.unlock();
    const auto checkpoint = options_.newest_checkpoint();
    lock.lock();
    if (change_ || Chief() != id() || !AllStopped()) return std::nullopt;
    proposal = Propose(recoverable);
    if (!recoverable && !checkpoint) return tl::unexpected(checkpoint.error());
    if (!recoverable && *checkpoint) {
      proposal.view.checkpoint = (*checkpoint)->first;
      proposal.view.step = (*checkpoint)->second;
    }
  }
  const std::string key = ViewKey(proposal.view.generation);
  lock.unlock();
  const auto stands = store_.Claim(key, Encode(proposal));
  lock.lock();
  if (!stands) return tl::unexpected(stands.error());
  if (*stands != Encode(proposal)) return std::nullopt;
  Announce(proposal);
  lock.unlock();
  const auto hint = store_.Write(kNewestKey, std::to_string(proposal.view.generation));
  lock.lock();  // without the hint the newest view is looked for from further back
  return proposal;
}

// Who proposed the next view may be lost before all were told of it.
Result<std::optional<Turn>> Members::LookForNewer(Lock& lock) {
  const std::string key = ViewKey(view_.generation + 1);
  lock.unlock();
  const auto finished = store_.Read(kFinishedKey);
  const auto text = store_.Read(key);
  lock.lock();
  if (!finished || !text) return tl::unexpected((finished ? text : finished).error());
  if (*finished) return Turn{Turn::Kind::kFinished, {}};
  if (!*text || change_) return std::nullopt;
  auto newer = DecodeMessage(**text);
  if (!newer) return tl::unexpected(newer.error());
  if (!newer->change || !newer->change->view.Knows(id())) {
    return Turn{leave_ ? Turn::Kind::kLeft : Turn::Kind::kLeftBehind, {}};
  }
  change_ = std::move(newer->change);
  return std::nullopt;
}

Result<Turn> Members::Insist(const std::function<Result<std::optional<Turn>>()>& attempt) {
  std::int64_t well_ns = clock_.MonotonicNs();
  while (true) {
    auto turn = attempt();
    const auto now_ns = clock_.MonotonicNs();
    if (turn) {
      if (*turn) return std::move(**turn);
      well_ns = now_ns;
      continue;
    }
    const auto code = turn.error().code;
    const bool passes = code != ErrorCode::kInvalid && code != ErrorCode::kDenied;
    if (!passes || now_ns - well_ns > kStorePatience * options_.mesh.timeout_ms * 1'000'000) {
      return tl::unexpected(turn.error());
    }
    Lock lock(mutex_);
    news_.wait_for(lock, kGlance);
  }
}

// One look at what there is; waits a little where there is nothing.
Result<std::optional<Turn>> Members::GoOn(Lock& lock) {
  if (change_) return Take(*change_);
  if (leave_ && !leaving_.contains(id())) Leave(lock);
  const auto proposed = ProposeWhenAllStopped(lock);
  if (!proposed) return tl::unexpected(proposed.error());
  if (*proposed) return Take(**proposed);
  auto newer = LookForNewer(lock);
  if (!newer || *newer) return newer;
  if (!change_) news_.wait_for(lock, kGlance);
  return std::nullopt;
}

Result<Turn> Members::Next(const Standing& standing) {
  std::set<MemberId> said;
  std::int64_t said_ns = clock_.MonotonicNs();
  {
    const Lock lock(mutex_);
    stopped_since_ns_ = clock_.MonotonicNs();
    if (view_.generation > 0) Stop(standing);
    said = lost_;
  }
  return Insist([&]() -> Result<std::optional<Turn>> {
    Lock lock(mutex_);
    if (view_.generation == 0) {
      lock.unlock();
      return FoundOrJoin();
    }
    const auto now_ns = clock_.MonotonicNs();
    const bool long_ago = now_ns - said_ns > options_.mesh.timeout_ms * 1'000'000;
    if (lost_ != said || long_ago) {  // others may not see it, or were not connected yet
      said = lost_;
      said_ns = now_ns;
      Stop(standing);
    }
    return GoOn(lock);
  });
}

Result<Fabric*> Members::Enter(const View& view) {
  std::vector<MemberId> all;
  Result<void> reached;
  for (const auto* group : {&view.members, &view.leaving}) {
    for (const auto& who : *group) {
      all.push_back(who.id);
      if (who.id == id()) continue;
      const auto connected = mesh_->Connect(who);
      if (connected) continue;
      Lost(who.id);
      reached = tl::unexpected(connected.error());
    }
  }
  // All were tried all the same: those who are there must hear that this one has stopped, and some
  // of them may never have met before.
  if (!reached) return tl::unexpected(reached.error());
  std::unique_ptr<Fabric> old;
  {
    const Lock lock(mutex_);
    old = std::move(fabric_);
  }
  old.reset();
  auto fabric = mesh_->Enter(view.generation, all);
  if (!fabric) return tl::unexpected(fabric.error());
  const Lock lock(mutex_);
  fabric_ = std::move(*fabric);
  // Somebody may have stopped before this one came.
  const bool broken =
      std::ranges::any_of(stopped_, [](const auto& one) { return !one.second.planned; });
  if (broken) fabric_->Abort("another worker has stopped");
  return fabric_.get();
}

}  // namespace muster::train
