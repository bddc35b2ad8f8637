#include "engine/consolidation.h"

#include <algorithm>
#include <set>

namespace muster::engine {

bool Consolidation::Place(const Piece& piece, std::int64_t now_ms) {
  now_ms_ = now_ms;
  moved_.clear();
  claimer_ = piece.job;
  const auto mark = cluster_.mark();
  placement_.AskForRoom(this);
  const bool placed = placement_.Place(piece, Mode::kFuture);
  placement_.AskForRoom(nullptr);
  const auto limit = cluster_.policy().move_limit;
  if (placed && (limit < 0 || static_cast<std::int64_t>(moved_.size()) <= limit)) return true;
  cluster_.RollbackTo(mark);
  moved_.clear();
  return false;
}

void Consolidation::Leave(const VictimUnit& unit) {
  VictimList::Workers(cluster_, unit, workers_);
  for (const auto& ref : workers_) {
    const engine::Place place = cluster_.worker(ref).place;
    engine::Place to;
    to.left_bank = place.bank;
    to.left_devices = place.devices;
    cluster_.Move(ref, to);
  }
}

// Whether the unit has workers that must not be moved: of the claimer, or placed in this very cycle.
bool Consolidation::Overlaps(const VictimUnit& unit) const {
  if (unit.job == claimer_) return true;
  const auto& workers = cluster_.job(unit.job).workers;
  return std::any_of(workers.begin(), workers.end(), [](const Worker& worker) {
    return worker.place.fresh || worker.place.left_bank != kNone;
  });
}

// Which units would have to leave the bank's node, and how many workers that are.
void Consolidation::Estimate(WorkerRef ref, BankId bank, Offer& offer) {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const NodeId node = cluster_.nodes().bank(bank).node;
  std::set<JobId> jobs;
  for (const auto& here : cluster_.WorkersOn(node)) jobs.insert(here.job);
  VictimList list;
  list.BuildFor(cluster_, std::vector<JobId>(jobs.begin(), jobs.end()), now_ms_);
  const auto fits = [&] { return cluster_.shapes().SlotsOn(shape, bank, Mode::kFuture) > 0; };
  const auto start = cluster_.mark();
  for (std::size_t i = 0; const VictimUnit* unit = list.At(i); ++i) {
    if (Overlaps(*unit)) continue;
    VictimList::Workers(cluster_, *unit, workers_);
    const bool here = std::any_of(workers_.begin(), workers_.end(), [&](const WorkerRef& worker) {
      return cluster_.nodes().bank(cluster_.worker(worker).place.bank).node == node;
    });
    if (!here) continue;
    Leave(*unit);
    offer.units.push_back(*unit);
    if (fits()) break;
  }
  if (!fits()) offer.units.clear();
  cluster_.RollbackTo(start);
  for (std::size_t i = offer.units.size(); i-- > 0;) {
    const VictimUnit unit = offer.units[i];
    offer.units.erase(offer.units.begin() + static_cast<std::ptrdiff_t>(i));
    for (const auto& other : offer.units) Leave(other);
    const bool needed = !fits();
    cluster_.RollbackTo(start);
    if (needed) offer.units.insert(offer.units.begin() + static_cast<std::ptrdiff_t>(i), unit);
  }
  for (const auto& unit : offer.units) {
    VictimList::Workers(cluster_, unit, workers_);
    offer.workers += workers_.size();
  }
}

BankId Consolidation::MakeRoom(WorkerRef ref, const std::vector<BankId>& candidates,
                               std::size_t turn) {
  if (turn == 0) {
    offers_.clear();
    for (const BankId bank : candidates) {
      Offer offer;
      offer.bank = bank;
      Estimate(ref, bank, offer);
      if (!offer.units.empty()) offers_.push_back(std::move(offer));
    }
    std::stable_sort(offers_.begin(), offers_.end(), [](const Offer& a, const Offer& b) {
      if (a.workers != b.workers) return a.workers < b.workers;
      return AskedBefore(a.units[0], b.units[0]);
    });
  }
  if (turn >= offers_.size()) return kNone;
  left_.clear();
  for (const auto& unit : offers_[turn].units) {
    Leave(unit);
    left_.emplace_back(unit, workers_);
  }
  return offers_[turn].bank;
}

bool Consolidation::Settle() {
  for (std::size_t i = left_.size(); i-- > 0;) {
    const auto& [unit, workers] = left_[i];
    if (placement_.Rehouse(unit.RehousedAs(), workers) < workers.size()) return false;
  }
  for (const auto& [unit, workers] : left_) {
    moved_.insert(moved_.end(), workers.begin(), workers.end());
  }
  return true;
}

}  // namespace muster::engine
