// Sizes become places: who sits where, who leaves for it, and whom that is for.
#include <algorithm>
#include <bit>
#include <map>

#include "engine/resizing.h"

namespace muster::engine {

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
    Tell(told, candidates);
    each([&](const Candidate& candidate, const Part&) { changed_.push_back(candidate.job); });
    return true;
  }
  cluster_.RollbackTo(mark);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    cluster_.SetTarget(candidates[i].job, targets[i]);
  }
  return false;
}

// A job leaves for the one that takes most of its GPUs, of equals the first: for its own new place
// where nobody takes them.
void Resizing::Tell(std::span<const WorkerRef> leavers, std::span<const Candidate> candidates) {
  std::map<BankId, std::vector<std::pair<JobId, std::uint64_t>>> came;
  for (const auto& candidate : candidates) {
    for (const auto& worker : cluster_.job(candidate.job).workers) {
      const Place& place = worker.place;
      if (place.Holds() && place.fresh) came[place.bank].emplace_back(candidate.job, place.devices);
    }
  }
  std::map<JobId, std::map<JobId, int>> taken;  // GPUs, by who leaves and who comes
  for (const auto& ref : leavers) {
    const Place& left = cluster_.worker(ref).place;
    for (const auto& [job, devices] : came[left.left_bank]) {
      if (job != ref.job) taken[ref.job][job] += std::popcount(devices & left.left_devices);
    }
  }
  for (const auto& ref : leavers) {
    JobId whom = ref.job;
    int most = 0;
    for (const auto& [job, gpus] : taken[ref.job]) {
      if (gpus > most) whom = job;
      most = std::max(most, gpus);
    }
    told_.push_back({ref, whom});
  }
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
    seated.least = candidate.wished ? 0 : LeastOf(job) * candidate.each;
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
