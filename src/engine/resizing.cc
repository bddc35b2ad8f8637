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
constexpr double kCrawls = 1e-3;             // who is slower than that does not get on
constexpr double kReluctance = 1.5;          // a change is charged so many times what it costs
constexpr int kAttempts = 8;                 // to seat the jobs of a queue
constexpr std::int64_t kSilentMs = 300'000;  // who has reported nothing by then is taken as linear

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
  CompareTypes();
  divided_.resize(cluster_.queues().size());
  for (QueueId queue = 1; queue < cluster_.queues().size(); ++queue) {
    bool reported = false;
    for (const JobId id : cluster_.RunningIn(queue)) {
      const JobState& job = cluster_.job(id);
      reported |= job.speed != nullptr;
      cluster_.AddServed(id, passed_ms * job.active * std::max(1, EachOf(job)));
    }
    if (!reported && divided_[queue]) SetFree(queue);
    divided_[queue] = reported;
    if (reported) Divide(queue);
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
  if (shape.spec.nowhere || !shape.spec.labels.empty() || shape.spec.node_names) return false;
  // Whose node takes nobody any more is moved by other rules.
  return std::ranges::all_of(job.workers, [&](const Worker& worker) {
    if (worker.place.Holds() && !cluster_.nodes().node_of(worker.place.bank).Usable()) return false;
    return worker.shape == first.shape && worker.place.state != WorkerState::kStuck;
  });
}

// GPUs of a worker; 0: it has shares, or none.
int Resizing::EachOf(const JobState& job) const {
  if (job.workers.empty()) return 0;
  const auto& gpu = cluster_.shapes()[job.workers[0].shape].spec.request.gpu;
  return gpu.kind == GpuKind::kWhole ? gpu.devices : 0;
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

// The type that it has first, then those that it may have in the order in which it likes them. Who
// runs and tells nothing stays.
std::vector<TypeId> Resizing::TypesOf(const Candidate& candidate) const {
  const JobState& job = cluster_.job(candidate.job);
  const Shape& shape = cluster_.shapes()[job.workers[0].shape];
  std::vector<TypeId> out;
  for (TypeId type = 0; type < cluster_.nodes().type_count(); ++type) {
    if (shape.type_rank[type] == kNone || cluster_.nodes().usable_gpus(type) == 0) continue;
    if (type != candidate.type) out.push_back(type);
  }
  std::ranges::stable_sort(out, {}, [&](TypeId type) { return shape.type_rank[type]; });
  if (candidate.type == kNone) return out;
  if (job.speed == nullptr) out.clear();
  out.insert(out.begin(), candidate.type);
  return out;
}

void Resizing::Survey(std::span<const Candidate> candidates) {
  const auto& nodes = cluster_.nodes();
  halls_.assign(nodes.type_count(), {});
  open_.clear();
  for (BankId b = 0; b < nodes.bank_count(); ++b) {
    const Bank& bank = nodes.bank(b);
    if (bank.type == kNone) continue;
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

// On as few nodes as it can. On a type that it never ran on: by what others gained from it.
double Resizing::LogGoodput(const Candidate& candidate, TypeId type, int workers) const {
  const int per_node = std::max(1, halls_[type].node / candidate.each);
  const int nodes = (workers + per_node - 1) / per_node, gpus = workers * candidate.each;
  const auto& name = cluster_.nodes().type_name(type);
  const auto* speed = cluster_.job(candidate.job).speed.get();
  if (speed == nullptr) {
    const TypeId liked = TypesOf(candidate).front();
    return std::log(gpus) + RatioOf(cluster_.nodes().type_name(liked), name);
  }
  const auto& known = speed->KnownFor(name);
  const double goodput = std::max(kStandstill, speed->GoodputOn(known, nodes, gpus));
  return std::log(goodput) + (known == name ? 0 : RatioOf(known, name));
}

// Of the smallest size that gets on, on the type that it has or likes best.
double Resizing::LeastLogGoodput(const Candidate& candidate) const {
  const JobState& job = cluster_.job(candidate.job);
  const TypeId type = TypesOf(candidate).front();
  const int most = static_cast<int>(job.workers.size());
  int workers = LeastOf(job);
  double least = LogGoodput(candidate, type, workers);
  while (least <= std::log(kStandstill) && workers < most) {
    workers = std::min(2 * workers, most);
    least = LogGoodput(candidate, type, workers);
  }
  return least;
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
  const bool silent = !job.speed && has > 0 && now_ms_ - job.workers[0].started_ms > kSilentMs;
  if (!silent) {
    const int known = job.speed ? job.speed->most_gpus() : 0;
    const int grown = known * static_cast<int>(policy.grow_factor) / candidate.each;
    most = std::min(most, std::max(least, grown));
  }
  most = std::min(most, reach);
  std::set<int> sizes = {least};
  if (has >= least) sizes.insert(has);
  for (int w = 1; w <= most; w = w < per_node ? std::min(2 * w, per_node) : w + per_node) {
    if (w >= least) sizes.insert(w);
  }
  const auto age = static_cast<double>(now_ms_ - job.submitted_ms);
  const double pays = static_cast<double>(policy.resize_pays_ms) +
                      static_cast<double>(policy.resize_patience_milli) / kMilli * age;
  const auto cost =
      static_cast<double>(job.restart_cost_ms > 0 ? job.restart_cost_ms : policy.resize_cost_ms);
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

void Resizing::Divide(QueueId queue) {
  auto candidates = List(queue);
  // Who is to run and finds no place, for want of cores or by a limit, is left as it is: nobody
  // leaves for it in vain.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<JobId> stuck;
    DivideAmong(queue, candidates, stuck);
    if (stuck.empty()) return;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return std::ranges::find(stuck, candidate.job) != stuck.end();
    });
  }
}

void Resizing::DivideAmong(QueueId queue, std::vector<Candidate>& candidates,
                           std::vector<JobId>& stuck) {
  Survey(candidates);
  for (auto& candidate : candidates) {
    candidate.choice.clear();
    for (const TypeId type : TypesOf(candidate)) {
      auto weighed = Weigh(candidate, type);
      if (!weighed.sizes.empty()) candidate.choice.push_back(std::move(weighed));
    }
  }
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.choice.empty(); });
  if (candidates.empty()) return;
  std::vector<int> room;
  room.reserve(halls_.size());
  for (TypeId type = 0; type < halls_.size(); ++type) {
    room.push_back(RoomOf(queue, type, candidates));
  }
  const int gpus = Budget(queue, candidates);
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

std::vector<Resizing::Part> Resizing::PartsOf(std::span<const Candidate> candidates,
                                              std::span<const ElasticPart> found) const {
  std::vector<Part> parts;
  parts.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const TypeId type = candidates[i].choice[found[i].choice].type;
    const bool stays = type == candidates[i].type && found[i].gpus == candidates[i].held;
    parts.push_back({type, found[i].gpus, stays, {}});
  }
  return parts;
}

// Sizes that fit by number but not by node are none: rather nothing changes, of any type or of this
// one, than that a job which runs, and is to run, loses its place. One that lies on several types
// and finds no room on one of them keeps what it has. False: nothing has changed.
bool Resizing::Seat(std::span<const Candidate> candidates, std::vector<Part> parts, bool all_types,
                    std::vector<JobId>& stuck) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool mixed = candidates[i].held > 0 && candidates[i].type == kNone;
    if (mixed && parts[i].gpus == 0) stuck.push_back(candidates[i].job);
  }
  const auto kept = TryWished(candidates, parts, stuck);
  if (!stuck.empty()) return false;
  std::vector<bool> seated(halls_.size());
  for (TypeId type = 0; type < halls_.size(); ++type) {
    seated[type] = SeatType(type, candidates, parts, kept);
    if (all_types && !seated[type]) return false;
  }
  const auto mark = cluster_.mark();
  std::vector<std::uint32_t> targets;
  targets.reserve(candidates.size());
  for (const auto& candidate : candidates) targets.push_back(cluster_.job(candidate.job).target);
  const auto each = [&](const auto& act) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (seated[parts[i].type]) act(candidates[i], parts[i]);
    }
  };
  std::vector<WorkerRef> told;
  each([&](const Candidate& candidate, const Part& part) {
    for (const auto& ref : Leavers(candidate, part)) {
      told.push_back(ref);
      cluster_.Leave(ref);
    }
  });
  each([&](const Candidate& candidate, const Part& part) {
    if (!candidate.wished) Take(candidate, part);
  });
  each([&](const Candidate& candidate, const Part& part) {
    if (candidate.wished) PlaceWished(candidate, part);
  });
  each([&](const Candidate& candidate, const Part& part) {
    const int least = LeastOf(cluster_.job(candidate.job));
    const auto seats = candidate.wished ? part.gpus : static_cast<int>(part.seats.size());
    const int needed = std::max(least, std::min(candidate.held, seats) / candidate.each);
    const bool runs = part.gpus >= least * candidate.each;
    if (runs && static_cast<int>(cluster_.job(candidate.job).active) < needed) {
      stuck.push_back(candidate.job);
    }
  });
  if (stuck.empty()) {
    told_.insert(told_.end(), told.begin(), told.end());
    each([&](const Candidate& candidate, const Part&) { changed_.push_back(candidate.job); });
    return true;
  }
  cluster_.RollbackTo(mark);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    cluster_.SetTarget(candidates[i].job, targets[i]);
  }
  return false;
}

bool Resizing::SeatType(TypeId type, std::span<const Candidate> candidates,
                        std::vector<Part>& parts, const std::map<BankId, int>& kept) const {
  const Hall& hall = halls_[type];
  std::map<BankId, std::uint32_t> index;
  auto room = hall.room;
  for (std::uint32_t i = 0; i < hall.banks.size(); ++i) {
    index[hall.banks[i]] = i;
    const auto found = kept.find(hall.banks[i]);
    if (found != kept.end()) room[i] = std::max(0, room[i] - found->second);
  }
  std::vector<std::size_t> here;
  std::vector<SeatedJob> jobs;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (parts[i].type != type || (candidate.wished && !parts[i].stays)) continue;
    const JobState& job = cluster_.job(candidate.job);
    SeatedJob seated;
    for (const auto& worker : job.workers) {
      if (!worker.place.Holds() || !index.contains(worker.place.bank)) continue;
      const auto gpus = static_cast<std::size_t>(candidate.each);
      seated.seats.insert(seated.seats.end(), gpus, index[worker.place.bank]);
    }
    std::ranges::sort(seated.seats);
    seated.gpus = candidate.wished ? static_cast<int>(seated.seats.size()) : parts[i].gpus;
    seated.movable = job.speed != nullptr && !candidate.wished;
    seated.each = candidate.each;
    here.push_back(i);
    jobs.push_back(std::move(seated));
  }
  const auto seats = SeatByNodes(jobs, room);
  for (std::size_t k = 0; k < here.size(); ++k) {
    const Candidate& candidate = candidates[here[k]];
    const int least = LeastOf(cluster_.job(candidate.job)) * candidate.each;
    const bool runs = candidate.held >= least && parts[here[k]].gpus >= least;
    if (!candidate.wished && runs && std::ssize(seats[k]) < least) return false;
    for (const auto seat : seats[k]) parts[here[k]].seats.push_back(hall.banks[seat]);
  }
  return true;
}

// Places those who wish for a place and change, as if all others who change had left, and takes it
// back: what they get is what they are to have. The GPUs of each bank that is kept for them.
std::map<BankId, int> Resizing::TryWished(std::span<const Candidate> candidates,
                                          std::vector<Part>& parts, std::vector<JobId>& stuck) {
  std::map<BankId, int> kept;
  bool any = false;
  for (std::size_t i = 0; i < parts.size(); ++i) any |= candidates[i].wished && !parts[i].stays;
  if (!any) return kept;
  const auto mark = cluster_.mark();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (parts[i].stays) continue;
    for (const auto& ref : Leavers(candidates[i], parts[i])) cluster_.Leave(ref);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    Part& part = parts[i];
    if (!candidate.wished || part.stays) continue;
    const JobState& job = cluster_.job(candidate.job);
    const auto target = job.target;
    const auto before = cluster_.mark();
    const int wanted = part.gpus;
    PlaceWished(candidate, part);
    cluster_.SetTarget(candidate.job, target);
    part.gpus = static_cast<int>(job.active) * candidate.each;
    if (static_cast<int>(job.active) < LeastOf(job)) {
      cluster_.RollbackTo(before);
      if (wanted > 0) stuck.push_back(candidate.job);
      part.gpus = 0;
      continue;
    }
    for (const auto& worker : job.workers) {
      if (worker.place.Holds()) kept[worker.place.bank] += candidate.each;
    }
  }
  cluster_.RollbackTo(mark);
  return kept;
}

// Who gives up its seat: on each bank those who are more than the seats there, the last of them
// first. Of one that wishes for a place the last ones, and all where it changes its type.
std::vector<WorkerRef> Resizing::Leavers(const Candidate& candidate, const Part& part) const {
  const JobState& job = cluster_.job(candidate.job);
  std::map<BankId, int> over;
  int held = 0;
  for (const auto& worker : job.workers) {
    if (!worker.place.Holds()) continue;
    ++held;
    over[worker.place.bank] += candidate.each;
  }
  for (const auto bank : part.seats) --over[bank];
  if (part.type == candidate.type) held -= part.gpus / candidate.each;
  std::vector<WorkerRef> out;
  for (auto index = static_cast<std::uint32_t>(job.workers.size()); index-- > 0;) {
    const auto& place = job.workers[index].place;
    if (!place.Holds()) continue;
    if (candidate.wished ? held <= 0 : over[place.bank] <= 0) continue;
    --held;
    over[place.bank] -= candidate.each;
    out.push_back({candidate.job, index});
  }
  return out;
}

// Those who left take the new seats, then those who wait.
void Resizing::Take(const Candidate& candidate, const Part& part) {
  const JobState& job = cluster_.job(candidate.job);
  const auto least = LeastOf(job);
  const int workers = static_cast<int>(part.seats.size()) / candidate.each;
  if (workers < least) {  // the seats are not enough: it waits for its turn
    cluster_.SetTarget(candidate.job, static_cast<std::uint32_t>(least));
    return;
  }
  std::vector<std::uint32_t> waiting;
  for (const bool leaver : {true, false}) {
    for (std::uint32_t index = 0; index < job.workers.size(); ++index) {
      const auto& place = job.workers[index].place;
      const bool waits = place.state == WorkerState::kPending;
      if (waits && (place.left_bank != kNone) == leaver) waiting.push_back(index);
    }
  }
  std::map<BankId, int> missing;  // GPUs
  for (const auto bank : part.seats) ++missing[bank];
  for (const auto& worker : job.workers) {
    if (worker.place.Holds()) missing[worker.place.bank] -= candidate.each;
  }
  const auto mark = cluster_.mark();
  auto next = waiting.begin();
  for (auto& [bank, count] : missing) {
    for (; count > 0 && next != waiting.end(); count -= candidate.each, ++next) {
      const auto before = cluster_.mark();
      if (!placement_.PlaceOn({candidate.job, *next}, bank)) break;
      if (WithinBounds(job)) continue;
      cluster_.RollbackTo(before);
      break;
    }
  }
  const bool enough = static_cast<int>(job.active) >= least;
  if (!enough) cluster_.RollbackTo(mark);
  cluster_.SetTarget(candidate.job, static_cast<std::uint32_t>(enough ? workers : least));
}

// Limits may name more than GPUs.
bool Resizing::WithinBounds(const JobState& job) const {
  const Shape& shape = cluster_.shapes()[job.workers[0].shape];
  return cluster_.queues().HeldWithinBounds(job.queue, shape.cost, false);
}

// By the ordinary rules, which know what it wishes for, as many as it is to have and as fit.
void Resizing::PlaceWished(const Candidate& candidate, const Part& part) {
  const JobState& job = cluster_.job(candidate.job);
  const auto least = static_cast<std::uint32_t>(LeastOf(job));
  const auto workers = static_cast<std::uint32_t>(part.gpus / candidate.each);
  cluster_.SetTarget(candidate.job, std::max(least, workers));
  if (workers < least || job.active >= workers) return;
  placement_.KeepTo(part.type);
  const auto mark = cluster_.mark();
  std::vector<WorkerRef> left;
  for (std::uint32_t index = 0; index < job.workers.size(); ++index) {
    if (job.active + left.size() == workers) break;
    if (job.workers[index].place.left_bank != kNone) left.push_back({candidate.job, index});
  }
  placement_.Rehouse(job.Satisfied() ? kNone : 0, left);
  if (!WithinBounds(job)) cluster_.RollbackTo(mark);
  std::vector<Piece> pieces;
  while (job.active < workers) {
    const auto before = cluster_.mark();
    placement_.NextPieces(candidate.job, pieces);
    if (pieces.empty() || !placement_.Place(pieces[0], Mode::kFuture)) break;
    if (WithinBounds(job)) continue;
    cluster_.RollbackTo(before);
    break;
  }
  placement_.KeepTo(kNone);
  cluster_.SetTarget(candidate.job, std::max(least, job.active));
}

}  // namespace muster::engine
