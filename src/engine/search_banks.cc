// Search, second half: victims bank by bank, where walking all of them would take too long.
//
// For each worker of the piece, banks on which the first units in victim order stand are compared:
// on each, units leave in that order until the worker fits. The bank that costs the least GPU share
// is taken.
#include <algorithm>
#include <bit>

#include "engine/search.h"

namespace muster::engine {

using model::Rule;

namespace {

constexpr std::size_t kBanks = 12;  // that are compared for one worker
constexpr std::size_t kUnits = 48;  // whose banks are considered
constexpr std::size_t kTurns = 2;   // banks that are tried

}  // namespace

Search::Outcome Search::WalkBanks(const Piece& piece) {
  const auto start = cluster_.mark();
  taken_.clear();
  placement_.AskForRoom(this);
  const bool placed = placement_.Place(piece, Mode::kFuture);
  placement_.AskForRoom(nullptr);
  ForgetGivenUp();
  if (placed && Conclude(piece)) return Outcome::kFound;
  cluster_.RollbackTo(start);
  taken_.clear();
  return Outcome::kNotProven;
}

// Banks that were tried and given up have left their units on the list.
void Search::ForgetGivenUp() {
  std::erase_if(taken_, [this](const Taken& taken) {
    const auto& [ref, before] = taken.before[0];
    return cluster_.worker(ref).place == before;
  });
}

// Banks of units that might be taken, those first where the fewest GPUs are missing.
void Search::ListBanks(WorkerRef ref, std::vector<BankId>& out) {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  std::vector<std::pair<int, BankId>> found;
  for (std::size_t i = 0; const VictimUnit* unit = list_->At(i); ++i) {
    if (found.size() >= kBanks || i >= kUnits) break;
    ++visited_;
    VictimList::Workers(cluster_, *unit, workers_);
    for (const auto& worker : workers_) {
      const BankId b = cluster_.worker(worker).place.bank;
      const auto known = [b](const auto& entry) { return entry.second == b; };
      if (std::any_of(found.begin(), found.end(), known)) continue;
      if (cluster_.shapes().SlotsOn(shape, b, Mode::kEmptied) == 0) continue;
      const auto& bank = cluster_.nodes().bank(b);
      const auto open = std::popcount(bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)]);
      found.emplace_back(-open, b);
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto& [open, bank] : found) out.push_back(bank);
}

bool Search::Estimate(WorkerRef ref, Offer& offer) {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const NodeId node = cluster_.nodes().bank(offer.bank).node;
  jobs_.clear();
  for (const auto& worker : cluster_.WorkersOn(node)) jobs_.push_back(worker.job);
  std::sort(jobs_.begin(), jobs_.end());
  jobs_.erase(std::unique(jobs_.begin(), jobs_.end()), jobs_.end());
  here_.BuildFor(cluster_, jobs_, now_ms_);
  const auto start = cluster_.mark();
  const auto kept = taken_.size();
  bool fits = false;
  for (std::size_t i = 0; const VictimUnit* unit = here_.At(i); ++i) {
    ++visited_;
    if (step_ == Step::kShrink && unit->part == VictimUnit::Part::kJob) continue;
    Rule rule{};
    if (!MayTakeUnit(*piece_, *unit, rule)) continue;
    for (const auto& worker : workers_) {
      offer.gpu_milli += cluster_.worker(worker).place.charge_milli;
    }
    offer.units.emplace_back(*unit, rule);
    Take(*unit, rule, workers_);
    fits = cluster_.shapes().SlotsOn(shape, offer.bank, Mode::kFuture) > 0;
    if (fits) break;
  }
  cluster_.RollbackTo(start);
  taken_.resize(kept);
  return fits;
}

BankId Search::MakeRoom(WorkerRef ref, const std::vector<BankId>& banks, std::size_t turn) {
  if (turn == 0) {
    offers_.clear();
    for (const BankId bank : banks) {
      Offer offer;
      offer.bank = bank;
      if (Estimate(ref, offer)) offers_.push_back(std::move(offer));
    }
    std::stable_sort(offers_.begin(), offers_.end(),
                     [](const Offer& a, const Offer& b) { return a.gpu_milli < b.gpu_milli; });
  }
  ForgetGivenUp();
  if (turn >= std::min(kTurns, offers_.size())) return kNone;
  for (const auto& [unit, rule] : offers_[turn].units) {
    VictimList::Workers(cluster_, unit, workers_);
    Take(unit, rule, workers_);
  }
  return offers_[turn].bank;
}

}  // namespace muster::engine
