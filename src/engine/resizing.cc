#include "engine/resizing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/units.h"

namespace muster::engine {

using model::GpuKind;

namespace {

constexpr double kStandstill = 1e-9;         // goodput of a size on which no batch runs
constexpr std::int64_t kSilentMs = 300'000;  // who has reported nothing by then is taken as linear

int HeldOn(const JobState& job, BankId bank) {
  return static_cast<int>(std::ranges::count_if(job.workers, [&](const Worker& worker) {
    return worker.place.Holds() && worker.place.bank == bank;
  }));
}

int LeastOf(const JobState& job) {
  return static_cast<int>(std::max<std::uint32_t>(1, job.groups[0].minimum));
}

}  // namespace

void Resizing::Run(std::int64_t now_ms) {
  told_.clear();
  changed_.clear();
  const auto& policy = cluster_.policy();
  if (last_ms_ && now_ms - *last_ms_ < policy.resize_every_ms) return;
  if (seen_ == cluster_.facts_for_sizes()) return;
  const auto passed_ms = last_ms_ ? now_ms - *last_ms_ : 0;
  seen_ = cluster_.facts_for_sizes();
  last_ms_ = now_ms;
  now_ms_ = now_ms;
  divided_.resize(cluster_.queues().size());
  for (QueueId queue = 1; queue < cluster_.queues().size(); ++queue) {
    bool reported = false;
    for (const JobId id : cluster_.RunningIn(queue)) {
      reported |= cluster_.job(id).speed != nullptr;
      cluster_.AddServed(id, passed_ms * cluster_.job(id).active);
    }
    if (!reported && divided_[queue]) SetFree(queue);
    divided_[queue] = reported;
    if (!reported) continue;
    for (TypeId type = 0; type < cluster_.nodes().type_count(); ++type) Divide(queue, type);
  }
}

// Jobs that run, and those that wait with nothing running.
std::vector<JobId> Resizing::JobsOf(QueueId queue) const {
  std::vector<JobId> jobs(cluster_.RunningIn(queue).begin(), cluster_.RunningIn(queue).end());
  for (const auto& head : cluster_.waiting().OfQueue(queue)) {
    if (head.job == kNone) continue;
    for (const auto& waiter : cluster_.waiting().bucket(head.bucket).waiters()) {
      if (cluster_.job(waiter.job).active == 0) jobs.push_back(waiter.job);
    }
  }
  std::ranges::sort(jobs, {}, [&](JobId id) { return cluster_.job(id).sequence; });
  return jobs;
}

// Nobody there reports any more: who is left grows as it can.
void Resizing::SetFree(QueueId queue) {
  for (const JobId id : JobsOf(queue)) {
    if (cluster_.job(id).target == kNone) continue;
    cluster_.SetTarget(id, kNone);
    changed_.push_back(id);
  }
}

bool Resizing::TakesPart(const JobState& job) const {
  if (!job.preemptible || job.on_hold || job.groups.size() != 1 || job.leaving > 0) return false;
  if (job.workers.empty() || job.active + job.pending != job.workers.size()) return false;
  const Worker& first = job.workers[0];
  const auto& gpu = cluster_.shapes()[first.shape].spec.request.gpu;
  const auto& wish = job.groups[0].wish;
  if (gpu.kind != GpuKind::kWhole || gpu.devices != 1) return false;
  if (wish.missing || wish.require != kNone || wish.prefer != kNone) return false;
  return std::ranges::all_of(job.workers, [&](const Worker& worker) {
    return worker.shape == first.shape && worker.place.state != WorkerState::kStuck;
  });
}

// The GPU type it runs on; of one that waits the type that it likes best. kNone: several, or none.
TypeId Resizing::HomeOf(const JobState& job) const {
  const Shape& shape = cluster_.shapes()[job.workers[0].shape];
  if (shape.spec.nowhere || !shape.spec.labels.empty() || shape.spec.node_names) return kNone;
  TypeId home = kNone;
  for (const auto& worker : job.workers) {
    if (!worker.place.Holds()) continue;
    const TypeId type = cluster_.nodes().bank(worker.place.bank).type;
    if (home != kNone && home != type) return kNone;
    home = type;
  }
  for (TypeId type = 0; job.active == 0 && type < cluster_.nodes().type_count(); ++type) {
    if (shape.type_rank[type] == kNone || cluster_.nodes().usable_gpus(type) == 0) continue;
    if (home == kNone || shape.type_rank[type] < shape.type_rank[home]) home = type;
  }
  return home;
}

// Sizes on whole parts of a node: halves of it, then whole nodes, and the one it has.
ElasticJob Resizing::Weigh(const JobState& job) const {
  const auto& policy = cluster_.policy();
  const int node = static_cast<int>(cluster_.nodes().max_devices());
  const int least = LeastOf(job);
  int most = static_cast<int>(job.workers.size());
  const bool silent =
      !job.speed && job.active > 0 && now_ms_ - job.workers[0].started_ms > kSilentMs;
  if (!silent) {
    const int known = job.speed ? job.speed->most_gpus() : 0;
    most = std::min(most, std::max(least, known * static_cast<int>(policy.grow_factor)));
  }
  ElasticJob out;
  out.gpus = static_cast<int>(job.active);
  const auto value = [&](int gpus) {
    if (!job.speed) return std::log(gpus);
    return std::log(std::max(kStandstill, job.speed->GoodputOn((gpus + node - 1) / node, gpus)));
  };
  for (int gpus = 1; gpus <= most; gpus = gpus < node ? std::min(2 * gpus, node) : gpus + node) {
    if (gpus >= least) out.sizes.push_back({gpus, value(gpus)});
  }
  for (const int gpus : {least, out.gpus}) {
    if (gpus < least || std::ranges::find(out.sizes, gpus, &ElasticSize::gpus) != out.sizes.end()) {
      continue;
    }
    out.sizes.push_back({gpus, value(gpus)});
  }
  std::ranges::sort(out.sizes, {}, &ElasticSize::gpus);
  const auto age = static_cast<double>(now_ms_ - job.submitted_ms);
  const double pays = static_cast<double>(policy.resize_pays_ms) +
                      static_cast<double>(policy.resize_patience_milli) / kMilli * age;
  const auto cost =
      static_cast<double>(job.restart_cost_ms > 0 ? job.restart_cost_ms : policy.resize_cost_ms);
  out.change_cost = std::log((pays + cost) / pays);
  out.priority = job.priority;
  out.served = job.served_gpu_ms;
  if (job.active > 0) {
    // Work that does not say how fast it is keeps its place while it runs.
    const auto lowest = std::numeric_limits<std::int64_t>::min();
    out.served = job.speed ? out.served - policy.turn_gpu_ms : lowest;
  }
  return out;
}

void Resizing::List(QueueId queue, TypeId type, std::vector<Candidate>& out) const {
  for (const JobId id : JobsOf(queue)) {
    const JobState& job = cluster_.job(id);
    if (!TakesPart(job) || HomeOf(job) != type) continue;
    out.push_back({id, Weigh(job), {}});
  }
}

// GPUs that the candidates may hold together: what the queue's share leaves them, and not less than
// they have: what is above the share is taken back when somebody can use it, by the rules for that.
int Resizing::Budget(QueueId queue, const std::vector<Candidate>& candidates, int there) const {
  const QueueState& state = cluster_.queues()[queue];
  std::int64_t held = 0;
  for (const auto& candidate : candidates) held += candidate.elastic.gpus;
  const auto others = state.held[kGpuDim] / kMilli - held;
  return static_cast<int>(
      std::min<std::int64_t>(std::max(held, state.share[kGpuDim] / kMilli - others), there));
}

void Resizing::Divide(QueueId queue, TypeId type) {
  std::vector<Candidate> candidates;
  List(queue, type, candidates);
  if (candidates.empty()) return;
  const auto& nodes = cluster_.nodes();
  std::vector<BankId> banks;
  std::vector<int> room;
  std::map<BankId, std::uint32_t> index;
  for (BankId b = 0; b < nodes.bank_count(); ++b) {
    if (nodes.bank(b).type != type || !nodes.node_of(b).Usable()) continue;
    index[b] = static_cast<std::uint32_t>(banks.size());
    banks.push_back(b);
    const auto open = nodes.bank(b).unoccupied[static_cast<std::size_t>(Mode::kFuture)];
    room.push_back(std::popcount(open));
  }
  for (auto& candidate : candidates) {
    const JobState& job = cluster_.job(candidate.job);
    for (const auto& worker : job.workers) {
      if (!worker.place.Holds() || !index.contains(worker.place.bank)) continue;
      candidate.seated.seats.push_back(index[worker.place.bank]);
      ++room[candidate.seated.seats.back()];
    }
    std::ranges::sort(candidate.seated.seats);
    candidate.seated.movable = job.speed != nullptr;
  }
  int there = 0;
  for (const int gpus : room) there += gpus;
  std::vector<ElasticJob> elastic;
  elastic.reserve(candidates.size());
  for (const auto& candidate : candidates) elastic.push_back(candidate.elastic);
  const auto gpus = DivideByValue(elastic, Budget(queue, candidates, there));
  std::vector<SeatedJob> seated;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].seated.gpus = gpus[i];
    seated.push_back(candidates[i].seated);
  }
  const auto seats = SeatByNodes(seated, room);
  // Sizes that fit by number but not by node are none: rather nothing changes than that a job which
  // runs, and is to run, loses its place.
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto least = LeastOf(cluster_.job(candidates[i].job));
    const bool has_too_few = std::ssize(seats[i]) < least;
    if (has_too_few && gpus[i] >= least && candidates[i].elastic.gpus >= least) return;
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) Leave(candidates[i], seats[i], banks);
  for (std::size_t i = 0; i < candidates.size(); ++i) Take(candidates[i], seats[i], banks);
}

// The workers that are more than the seats on their bank, the last of them first.
void Resizing::Leave(const Candidate& candidate, const Seats& seats,
                     std::span<const BankId> banks) {
  const JobState& job = cluster_.job(candidate.job);
  std::map<BankId, int> over;
  for (const auto seat : candidate.seated.seats) ++over[banks[seat]];
  for (const auto seat : seats) --over[banks[seat]];
  for (auto index = static_cast<std::uint32_t>(job.workers.size()); index-- > 0;) {
    const auto& place = job.workers[index].place;
    if (!place.Holds() || over[place.bank] <= 0) continue;
    --over[place.bank];
    told_.push_back({candidate.job, index});
    cluster_.Leave(told_.back());
  }
}

// Those who left take the new seats, then those who wait.
void Resizing::Take(const Candidate& candidate, const Seats& seats, std::span<const BankId> banks) {
  const JobState& job = cluster_.job(candidate.job);
  const auto least = LeastOf(job);
  if (std::ssize(seats) < least) {  // the seats are not enough: it waits for its turn
    cluster_.SetTarget(candidate.job, static_cast<std::uint32_t>(least));
  } else {
    std::vector<std::uint32_t> waiting;
    for (const bool leaver : {true, false}) {
      for (std::uint32_t index = 0; index < job.workers.size(); ++index) {
        const auto& place = job.workers[index].place;
        const bool waits = place.state == WorkerState::kPending;
        if (waits && (place.left_bank != kNone) == leaver) waiting.push_back(index);
      }
    }
    std::map<BankId, int> missing;
    for (const auto seat : seats) ++missing[banks[seat]];
    auto next = waiting.begin();
    for (auto& [bank, count] : missing) {
      for (count -= HeldOn(job, bank); count > 0 && next != waiting.end(); --count, ++next) {
        if (!placement_.PlaceOn({candidate.job, *next}, bank)) break;
      }
    }
    cluster_.SetTarget(candidate.job, static_cast<std::uint32_t>(seats.size()));
  }
  changed_.push_back(candidate.job);
}

}  // namespace muster::engine
