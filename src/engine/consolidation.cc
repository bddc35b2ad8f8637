#include "engine/consolidation.h"

#include <algorithm>
#include <bit>

namespace muster::engine {
namespace {

constexpr std::size_t kTurns = 4;  // banks that are tried before the worker is given up

}  // namespace

bool Consolidation::Place(const Piece& piece, std::int64_t now_ms) {
  now_ms_ = now_ms;
  moved_.clear();
  claimer_ = piece.job;
  const auto mark = cluster_.mark();
  placement_.AskForRoom(this);
  const bool placed = placement_.Place(piece, Mode::kFuture);
  placement_.AskForRoom(nullptr);
  // Domains that were tried and given up have left their movers behind.
  std::erase_if(moved_,
                [this](WorkerRef ref) { return cluster_.worker(ref).place.left_bank == kNone; });
  std::sort(moved_.begin(), moved_.end());
  moved_.erase(std::unique(moved_.begin(), moved_.end()), moved_.end());
  const auto limit = cluster_.policy().move_limit;
  if (placed && (limit < 0 || static_cast<std::int64_t>(moved_.size()) <= limit)) return true;
  cluster_.RollbackTo(mark);
  moved_.clear();
  return false;
}

void Consolidation::Leave(const VictimUnit& unit) {
  VictimList::Workers(cluster_, unit, workers_);
  for (const auto& ref : workers_) cluster_.Leave(ref);
}

// Whether the unit has workers that must not be moved: of the claimer, or placed in this very
// cycle.
bool Consolidation::MustStay(const VictimUnit& unit) const {
  if (unit.job == claimer_) return true;
  const auto& workers = cluster_.job(unit.job).workers;
  return std::any_of(workers.begin(), workers.end(), [](const Worker& worker) {
    return worker.place.fresh || worker.place.left_bank != kNone;
  });
}

// Which units would have to leave the bank's node, and how many workers that are. Counts GPUs only
// for whole requests; whether cores and memory follow is seen when the worker takes the room.
void Consolidation::Estimate(WorkerRef ref, BankId bank_id, Offer& offer) {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const Bank& bank = cluster_.nodes().bank(bank_id);
  jobs_.clear();
  for (const auto& here : cluster_.WorkersOn(bank.node)) jobs_.push_back(here.job);
  std::sort(jobs_.begin(), jobs_.end());
  jobs_.erase(std::unique(jobs_.begin(), jobs_.end()), jobs_.end());
  list_.BuildFor(cluster_, jobs_, now_ms_);
  const auto& gpu = shape.spec.request.gpu;
  const bool whole = gpu.kind == model::GpuKind::kWhole;
  const auto open = std::popcount(bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)]);
  std::int64_t missing = whole ? gpu.devices - open : 1;
  std::vector<std::int64_t> frees;
  std::vector<WorkerRef> offered;
  for (std::size_t i = 0; const VictimUnit* unit = list_.At(i); ++i) {
    if (missing <= 0) break;
    if (MustStay(*unit)) continue;
    VictimList::Workers(cluster_, *unit, workers_);
    std::erase_if(workers_, [&](WorkerRef worker) {
      return std::find(offered.begin(), offered.end(), worker) != offered.end();
    });
    offered.insert(offered.end(), workers_.begin(), workers_.end());
    std::int64_t here = 0;
    for (const auto& worker : workers_) {
      const engine::Place& place = cluster_.worker(worker).place;
      if (cluster_.nodes().bank(place.bank).node != bank.node) continue;
      here += whole ? std::popcount(place.devices & bank.mask) : 1;
    }
    if (here == 0) continue;
    offer.units.push_back(*unit);
    frees.push_back(here);
    missing -= here;
    if (!whole) missing = Suffices(shape, bank_id, offer.units) ? 0 : 1;
  }
  if (missing > 0) offer.units.clear();
  for (std::size_t i = offer.units.size(); whole && i-- > 0;) {
    if (missing + frees[i] > 0) continue;
    missing += frees[i];
    offer.units.erase(offer.units.begin() + static_cast<std::ptrdiff_t>(i));
    frees.erase(frees.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const auto& unit : offer.units) {
    VictimList::Workers(cluster_, unit, workers_);
    offer.workers += workers_.size();
  }
}

bool Consolidation::Suffices(const Shape& shape, BankId bank,
                             const std::vector<VictimUnit>& units) {
  const auto mark = cluster_.mark();
  for (const auto& unit : units) Leave(unit);
  const bool fits = cluster_.shapes().SlotsOn(shape, bank, Mode::kFuture) > 0;
  cluster_.RollbackTo(mark);
  return fits;
}

BankId Consolidation::MakeRoom(WorkerRef ref, const std::vector<BankId>& banks, std::size_t turn) {
  if (turn == 0) {
    offers_.clear();
    for (const BankId bank : banks) {
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
  if (turn >= std::min(offers_.size(), kTurns)) return kNone;
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
