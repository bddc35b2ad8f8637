#include "engine/timeline.h"

#include <algorithm>
#include <bit>

namespace muster::engine {
namespace {

constexpr std::size_t kMostEndsWithin = 4096;  // jobs that a limit's look ahead lets end
constexpr std::size_t kTogether = 16;          // of those that end at one moment, between two looks
constexpr std::int64_t kStandsMs = 30'000;     // before it is looked whether it could be sooner

}  // namespace

// The room that it will take; `host` is what it then leaves of its nodes.
bool Timeline::Fits(const Piece& piece, std::vector<Hold>& out) {
  const auto mark = cluster_.mark();
  if (!placement_.Place(piece, Mode::kFuture)) return false;
  for (const auto& ref : placement_.placed()) {
    const Place& place = cluster_.worker(ref).place;
    auto same = std::find_if(out.begin(), out.end(),
                             [&](const Hold& hold) { return hold.bank == place.bank; });
    if (same == out.end()) same = out.insert(out.end(), {place.bank, 0, {}});
    same->devices |= place.devices;
  }
  for (auto& hold : out) {
    for (std::size_t d = 0; d < cluster_.nodes().host_dims(); ++d) {
      hold.host[d] =
          cluster_.nodes().HostFree(cluster_.nodes().bank(hold.bank).node, d, Mode::kFuture);
    }
  }
  cluster_.RollbackTo(mark);
  return true;
}

// GPUs on which others still are need not be kept, nor what others beside them will leave.
void Timeline::KeepWhatIsFree(Reservation& made) const {
  const NodeTable& nodes = cluster_.nodes();
  const auto future = static_cast<std::size_t>(Mode::kFuture);
  made.holds = made.places;
  NodeId last = kNone;
  for (auto& hold : made.holds) {
    const NodeId node = nodes.bank(hold.bank).node;
    const auto occupied = hold.devices & ~nodes.bank(hold.bank).unoccupied[future];
    for (std::uint64_t rest = occupied; rest != 0; rest &= rest - 1) {
      const auto device = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (nodes.Room(hold.bank, device, Mode::kFuture) <= 0) hold.devices &= ~(1ULL << device);
    }
    for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
      const auto more = nodes.HostFree(node, d, Mode::kFuture) - hold.host[d];
      hold.host[d] = node == last ? 0 : std::max<std::int64_t>(0, more);
    }
    last = node;
  }
}

bool Timeline::Stands(const Reservation& made, std::int64_t now_ms) const {
  const JobState& job = cluster_.job(made.job);
  return now_ms < made.at_ms && now_ms - made.made_ms < kStandsMs && job.present &&
         !job.Satisfied() && !job.on_hold && job.sequence == made.sequence &&
         std::ranges::all_of(made.places, [&](const Hold& place) {
           return cluster_.nodes().node_of(place.bank).Usable();
         });
}

void Timeline::Renew(Reservation& made, std::int64_t now_ms) {
  KeepWhatIsFree(made);
  for (auto& within : made.within) within.room = made.cost;
  for (const auto& [at_ms, job] : cluster_.EndsAfter(now_ms)) {
    if (made.within.empty() || at_ms > made.at_ms) break;
    Leaves(job, made);
  }
}

// What a job leaves below the queues of the gang need not be kept for it now. False: nothing.
bool Timeline::Leaves(JobId id, Reservation& made) const {
  const JobState& job = cluster_.job(id);
  if (made.fixed && job.preemptible) return false;
  if (!cluster_.queues().IsBelow(job.queue, made.within.back().queue)) return false;
  Vec cost;
  for (std::uint32_t i = 0; i < job.workers.size(); ++i) {
    if (job.workers[i].place.Holds()) cost.Add(cluster_.CostOf({id, i}), cluster_.queues().dims());
  }
  for (auto& within : made.within) {
    if (cluster_.queues().IsBelow(job.queue, within.queue)) {
      within.room.Subtract(cost, cluster_.queues().dims());
    }
  }
  return true;
}

// What the gang and those who are still there then hold, of the queue's bound; of fixed work the
// quota counts.
bool Timeline::MayHave(const Reservation& made) const {
  const auto& queues = cluster_.queues();
  return std::ranges::all_of(made.within, [&](const Reservation::Within& within) {
    const QueueState& queue = queues[within.queue];
    const Vec& held = made.fixed ? queue.fixed : queue.held;
    const Vec& bound = made.fixed ? queue.quota : queue.limit;
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      if (made.cost[d] == 0 || bound[d] == kUnlimited) continue;
      if (held[d] + within.room[d] > bound[d]) return false;
    }
    return true;
  });
}

std::vector<Reservation::Within> Timeline::BoundsOf(const JobState& job, const Vec& cost) const {
  const auto& queues = cluster_.queues();
  std::vector<Reservation::Within> within;
  for (QueueId q = job.queue; q != 0; q = queues[q].parent) {
    const Vec& bound = job.preemptible ? queues[q].limit : queues[q].quota;
    bool bounded = false;
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      bounded |= cost[d] > 0 && bound[d] != kUnlimited;
    }
    if (bounded) within.push_back({q, cost});
  }
  return within;
}

bool Timeline::BoundsAllow(const Piece& piece) const {
  const auto& queues = cluster_.queues();
  const JobState& job = cluster_.job(piece.job);
  return std::ranges::all_of(BoundsOf(job, piece.cost), [&](const Reservation::Within& within) {
    const Vec& bound = job.preemptible ? queues[within.queue].limit : queues[within.queue].quota;
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      if (bound[d] != kUnlimited && within.room[d] > bound[d]) return false;
    }
    return true;
  });
}

std::optional<Reservation> Timeline::ReserveWithin(const Piece& piece, std::int64_t now_ms) {
  const JobState& job = cluster_.job(piece.job);
  Reservation found;
  found.job = piece.job;
  found.sequence = job.sequence;
  found.made_ms = now_ms;
  found.cost = piece.cost;
  found.fixed = !job.preemptible;
  found.within = BoundsOf(job, piece.cost);
  std::size_t ended = 0;
  for (const auto& [at_ms, other] : cluster_.EndsAfter(now_ms)) {
    if (found.within.empty() || ended++ == kMostEndsWithin) break;
    if (!Leaves(other, found)) continue;
    found.at_ms = at_ms;
    if (MayHave(found)) return found;
  }
  return std::nullopt;
}

// Whoever ends next leaves: all of one moment, as far as one look takes them.
void Timeline::LetNextEnd(Cluster::Ends::const_iterator& end, const Cluster::Ends& ends) {
  const auto at_ms = end->first;
  const auto enough = gone_.size() + kTogether;
  for (; end != ends.end() && end->first == at_ms && gone_.size() < enough; ++end) {
    gone_.push_back(*end);
  }
  looks_.push_back(gone_.size());
  GoTo(looks_.size());
}

// To how things are at that look; 0: now.
void Timeline::GoTo(std::size_t look) {
  const auto away = look == 0 ? 0 : looks_[look - 1];
  for (; away_ < away; ++away_) cluster_.Vacate(gone_[away_].second, +1);
  for (; away_ > away; --away_) cluster_.Vacate(gone_[away_ - 1].second, -1);
}

// After a place was sought in vain twice as many looks pass by before the next time, and what was
// passed by is halved when one is found: who fits at one look fits at those behind it.
std::optional<Reservation> Timeline::Reserve(const Piece& piece, std::int64_t now_ms) {
  Reservation found;
  found.job = piece.job;
  found.sequence = cluster_.job(piece.job).sequence;
  found.made_ms = now_ms;
  gone_.clear();
  looks_.clear();
  const auto& ends = cluster_.EndsAfter(now_ms);
  std::size_t vain = 0, next = 1, stride = 1, fits = 0;  // looks; 0: none
  for (auto end = ends.begin(); end != ends.end() && fits == 0;) {
    LetNextEnd(end, ends);
    const auto look = looks_.size();
    if (look < next && end != ends.end()) continue;
    if (!placement_.MayFit(piece, Mode::kFuture)) continue;
    if (Fits(piece, found.places)) {
      fits = look;
    } else {
      vain = look;
      next = look + stride;
      stride *= 2;
    }
  }
  while (vain > 0 && fits > vain + 1) {
    const auto middle = (vain + fits) / 2;
    GoTo(middle);
    std::vector<Hold> places;
    if (Fits(piece, places)) {
      fits = middle;
      found.places = std::move(places);
    } else {
      vain = middle;
    }
  }
  GoTo(0);
  if (fits == 0) return std::nullopt;
  found.at_ms = gone_[looks_[fits - 1] - 1].first;
  std::ranges::sort(found.places, {}, &Hold::bank);
  KeepWhatIsFree(found);
  return found;
}

}  // namespace muster::engine
