#include "engine/timeline.h"

#include <algorithm>
#include <bit>

namespace muster::engine {
namespace {

constexpr std::size_t kMostEnds = 512;         // jobs that one look ahead lets end
constexpr std::size_t kMostEndsWithin = 4096;  // the same for a limit, of all queues
constexpr std::size_t kTogether = 16;          // of those that end at one moment, between two looks
constexpr int kMostTries = 16;              // of places, where numbers alone would allow the gang
constexpr std::int64_t kStandsMs = 30'000;  // before it is looked whether it could be sooner

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

bool Timeline::Renew(Reservation& made, std::int64_t now_ms) {
  const bool stands = now_ms < made.at_ms && now_ms - made.made_ms < kStandsMs &&
                      cluster_.job(made.job).sequence == made.sequence &&
                      std::ranges::all_of(made.places, [&](const Hold& place) {
                        return cluster_.nodes().node_of(place.bank).Usable();
                      });
  if (!stands) return false;
  KeepWhatIsFree(made);
  for (auto& within : made.within) within.room = made.cost;
  for (const auto& [at_ms, job] : cluster_.EndsAfter(now_ms)) {
    if (made.within.empty() || at_ms > made.at_ms) break;
    Leaves(job, made);
  }
  return true;
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

std::optional<Reservation> Timeline::ReserveWithin(const Piece& piece, std::int64_t now_ms) {
  const auto& queues = cluster_.queues();
  const JobState& job = cluster_.job(piece.job);
  Reservation found;
  found.job = piece.job;
  found.sequence = job.sequence;
  found.made_ms = now_ms;
  found.cost = piece.cost;
  found.fixed = !job.preemptible;
  for (QueueId q = job.queue; q != 0; q = queues[q].parent) {
    const Vec& bound = found.fixed ? queues[q].quota : queues[q].limit;
    bool bounded = false;
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      bounded |= piece.cost[d] > 0 && bound[d] != kUnlimited;
    }
    if (bounded) found.within.push_back({q, piece.cost});
  }
  std::size_t ended = 0;
  for (const auto& [at_ms, other] : cluster_.EndsAfter(now_ms)) {
    if (found.within.empty() || ended++ == kMostEndsWithin) break;
    if (!Leaves(other, found)) continue;
    found.at_ms = at_ms;
    if (MayHave(found)) return found;
  }
  return std::nullopt;
}

std::optional<Reservation> Timeline::Reserve(const Piece& piece, std::int64_t now_ms) {
  Reservation found;
  found.job = piece.job;
  found.sequence = cluster_.job(piece.job).sequence;
  found.made_ms = now_ms;
  gone_.clear();
  int tries = 0;
  bool fits = false;
  const auto& ends = cluster_.EndsAfter(now_ms);
  for (auto end = ends.begin(); end != ends.end() && !fits && gone_.size() < kMostEnds;) {
    found.at_ms = end->first;
    const auto enough = gone_.size() + kTogether;
    for (; end != ends.end() && end->first == found.at_ms && gone_.size() < enough; ++end) {
      cluster_.Vacate(end->second, +1);
      gone_.push_back(end->second);
    }
    if (!placement_.MayFit(piece, Mode::kFuture)) continue;
    fits = Fits(piece, found.places);
    if (!fits && ++tries == kMostTries) break;
  }
  for (const JobId job : gone_) cluster_.Vacate(job, -1);
  if (!fits) return std::nullopt;
  std::ranges::sort(found.places, {}, &Hold::bank);
  KeepWhatIsFree(found);
  return found;
}

}  // namespace muster::engine
