#include "engine/resizing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/units.h"

namespace muster::engine {

using model::GpuKind;

namespace {

constexpr double kStandstill = 1e-9;  // goodput of a size on which no batch runs
// How many times faster a job is than at the least is worth log(kEven + that): speed-ups well below
// it add up, so that most work is done; those above count by their ratio, so that all get some.
constexpr double kEven = 8;
constexpr double kCrawls = 1e-3;              // who is slower than that does not get on
constexpr double kReluctance = 1.5;           // a change is charged so many times what it costs
constexpr std::int64_t kLeastCostMs = 1'000;  // so that no noise of reports pays for a change
constexpr std::int64_t kMostAsked = 2;        // times the GPUs there, by those who wait
constexpr int kAttempts = 8;                  // to seat the jobs of a queue
constexpr std::int64_t kSilentMs = 300'000;   // who has reported nothing by then is taken as linear

// Of those of its workers that run.
std::int64_t FirstStart(const JobState& job) {
  auto first_ms = std::numeric_limits<std::int64_t>::max();
  for (const auto& worker : job.workers) {
    if (worker.place.Holds()) first_ms = std::min(first_ms, worker.started_ms);
  }
  return first_ms;
}

}  // namespace

int Resizing::LeastOf(const JobState& job) {
  return static_cast<int>(std::max<std::uint32_t>(1, job.groups[0].minimum));
}

bool Resizing::Due(std::int64_t now_ms) const {
  if (last_ms_ && now_ms - *last_ms_ < cluster_.policy().resize_every_ms) return false;
  return seen_ != cluster_.facts_for_sizes();
}

void Resizing::Run(std::int64_t now_ms, const KeepRoom& keep_room) {
  told_.clear();
  changed_.clear();
  const auto since_ms = last_ms_.value_or(now_ms);
  seen_ = cluster_.facts_for_sizes();
  last_ms_ = now_ms;
  now_ms_ = now_ms;
  CompareTypes();
  divided_.resize(cluster_.queues().size());
  for (QueueId queue = 1; queue < cluster_.queues().size(); ++queue) {
    bool reported = false;
    for (const JobId id : cluster_.RunningIn(queue)) {
      const JobState& job = cluster_.job(id);
      reported |= job.speed != nullptr;
      const auto passed_ms =
          std::max<std::int64_t>(0, now_ms - std::max(since_ms, job.served_until_ms));
      cluster_.SetServed(id, job.served_gpu_ms + passed_ms * job.active * std::max(1, EachOf(job)),
                         now_ms);
    }
    if (!reported && divided_[queue]) SetFree(queue);
    divided_[queue] = reported;
    if (reported) Divide(queue, keep_room);
  }
}

// What one GPU of a type does for those who ran on it, against one of another type.
void Resizing::CompareTypes() {
  ratios_.clear();
  if (cluster_.nodes().type_count() < 2) return;
  for (JobId id = 0; id < cluster_.job_slots(); ++id) {
    const auto* speed = cluster_.job(id).speed.get();
    if (speed == nullptr || speed->models().size() < 2) continue;
    for (const auto& [from, from_model] : speed->models()) {
      for (const auto& [to, to_model] : speed->models()) {
        const double before = speed->GoodputOn(from, 1, 1), after = speed->GoodputOn(to, 1, 1);
        if (from == to || before <= 0 || after <= 0) continue;
        auto& [sum, count] = ratios_[{from, to}];
        sum += std::log(after / before);
        ++count;
      }
    }
  }
}

double Resizing::RatioOf(const std::string& from, const std::string& to) const {
  const auto found = ratios_.find({from, to});
  return found == ratios_.end() ? 0 : found->second.first / found->second.second;
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
  const Shape& shape = cluster_.shapes()[first.shape];
  if (EachOf(job) == 0 || job.groups[0].wish.missing) return false;
  if (shape.spec.nowhere) return false;
  // Whose node takes nobody any more, or not these, is moved by other rules.
  return std::ranges::all_of(job.workers, [&](const Worker& worker) {
    const BankId bank = worker.place.bank;
    const bool stays =
        !worker.place.Holds() || (cluster_.nodes().node_of(bank).Usable() && shape.allowed[bank]);
    return stays && worker.shape == first.shape && worker.place.state != WorkerState::kStuck;
  });
}

// GPUs of a worker; 0: it has shares, or none.
int Resizing::EachOf(const JobState& job) const {
  if (job.workers.empty()) return 0;
  const auto& gpu = cluster_.shapes()[job.workers[0].shape].spec.request.gpu;
  return gpu.kind == GpuKind::kWhole ? gpu.devices : 0;
}

const Shape& Resizing::ShapeOf(const Candidate& candidate) const {
  return cluster_.shapes()[cluster_.job(candidate.job).workers[0].shape];
}

// What it is and has; one that lies on several types takes part only if it may be moved.
std::vector<Resizing::Candidate> Resizing::List(QueueId queue) const {
  std::vector<Candidate> out;
  for (const JobId id : JobsOf(queue)) {
    const JobState& job = cluster_.job(id);
    if (!TakesPart(job)) continue;
    Candidate candidate;
    candidate.job = id;
    candidate.each = EachOf(job);
    candidate.held = static_cast<int>(job.active) * candidate.each;
    candidate.wished = job.groups[0].wish.require != kNone || job.groups[0].wish.prefer != kNone;
    candidate.type = cluster_.TypeOf(id);
    const bool one_type = std::ranges::all_of(job.workers, [&](const Worker& worker) {
      return !worker.place.Holds() ||
             cluster_.nodes().bank(worker.place.bank).type == candidate.type;
    });
    if (!one_type && job.speed == nullptr) continue;
    if (!one_type) candidate.type = kNone;
    out.push_back(std::move(candidate));
  }
  return out;
}

// Most jobs are short: who has had little so far counts for more.
double Resizing::WeightOf(const JobState& job) const {
  const auto young = static_cast<double>(cluster_.policy().young_gpu_ms);
  const auto served = static_cast<double>(job.served_gpu_ms);
  return 1 / std::sqrt(1 + (served < young ? served / young : 1));
}

// Work that a change of its size costs: what the job's workers have measured; what it says that a
// restart costs where they have not, or where it must restart.
double Resizing::CostMs(const JobState& job, bool restarts) const {
  if (!restarts && job.resize_ms >= 0) {
    return static_cast<double>(std::max(job.resize_ms, kLeastCostMs));
  }
  const auto declared = job.restart_cost_ms;
  return static_cast<double>(declared > 0 ? declared : cluster_.policy().resize_cost_ms);
}

// The type that it has first, then those that it may have, and that are there for it, in the order
// in which it likes them. Who runs and tells nothing stays.
std::vector<TypeId> Resizing::TypesOf(const Candidate& candidate) const {
  const JobState& job = cluster_.job(candidate.job);
  const Shape& shape = ShapeOf(candidate);
  std::vector<TypeId> out;
  for (TypeId type = 0; type < cluster_.nodes().type_count(); ++type) {
    if (shape.type_rank[type] == kNone || halls_[type].banks.empty()) continue;
    if (type != candidate.type) out.push_back(type);
  }
  std::ranges::stable_sort(out, {}, [&](TypeId type) { return shape.type_rank[type]; });
  if (candidate.type == kNone) return out;
  if (job.speed == nullptr) out.clear();
  out.insert(out.begin(), candidate.type);
  return out;
}

// The nodes that they may use.
void Resizing::Survey(std::span<const Candidate> candidates) {
  const auto& nodes = cluster_.nodes();
  std::set<ShapeId> shapes;
  for (const auto& candidate : candidates) {
    shapes.insert(cluster_.job(candidate.job).workers[0].shape);
  }
  halls_.assign(nodes.type_count(), {});
  open_.clear();
  for (BankId b = 0; b < nodes.bank_count(); ++b) {
    const Bank& bank = nodes.bank(b);
    const auto allows = [&](ShapeId shape) -> bool { return cluster_.shapes()[shape].allowed[b]; };
    if (bank.type == kNone || std::ranges::none_of(shapes, allows)) continue;
    halls_[bank.type].node = std::max(halls_[bank.type].node, std::popcount(bank.mask));
    if (!nodes.node_of(b).Usable()) continue;
    halls_[bank.type].banks.push_back(b);
    open_[b] = bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)];
  }
  for (const auto& candidate : candidates) {
    for (const auto& worker : cluster_.job(candidate.job).workers) {
      const auto open = open_.find(worker.place.bank);
      if (worker.place.Holds() && open != open_.end()) open->second |= worker.place.devices;
    }
  }
  for (auto& hall : halls_) {
    for (const BankId b : hall.banks) hall.room.push_back(std::popcount(open_[b]));
    for (const int gpus : hall.room) hall.there += gpus;
  }
}

// Workers that fit together where it must be: its own domain, or the one with the most room.
int Resizing::Reach(const Candidate& candidate, TypeId type) const {
  const JobState& job = cluster_.job(candidate.job);
  const LevelId required = job.groups[0].wish.require;
  if (required == kNone) return std::numeric_limits<int>::max();
  DomainId own = kNone;
  for (const auto& worker : job.workers) {
    if (type != candidate.type || !worker.place.Holds()) continue;
    own = placement_.DomainOf(required, worker.place);
    break;
  }
  const auto& domains = cluster_.topology().level(required).domains;
  int most = 0;
  for (DomainId d = 0; d < domains.size(); ++d) {
    if (own != kNone && d != own) continue;
    int workers = 0;
    for (const NodeId node : domains[d].nodes) {
      const auto& state = cluster_.nodes().node(node);
      for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
        const auto open = open_.find(b);
        if (open == open_.end() || cluster_.nodes().bank(b).type != type) continue;
        workers += std::popcount(open->second & domains[d].devices) / candidate.each;
      }
    }
    most = std::max(most, workers);
  }
  return most;
}

// On as few nodes as it can; of a type that it never ran on, as on the one that stands for it.
double Resizing::Goodput(const Candidate& candidate, TypeId type, int workers) const {
  const int per_node = std::max(1, halls_[type].node / candidate.each);
  const int nodes = (workers + per_node - 1) / per_node, gpus = workers * candidate.each;
  const auto* speed = cluster_.job(candidate.job).speed.get();
  if (speed == nullptr) return gpus;
  return std::max(kStandstill, speed->GoodputOn(cluster_.nodes().type_name(type), nodes, gpus));
}

// On a type that it never ran on: by what others gained from it.
double Resizing::LogGoodput(const Candidate& candidate, TypeId type, int workers) const {
  const auto& names = cluster_.nodes();
  const auto& name = names.type_name(type);
  const auto* speed = cluster_.job(candidate.job).speed.get();
  const auto& known =
      speed == nullptr ? names.type_name(TypesOf(candidate).front()) : speed->KnownFor(name);
  return std::log(Goodput(candidate, type, workers)) + (known == name ? 0 : RatioOf(known, name));
}

// Of the smallest size that gets on, on the type that it has or likes best.
double Resizing::LeastLogGoodput(const Candidate& candidate) const {
  const JobState& job = cluster_.job(candidate.job);
  const TypeId type = TypesOf(candidate).front();
  const int most = static_cast<int>(job.workers.size());
  int workers = LeastOf(job);
  while (Goodput(candidate, type, workers) <= kStandstill && workers < most) {
    workers = std::min(2 * workers, most);
  }
  return LogGoodput(candidate, type, workers);
}

// Sizes on whole parts of a node: halves of it, then whole nodes, and the one it has. No sizes: it
// does not fit there.
ElasticJob Resizing::Weigh(const Candidate& candidate, TypeId type) const {
  const auto& policy = cluster_.policy();
  const JobState& job = cluster_.job(candidate.job);
  const int per_node = halls_[type].node / candidate.each;
  const int least = LeastOf(job), has = static_cast<int>(job.active);
  const bool own = type == candidate.type;
  const int reach = Reach(candidate, type);
  ElasticJob out;
  out.type = type;
  if (!own && (per_node == 0 || reach < least)) return out;
  int most = static_cast<int>(job.workers.size());
  const bool silent = !job.speed && has > 0 && now_ms_ - FirstStart(job) > kSilentMs;
  if (!silent) {
    const int known = job.speed ? job.speed->most_gpus() : 0;
    const int grown = known * static_cast<int>(policy.grow_factor) / candidate.each;
    most = std::min(most, std::max(least, grown));
  }
  if (job.speed) most = std::min(most, job.speed->UsefulGpus() / candidate.each);
  most = std::min(most, reach);
  std::set<int> sizes = {least};
  if (has >= least) sizes.insert(has);
  for (int w = 1; w <= most; w = w < per_node ? std::min(2 * w, per_node) : w + per_node) {
    if (w >= least) sizes.insert(w);
  }
  const auto age = static_cast<double>(now_ms_ - job.submitted_ms);
  const double pays =
      std::max(static_cast<double>(kLeastCostMs),
               static_cast<double>(policy.resize_pays_ms) +
                   static_cast<double>(policy.resize_patience_milli) / kMilli * age);
  const double cost = CostMs(job, !own);
  const double least_goodput = LeastLogGoodput(candidate);
  const auto faster = [&](int workers) {
    return std::exp(LogGoodput(candidate, type, workers) - least_goodput);
  };
  double lost = 0;  // by a change
  if (has > 0) {
    lost = kReluctance * faster(has) / (kEven + faster(has)) * std::log((pays + cost) / pays);
  }
  for (const int workers : sizes) {
    const double changes = own && workers == has ? 0 : lost;
    const double speed = faster(workers);
    const double worth = std::log(speed < kCrawls ? speed : kEven + speed) - changes;
    out.sizes.push_back({workers * candidate.each, WeightOf(job) * worth});
  }
  out.gpus = own ? candidate.held : 0;
  out.overdue =
      policy.reserve && has == 0 && now_ms_ - job.submitted_ms >= policy.backfill_patience_ms;
  out.priority = job.priority;
  out.served = job.served_gpu_ms;
  if (has > 0) {
    // Work that does not say how fast it is keeps its place while it runs.
    const auto lowest = std::numeric_limits<std::int64_t>::min();
    out.served = job.speed ? out.served - policy.turn_gpu_ms : lowest;
  }
  return out;
}

// GPUs that the candidates may hold together: what the queue's share leaves them, and not less than
// they have: what is above the share is taken back when somebody can use it, by the rules for that.
int Resizing::Budget(QueueId queue, std::span<const Candidate> candidates) const {
  const QueueState& state = cluster_.queues()[queue];
  std::int64_t held = 0;
  for (const auto& candidate : candidates) held += candidate.held;
  const auto others = state.held[kGpuDim] / kMilli - held;
  return static_cast<int>(std::min<std::int64_t>(
      std::max(held, state.share[kGpuDim] / kMilli - others), std::numeric_limits<int>::max()));
}

// The same of one type, where queues name it: there limits bind too.
int Resizing::RoomOf(QueueId queue, TypeId type, std::span<const Candidate> candidates) const {
  const auto dim = cluster_.TypeDim(type);
  const auto& queues = cluster_.queues();
  if (dim >= queues.dims()) return halls_[type].there;
  std::int64_t held = 0;
  for (const auto& candidate : candidates) {
    for (const auto& worker : cluster_.job(candidate.job).workers) {
      const bool here =
          worker.place.Holds() && cluster_.nodes().bank(worker.place.bank).type == type;
      held += here ? candidate.each : 0;
    }
  }
  auto room = queues[queue].share[dim] / kMilli - (queues[queue].held[dim] / kMilli - held);
  for (QueueId q = queue; q != 0; q = queues[q].parent) {
    if (queues[q].limit[dim] == kUnlimited) continue;
    room = std::min(room, (queues[q].limit[dim] - queues[q].held[dim]) / kMilli + held);
  }
  return static_cast<int>(std::min<std::int64_t>(std::max(held, room), halls_[type].there));
}

// Those that may use the same nodes together; first those that may use the fewest, for the others
// have more to choose from.
void Resizing::Divide(QueueId queue, const KeepRoom& keep_room) {
  using Where = std::pair<model::Labels, std::optional<std::vector<std::string>>>;
  std::map<Where, std::vector<Candidate>> apart;
  for (auto& candidate : List(queue)) {
    const auto& spec = ShapeOf(candidate).spec;
    apart[{spec.labels, spec.node_names}].push_back(std::move(candidate));
  }
  std::vector<std::pair<std::ptrdiff_t, std::vector<Candidate>>> groups;
  groups.reserve(apart.size());
  for (auto& [where, candidates] : apart) {
    const auto banks = std::ranges::count(ShapeOf(candidates[0]).allowed, true);
    groups.emplace_back(banks, std::move(candidates));
  }
  std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.first; });
  for (auto& [banks, candidates] : groups) {
    DivideTogether(queue, std::move(candidates), keep_room);
  }
}

// Of those that wait for the same GPU types only as many as could run there, in the order in which
// they would: the time this takes is bounded by the GPUs and not by who waits for them. The others
// keep to their least.
void Resizing::LeaveOutTheLast(std::vector<Candidate>& candidates, const KeepRoom& keep_room) {
  std::vector<JobId> jobs;
  jobs.reserve(candidates.size());
  for (const auto& candidate : candidates) jobs.push_back(candidate.job);
  const auto reserved = keep_room(jobs).reserved;
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool waits = candidates[i].held == 0;
    if (waits && std::ranges::find(reserved, jobs[i]) == reserved.end()) waiting.push_back(i);
  }
  std::ranges::stable_sort(waiting, {}, [&](std::size_t i) {
    const JobState& job = cluster_.job(candidates[i].job);
    return std::pair(-job.priority, job.served_gpu_ms);
  });
  std::map<std::vector<std::uint32_t>, std::int64_t> asked;  // GPUs, by what types they may be of
  std::vector<bool> out(candidates.size());
  for (const auto i : waiting) {
    const JobState& job = cluster_.job(candidates[i].job);
    const auto& ranks = ShapeOf(candidates[i]).type_rank;
    std::int64_t there = 0;
    for (TypeId type = 0; type < halls_.size(); ++type) {
      if (ranks[type] != kNone) there += halls_[type].there;
    }
    auto& before = asked[ranks];
    out[i] = before >= kMostAsked * there;
    before += std::int64_t{LeastOf(job)} * candidates[i].each;
    const auto least = static_cast<std::uint32_t>(LeastOf(job));
    if (!out[i] || job.target == least) continue;
    cluster_.SetTarget(candidates[i].job, least);
    changed_.push_back(candidates[i].job);
  }
  std::size_t at = 0;
  std::erase_if(candidates, [&](const Candidate&) { return out[at++]; });
}

void Resizing::DivideTogether(QueueId queue, std::vector<Candidate> candidates,
                              const KeepRoom& keep_room) {
  Survey(candidates);
  LeaveOutTheLast(candidates, keep_room);
  // Who is to run and finds no place, for want of cores or by a limit, is left as it is: nobody
  // leaves for it in vain.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<JobId> jobs, stuck;
    for (const auto& candidate : candidates) jobs.push_back(candidate.job);
    const auto leave_out = [&](const std::vector<JobId>& those) {
      std::erase_if(candidates, [&](const Candidate& candidate) {
        return std::ranges::find(those, candidate.job) != those.end();
      });
    };
    const Held held = keep_room(jobs);
    for (const JobId job : held.counted_on) {
      cluster_.SetTarget(job, cluster_.job(job).active);
      changed_.push_back(job);
    }
    leave_out(held.counted_on);
    DivideAmong(queue, candidates, held.reserved, stuck);
    if (stuck.empty()) return;
    leave_out(stuck);
  }
}

void Resizing::DivideAmong(QueueId queue, std::vector<Candidate>& candidates,
                           std::span<const JobId> reserved, std::vector<JobId>& stuck) {
  Survey(candidates);
  for (auto& candidate : candidates) {
    candidate.choice.clear();
    for (const TypeId type : TypesOf(candidate)) {
      auto weighed = Weigh(candidate, type);
      if (!weighed.sizes.empty()) candidate.choice.push_back(std::move(weighed));
    }
  }
  std::vector<int> room;
  room.reserve(halls_.size());
  for (TypeId type = 0; type < halls_.size(); ++type) {
    room.push_back(RoomOf(queue, type, candidates));
  }
  const int gpus = Budget(queue, candidates);
  // Who could not be served if nobody else were keeps what was reserved for it, and is not weighed.
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const bool fits = std::ranges::any_of(candidate.choice, [&](const ElasticJob& job) {
      return candidate.held > 0 || job.sizes[0].gpus <= std::min(room[job.type], gpus);
    });
    const bool waits = std::ranges::find(reserved, candidate.job) != reserved.end();
    if (!fits && waits) stuck.push_back(candidate.job);
    return !fits;
  });
  if (!stuck.empty() || candidates.empty()) return;
  const auto divide = [&] {
    std::vector<ElasticChoice> jobs;
    jobs.reserve(candidates.size());
    for (const auto& candidate : candidates) jobs.push_back(candidate.choice);
    return PartsOf(candidates, DivideByType(jobs, room, gpus));
  };
  const bool several = std::ranges::any_of(
      candidates, [](const Candidate& candidate) { return candidate.choice.size() > 1; });
  if (several && (Seat(candidates, divide(), true, stuck) || !stuck.empty())) return;
  // As far as they can be seated without anybody changing its type.
  for (auto& candidate : candidates) {
    if (candidate.held > 0) candidate.choice.resize(1);
  }
  Seat(candidates, divide(), false, stuck);
}

}  // namespace muster::engine
