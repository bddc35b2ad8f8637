// Room for who is to have it later: the reservations of the first gangs that find none, backfill
// behind them, and the reservations of admins.
#include <bit>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "engine/cycle_steps.h"

namespace muster::engine {

using model::Rule;

namespace {

// Gangs for which one cycle looks for a time in vain. The others wait for a look of their own, but
// for those that had a time in the cycle before.
constexpr int kMostFutureless = 2;
constexpr std::size_t kMostReserved = 8;  // gangs that have a reservation at one time

// A bit for each GPU type; from the 64th on they share one.
std::uint64_t BitOf(TypeId type) { return 1ULL << std::min<TypeId>(type, 63); }

std::uint64_t TypesThere(const NodeTable& nodes) {
  std::uint64_t types = 0;
  for (TypeId type = 0; type < nodes.type_count(); ++type) {
    if (nodes.usable_gpus(type) > 0) types |= BitOf(type);
  }
  return types;
}

// The GPU types that its workers could take; of workers without GPUs all, for they may be anywhere.
std::uint64_t TypesOf(const Cluster& cluster, const JobState& job) {
  std::uint64_t types = 0;
  ShapeId last = kNone;
  for (const auto& worker : job.workers) {
    if (worker.shape == last) continue;
    last = worker.shape;
    const Shape& shape = cluster.shapes()[worker.shape];
    if (shape.spec.request.gpu.kind == model::GpuKind::kNone) return ~0ULL;
    for (TypeId type = 0; type < shape.type_rank.size(); ++type) {
      if (shape.type_rank[type] != kNone) types |= BitOf(type);
    }
  }
  return types;
}

std::uint64_t TypesOf(const NodeTable& nodes, const std::vector<Hold>& holds) {
  std::uint64_t types = 0;
  for (const auto& hold : holds) types |= BitOf(nodes.bank(hold.bank).type);
  return types;
}

// The queue whose jobs may use it; kNone: nobody's.
QueueId QueueOf(const Cluster& cluster, const model::Reservation& booking) {
  return booking.queue.empty() ? kNone : cluster.queues().Find(booking.queue);
}

// GPUs of the node that jobs of the queue hold.
int HeldBy(const Cluster& cluster, NodeId node, QueueId queue) {
  int held = 0;
  for (const auto& ref : cluster.WorkersOn(node)) {
    const Place& place = cluster.worker(ref).place;
    if (!place.Holds() || cluster.nodes().bank(place.bank).node != node) continue;
    if (cluster.queues().IsBelow(cluster.job(ref.job).queue, queue)) {
      held += std::popcount(place.devices);
    }
  }
  return held;
}

// So many of the node's GPUs that are free, and a like part of what it has beside them.
void HoldOn(const NodeTable& nodes, NodeId id, int gpus, std::vector<Hold>& out) {
  const NodeState& node = nodes.node(id);
  for (BankId b = node.first_bank; b < node.first_bank + node.bank_count && gpus > 0; ++b) {
    Hold hold{b, 0, {}};
    std::uint64_t free = nodes.bank(b).unoccupied[static_cast<std::size_t>(Mode::kFuture)];
    for (; free != 0 && gpus > 0; free &= free - 1, --gpus) hold.devices |= free & (~free + 1);
    if (hold.devices == 0) continue;
    for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
      hold.host[d] = node.capacity[d] / node.device_count * std::popcount(hold.devices);
    }
    out.push_back(hold);
  }
}

bool Overlap(const Kept& a, const Kept& b) { return a.from_ms < b.to_ms && b.from_ms < a.to_ms; }

}  // namespace

// What the reservations of admins keep. Those of the same time are kept while the next is looked
// at, so that they keep different GPUs.
void Scheduler::Steps::Book() {
  blocks_.clear();
  looks_ = 0;
  without_it_.clear();
  for (const auto& booking : cluster_.reservations()) {
    if (booking.to_ms <= now_ms_) continue;
    const QueueId queue = QueueOf(cluster_, booking);
    Block block{{kNone, booking.name, booking.from_ms, booking.to_ms}, queue, booking.from_ms, {}};
    for (auto& other : blocks_) Turn(other, Overlap(other.by, block.by));
    for (const auto& part : booking.parts) {
      const NodeId node = cluster_.FindNode(part.node);
      if (node == kNone) continue;
      const auto held = HeldBy(cluster_, node, queue);
      HoldOn(cluster_.nodes(), node, part.gpus - held, block.holds);
    }
    block.types = TypesOf(cluster_.nodes(), block.holds);
    blocks_.push_back(std::move(block));
  }
  KeepNoRoom();
}

// From its beginning on a reservation takes its GPUs from who may be asked: lower priority first,
// then who started last. They wait, and find another place in the next cycle if there is one.
void Scheduler::Steps::TakeBooked() {
  for (const auto& booking : cluster_.reservations()) {
    if (booking.from_ms > now_ms_ || booking.to_ms <= now_ms_) continue;
    const QueueId queue = QueueOf(cluster_, booking);
    for (const auto& part : booking.parts) {
      if (const NodeId node = cluster_.FindNode(part.node); node != kNone) {
        TakeOn(node, part.gpus, queue);
      }
    }
  }
  RefreshTouched();
}

// Until so many GPUs of the node are free or held by jobs of the queue.
void Scheduler::Steps::TakeOn(NodeId node, int gpus, QueueId queue) {
  std::vector<WorkerRef> others;
  for (const auto& ref : cluster_.WorkersOn(node)) {
    const JobState& job = cluster_.job(ref.job);
    const Place& place = cluster_.worker(ref).place;
    if (place.state != WorkerState::kRunning || place.promised || place.devices == 0) continue;
    if (job.preemptible && !cluster_.queues().IsBelow(job.queue, queue)) others.push_back(ref);
  }
  std::sort(others.begin(), others.end(), [this](WorkerRef a, WorkerRef b) {
    const auto rank = [this](WorkerRef ref) {
      return std::tuple(cluster_.job(ref.job).priority, -cluster_.worker(ref).started_ms, ref);
    };
    return rank(a) < rank(b);
  });
  for (const auto& ref : others) {
    const NodeState& state = cluster_.nodes().node(node);
    int there = HeldBy(cluster_, node, queue);
    for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
      there += std::popcount(
          cluster_.nodes().bank(b).unoccupied[static_cast<std::size_t>(Mode::kFuture)]);
    }
    if (there >= gpus) break;
    if (cluster_.worker(ref).place.Holds()) SendAway(ref, Rule::kReservation, false);
  }
}

// Also in room that is kept, for who may have it.
bool Scheduler::Steps::RoomForSomebody() {
  KeepNoRoom();
  for (ClassId c = 0; c < cluster_.class_count(); ++c) {
    if (cluster_.waiting().AnyOf(c) && cluster_.MayFit(c, Mode::kFuture)) return true;
  }
  return false;
}

// Serves the waiting jobs in order until a gang below its minimum finds no room: that one gets a
// reservation, and so does the first behind it that could run on other GPU types only. Where nobody
// would find room there is nothing to keep.
void Scheduler::Steps::Reserve() {
  if (RoomForSomebody()) RenewReservations(false);
}

// `whoever_comes`: also where nobody who waits would find room.
void Scheduler::Steps::RenewReservations(bool whoever_comes) {
  if (!StillReserved()) FindReservations(whoever_comes);
  KeepNoRoom();
  RefreshTouched();
}

void Scheduler::Steps::KeepFor(const Reservation& made) {
  const JobState& job = cluster_.job(made.job);
  const bool patient = now_ms_ - job.submitted_ms < cluster_.policy().backfill_patience_ms;
  const bool passed = patient && cluster_.policy().backfill;
  auto within = made.within;
  for (auto& [queue, room] : within) {
    for (auto& amount : room.at) amount = std::max<std::int64_t>(0, amount);
  }
  blocks_.push_back({{made.job, {}, made.at_ms, 0},
                     kNone,
                     passed ? made.at_ms : now_ms_,
                     made.holds,
                     made.places,
                     made.within.empty() ? TypesOf(cluster_, job) : 0,
                     std::move(within),
                     made.fixed});
}

// What was reserved in the cycle before, as far as it stands.
void Scheduler::Steps::KeepLastReserved() {
  blocks_.clear();
  looks_ = 0;
  for (auto& made : last_reserved_) {
    if (!timeline_.Stands(made, now_ms_)) continue;
    timeline_.Renew(made, now_ms_);
    KeepFor(made);
  }
}

// Whose turn it is is not found out anew in every cycle.
bool Scheduler::Steps::StillReserved() {
  const bool all = std::ranges::all_of(
      last_reserved_, [&](const Reservation& made) { return timeline_.Stands(made, now_ms_); });
  if (!all) return false;
  for (auto& made : last_reserved_) timeline_.Renew(made, now_ms_);
  reserved_ = last_reserved_;
  for (const auto& made : reserved_) KeepFor(made);
  return !reserved_.empty();
}

// Who waits for GPU types comes before all behind it that could take some of them.
void Scheduler::Steps::FindReservations(bool whoever_comes) {
  const auto all = TypesThere(cluster_.nodes());
  std::uint64_t waited_for = 0;
  int futureless = 0;
  const auto had = [this](JobId id) {
    return std::ranges::find(last_reserved_, id, &Reservation::job) != last_reserved_.end();
  };
  lanes_.Open([](ClassId /*id*/) { return true; });
  while (const auto next = lanes_.Next()) {
    KeepRoomFrom(next->job);
    const bool room = cluster_.MayFit(next->job_class, Mode::kFuture);
    if (room && AllocateNext(next->job) == Answer::kServed) {
      GoOn(next->job, Answer::kServed);
      continue;
    }
    if (!cluster_.job(next->job).Satisfied()) {
      const auto types = TypesOf(cluster_, cluster_.job(next->job));
      if ((types & waited_for) != 0) {
        waited_for |= types;
      } else {
        if (!(whoever_comes || RoomForSomebody())) break;
        KeepRoomFrom(next->job);
        const bool looks = futureless < kMostFutureless || had(next->job);
        const auto found = ReserveFor(next->job, next->job_class, looks);
        if (found == Found::kRoom) waited_for |= types;
        if (found == Found::kNothing) ++futureless;
      }
      if (waited_for != 0 && (all & ~waited_for) == 0) break;
      if (reserved_.size() == kMostReserved) break;
    }
    GoOn(next->job, BehindReservation(next->job, Answer::kNoRoom));
  }
  last_reserved_ = reserved_;
}

bool Scheduler::Steps::KeptByAdmin() const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [](const Block& block) { return block.on && block.by.job == kNone; });
}

Scheduler::Steps::Found Scheduler::Steps::ReserveFor(JobId id, ClassId job_class, bool looks) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  if (pieces_.empty() || pieces_[0].estimated) return Found::kNothing;
  // Behind one that waits for the limit of their queue nobody knows what will be left of it.
  const bool behind = std::ranges::any_of(reserved_, [&](const Reservation& made) {
    if (made.fixed && job.preemptible) return false;
    return std::ranges::any_of(made.within, [&](const Reservation::Within& within) {
      return cluster_.queues().IsBelow(job.queue, within.queue);
    });
  });
  if (behind) return Found::kLater;
  const std::pair tried(job_class, job.queue);
  const auto known = no_time_.find(tried);
  const bool still = known != no_time_.end() && known->second.until > cluster_.cycles();
  if (still || !looks) return Found::kNothingStill;
  // Of the first below a queue that its limit stops: nobody who would be in its way passes it. It
  // waits for no GPUs, so others may wait for theirs.
  const bool limited = !WithinBounds(job, pieces_[0]);
  if (limited && !timeline_.BoundsAllow(pieces_[0])) return Found::kNothingStill;
  auto made = limited ? timeline_.ReserveWithin(pieces_[0], now_ms_)
                      : timeline_.Reserve(pieces_[0], now_ms_);
  if (!made) {
    no_time_[tried].Again(cluster_.cycles());
    return Found::kNothing;
  }
  no_time_.erase(tried);
  KeepFor(*made);
  reserved_.push_back(std::move(*made));
  return limited ? Found::kLater : Found::kRoom;
}

// Whether the job would still be there when the room is needed. Behind a gang only so many are
// looked at: all others are taken to be.
bool Scheduler::Steps::Binds(const Block& block, JobId id) const {
  const JobState& job = cluster_.job(id);
  if (block.by.job != kNone) {
    if (id == block.by.job || job.priority > cluster_.job(block.by.job).priority) return false;
    return LookedEnough() || now_ms_ + cluster_.TakesMs(job) > block.until_ms;
  }
  if (now_ms_ + cluster_.TakesMs(job) <= block.until_ms) return false;
  return !cluster_.queues().IsBelow(job.queue, block.queue);
}

void Scheduler::Steps::Turn(Block& block, bool on) {
  if (block.on == on) return;
  block.on = on;
  if (block.by.job == kNone) {
    on ? KeepBooked(block) : LeaveBooked(block);
    return;
  }
  for (const auto& hold : block.holds) cluster_.Keep(hold, on ? +1 : -1);
  for (const auto& [queue, room] : block.within) {
    cluster_.KeepWithin(queue, room, block.fixed, on ? +1 : -1);
  }
}

// Reservations of admins for different times may hold the same GPUs, which are kept once.
void Scheduler::Steps::KeepBooked(Block& block) {
  for (Hold hold : block.holds) {
    const auto all = hold.devices;
    for (const auto& other : blocks_) {
      for (const auto& kept : other.kept) {
        if (kept.bank == hold.bank) hold.devices &= ~kept.devices;
      }
    }
    if (hold.devices == 0) continue;
    for (auto& amount : hold.host)
      amount = amount / std::popcount(all) * std::popcount(hold.devices);
    cluster_.Keep(hold, +1);
    block.kept.push_back(hold);
  }
}

void Scheduler::Steps::LeaveBooked(Block& block) {
  for (const auto& hold : block.kept) cluster_.Keep(hold, -1);
  block.kept.clear();
  for (auto& other : blocks_) {
    if (other.on && other.by.job == kNone) KeepBooked(other);
  }
}

// Before sizes are given out: who would start as things are, and who would have a reservation, so
// that their room is not given out. Nobody starts here.
void Scheduler::Steps::Foresee() {
  const auto mark = cluster_.mark();
  const auto last = last_reserved_;
  reserved_.clear();
  RenewReservations(true);
  Allocate();
  KeepNoRoom();
  last_reserved_ = last;
  struct Served {
    std::vector<Hold> holds;
    Vec cost;
  };
  std::map<JobId, Served> served;
  std::vector<WorkerRef> storage;
  for (const auto& ref : cluster_.TouchedSince(mark, storage)) {
    const Worker& worker = cluster_.worker(ref);
    auto& [holds, cost] = served[ref.job];
    if (!worker.place.Holds()) continue;
    const auto& host = cluster_.shapes()[worker.shape].host;
    holds.push_back({worker.place.bank, worker.place.devices, host});
    cost.Add(cluster_.CostOf(ref), cluster_.queues().dims());
  }
  cluster_.RollbackTo(mark);
  for (auto& [id, given] : served) {
    const JobState& job = cluster_.job(id);
    touched_.push_back(id);
    if (job.Satisfied()) continue;
    Block block{{id, {}, now_ms_, 0}, kNone, now_ms_, std::move(given.holds)};
    block.types = TypesOf(cluster_.nodes(), block.holds);
    block.within = timeline_.BoundsOf(job, given.cost);
    block.fixed = !job.preemptible;
    blocks_.push_back(std::move(block));
  }
  RefreshTouched();
  looks_ = 0;
}

// Room that some of these jobs may not have none of them gets: their sizes are found together. A
// gang that is one of them is weighed with the others instead.
Resizing::Held Scheduler::Steps::KeepRoomFromAll(std::span<const JobId> jobs) {
  const std::set<JobId> among(jobs.begin(), jobs.end());
  Resizing::Held held;
  for (auto& block : blocks_) {
    const JobId by = block.by.job;
    if (among.contains(by)) held.reserved.push_back(by);
    const bool in_vain = by != kNone && (among.contains(by) || cluster_.job(by).Satisfied());
    const auto binds = [&](JobId id) { return Binds(block, id); };
    Turn(block, !in_vain && std::ranges::any_of(jobs, binds));
    if (!block.on) continue;
    const auto counted = [&](JobId id) { return CountsOn(block, id); };
    std::ranges::copy_if(jobs, std::back_inserter(held.counted_on), counted);
  }
  return held;
}

// Whether its end makes some of that room.
bool Scheduler::Steps::CountsOn(const Block& block, JobId id) const {
  const JobState& job = cluster_.job(id);
  const bool below = std::ranges::any_of(block.within, [&](const Reservation::Within& within) {
    return cluster_.queues().IsBelow(job.queue, within.queue);
  });
  return (below && block.holds.empty()) ||
         std::ranges::any_of(job.workers, [&](const Worker& worker) {
           return worker.place.Holds() && std::ranges::any_of(block.places, [&](const Hold& place) {
                    return place.bank == worker.place.bank &&
                           (place.devices & worker.place.devices) != 0;
                  });
         });
}

// Takes room away that the job may not have, and gives back what it may. Says whether some is away.
bool Scheduler::Steps::KeepRoomFrom(JobId id) {
  bool kept = false;
  for (auto& block : blocks_) {
    Turn(block, Binds(block, id));
    kept |= block.on;
  }
  return kept;
}

// What is kept of a limit makes nobody leave: who has no part of what else the limit leaves claims
// nothing. Who takes the place of others of its queue takes nothing of it.
bool Scheduler::Steps::MayClaimBesideLimits(Step step, JobId id) {
  bool kept = false;
  for (const auto& block : blocks_) kept |= block.on && !block.within.empty();
  if (!kept) return true;
  placement_.NextPieces(id, pieces_);
  const bool may =
      step == Step::kPreempt || pieces_.empty() || WithinBounds(cluster_.job(id), pieces_[0]);
  for (auto& block : blocks_) {
    if (!block.within.empty()) Turn(block, false);
  }
  return may;
}

void Scheduler::Steps::KeepNoRoom() {
  for (auto& block : blocks_) Turn(block, false);
}

void Scheduler::Steps::ConcludeReservations() {
  for (const auto& made : reserved_) {
    if (cluster_.job(made.job).Satisfied()) continue;
    auto& plan = plan_.reserved.emplace_back();
    plan.job = made.job;
    plan.at_ms = made.at_ms;
    plan.rooms.reserve(made.holds.size());
    for (const auto& hold : made.holds) {
      plan.rooms.push_back({cluster_.nodes().bank(hold.bank).node, hold.devices,
                            hold.host[kHostCpu], hold.host[kHostMemory]});
    }
  }
}

// Whether jobs of the class would find room if none were kept, as far as numbers go.
Scheduler::Steps::Without Scheduler::Steps::WithoutIt(ClassId job_class) {
  const auto [known, added] = without_it_.try_emplace(job_class);
  if (added) {
    KeepNoRoom();
    known->second.fits_now = cluster_.MayFit(job_class, Mode::kFree);
    known->second.fits_soon = cluster_.MayFit(job_class, Mode::kFuture);
  }
  return known->second;
}

// What keeps room from the job at this moment: of GPUs that it could take, if there is such.
const Scheduler::Steps::Block* Scheduler::Steps::KeptBy(JobId id) const {
  const Block* by = nullptr;
  for (const auto& block : blocks_) {
    if (!block.on) continue;
    if ((block.types & TypesOf(cluster_, cluster_.job(id))) != 0) return &block;
    if (by == nullptr) by = &block;
  }
  return by;
}

// That a job finds no room beside what is kept says nothing of its equals, if they would find some
// there: they may end sooner.
Scheduler::Steps::Answer Scheduler::Steps::BehindReservation(JobId id, Answer answer) {
  const Block* by = answer == Answer::kNoRoom ? KeptBy(id) : nullptr;
  if (by == nullptr) return answer;
  const auto without = WithoutIt(cluster_.ClassOf(id));
  if (without.fits_now) cluster_.SetKept(id, by->by);
  if (!without.fits_soon || LookedEnough()) return answer;
  ++looks_;
  return Answer::kNotThis;
}

// Not by number: nor would any of its class, unless others of it may have what is kept from it.
void Scheduler::Steps::FindsNoRoom(JobId id, ClassId job_class) {
  const bool by_gang = std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) {
    return block.on && block.by.job != kNone;
  });
  const bool hope = KeptByAdmin() || (by_gang && !LookedEnough());
  if (hope && WithoutIt(job_class).fits_soon) {
    GoOn(id, BehindReservation(id, Answer::kNoRoom));
  } else {
    lanes_.SkipClass();
  }
}

// Who looked in vain while room was kept may hope again when other room is.
void Scheduler::Steps::NoteReservations() {
  std::vector<std::pair<JobId, std::int64_t>> gangs;
  gangs.reserve(reserved_.size());
  for (const auto& made : reserved_) gangs.emplace_back(made.job, made.at_ms);
  auto reserved = std::pair(blocks_.size(), std::move(gangs));
  if (reserved != reserved_before_) cluster_.UnsettleAll();
  reserved_before_ = std::move(reserved);
}

// What an admin reserved ends by time alone, and others may grow then.
void Scheduler::Steps::NoteBookings() {
  const auto standing = std::ranges::count_if(
      cluster_.reservations(), [&](const auto& booking) { return booking.to_ms > now_ms_; });
  if (std::exchange(bookings_before_, standing) != standing) cluster_.NoteFactForSizes();
}

}  // namespace muster::engine
