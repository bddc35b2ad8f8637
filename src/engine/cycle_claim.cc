// The steps of a cycle that ask others to leave: shrink, reclaim and preempt.
#include <algorithm>
#include <iterator>

#include "engine/cycle_steps.h"

namespace muster::engine {

using model::Gate;
using model::Rule;

namespace {

constexpr std::size_t kClaimersPerCycle = 4;  // queues that nothing happened to but hope again
constexpr std::size_t kFewQueues = 64;        // all of them are looked at in every cycle

}  // namespace

// What a claimer's own queue must fulfil, whoever the victims are.
bool Scheduler::Steps::MayClaim(Step step, QueueId id, const Vec& cost,
                                std::int64_t priority) const {
  if (step == Step::kPreempt) return cluster_.LowestVictimPriority(id) < priority;
  const auto& queues = cluster_.queues();
  const QueueState& queue = queues[id];
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    if (queue.held[d] + cost[d] > queue.share[d]) return false;
  }
  return true;
}

// The queues in which somebody may claim something in this step: those that changed, and of the
// others whose verdict is open as many as one cycle can afford, going round.
void Scheduler::Steps::ListClaimers(Step step) {
  claimers_.clear();
  const auto& queues = cluster_.queues();
  const auto may_claim = [&](QueueId q) {
    const auto* priorities = cluster_.waiting().PrioritiesIn(q);
    return cluster_.Unsettled(q, step) && priorities != nullptr && !priorities->empty() &&
           MayClaim(step, q, Vec{}, -priorities->begin()->first);
  };
  std::copy_if(changed_.begin(), changed_.end(), std::back_inserter(claimers_), may_claim);
  const auto changed = claimers_.size();
  QueueId& next = next_claimer_[static_cast<std::size_t>(step)];
  const auto count = static_cast<QueueId>(queues.size());
  for (QueueId i = 0; i < count; ++i) {
    const QueueId q = (next + i) % count;
    if (q == 0 || !may_claim(q)) continue;
    if (std::binary_search(changed_.begin(), changed_.end(), q)) continue;
    if (queues.size() > kFewQueues && claimers_.size() - changed == kClaimersPerCycle) {
      next = q;
      plan_.complete = false;
      break;
    }
    claimers_.push_back(q);
  }
}

void Scheduler::Steps::Claim(Step step) {
  KeepNoRoom();  // of the step before: who is looked at is told by what all may have
  ListClaimers(step);
  if (claimers_.empty()) return;
  lanes_.Open(claimers_, [&](const BucketHead& head) {
    const JobClass& asks = cluster_.job_class(head.job_class);
    return MayClaim(step, head.queue, asks.cost, -head.key.minus_priority) &&
           cluster_.MayFit(head.job_class, Mode::kEmptied) && search_.MayHelp(step, head) &&
           !ToBeTriedLater(step, head);
  });
  while (const auto next = lanes_.Next()) {
    if (budget_ <= 0) {
      plan_.complete = false;
      break;
    }
    KeepRoomFrom(next->job);
    if (!MayClaimBesideLimits(step, next->job)) {
      lanes_.SkipJob();
    } else if (cluster_.MayFit(next->job_class, Mode::kEmptied)) {
      GoOn(next->job, BehindReservation(next->job, ClaimNext(step, next->job)));
    } else {
      FindsNoRoom(next->job, next->job_class);
    }
  }
  for (const QueueId queue : claimers_) {
    if (lanes_.Exhausted(queue) && !VerdictMayAge(queue)) cluster_.Settle(queue, step);
  }
  RefreshTouched();
}

bool Scheduler::Steps::ToBeTriedLater(Step step, const BucketHead& head) {
  const auto found = cut_off_.find({head.bucket, step});
  if (found == cut_off_.end() || found->second.until <= cluster_.cycles()) return false;
  if (!cluster_.policy().search_again_later) return false;
  undecided_.push_back(head.queue);
  plan_.complete = false;
  return true;
}

void Scheduler::Steps::NoteOutcome(Step step, JobId job, Search::Outcome outcome) {
  const bool proven = outcome != Search::Outcome::kNotProven;
  plan_.complete &= proven;
  cluster_.SetGate(job, proven ? Gate::kCapacity : Gate::kNotProven);
  // A job that was served in this cycle and wants more waits elsewhere from the next cycle on.
  const auto bucket = cluster_.waiting().bucket_of(job);
  if (cluster_.waiting().bucket(bucket).job_class != cluster_.ClassOf(job)) return;
  const std::pair key{bucket, step};
  if (proven) {
    cut_off_.erase(key);
    return;
  }
  cut_off_[key].Again(cluster_.cycles());
}

// Verdicts that time or other queues alone can overturn are not kept.
bool Scheduler::Steps::VerdictMayAge(QueueId queue) const {
  return min_runtimes_ || cluster_.queues()[queue].limited ||
         std::find(undecided_.begin(), undecided_.end(), queue) != undecided_.end();
}

Scheduler::Steps::Answer Scheduler::Steps::ClaimNext(Step step, JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  if (pieces_.empty() || (step == Step::kShrink && job.Satisfied())) return Answer::kNotThis;
  if (TooYoung(job)) {
    undecided_.push_back(job.queue);
    return Answer::kNotThis;
  }
  auto worst = Search::Outcome::kFound;
  for (const auto& piece : pieces_) {
    if (!MayClaim(step, job.queue, piece.cost, job.priority)) continue;
    // Room that victims of an earlier claim leave behind costs nobody anything.
    if (WithinBounds(job, piece) && PlaceWithinBounds(job, piece, Mode::kFuture)) {
      return Answer::kServed;
    }
    const auto outcome = search_.Run(step, piece, budget_);
    worst = std::max(worst, outcome);
    if (outcome != Search::Outcome::kFound) continue;
    for (const auto& taken : search_.taken()) {
      const Rule rule = step == Step::kShrink ? Rule::kShrink
                        : taken.moved         ? Rule::kConsolidate
                                              : taken.rule;
      for (const auto& [ref, before] : taken.before) causes_[ref] = {id, rule};
      touched_.push_back(taken.unit.job);
    }
    return Answer::kServed;
  }
  if (worst != Search::Outcome::kFound) NoteOutcome(step, id, worst);
  return Answer::kNoRoom;
}

}  // namespace muster::engine
