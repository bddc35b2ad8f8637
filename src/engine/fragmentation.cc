#include "engine/fragmentation.h"

#include <algorithm>
#include <bit>

#include "base/units.h"

namespace muster::engine {

namespace {

// Differences below a twenty-fifth of a GPU say nothing: treating them as equal packs better,
// because then the tighter place wins.
constexpr std::int64_t kStepMilli = 40;

}  // namespace

BankFragmentation::BankFragmentation(const NodeTable& nodes, ShapeTable& shapes, BankId bank,
                                     Mode mode)
    : nodes_(nodes), shapes_(shapes), id_(bank) {
  const Bank& state = nodes.bank(bank);
  mask_ = state.mask;
  for (std::uint64_t rest = mask_; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto room = std::max<std::int64_t>(0, nodes.Room(bank, index, mode));
    idle_milli_[index] = state.memory == 0 ? 0 : room * kMilli / state.memory;
  }
  for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
    host_free_[d] = nodes.HostFree(state.node, d, mode);
  }
  expected_ = Expected();
}

// What a worker takes of each of its GPUs here.
std::int64_t BankFragmentation::NeedOf(const Shape& shape) const {
  const auto devices = std::max(1, shape.spec.request.gpu.devices);
  return shapes_.ChargeOn(shape, nodes_.bank(id_)) / devices;
}

std::int64_t BankFragmentation::Stranded(const Shape& target) const {
  const auto need = NeedOf(target);
  const TypeId type = nodes_.bank(id_).type;
  std::int64_t idle = 0, too_small = 0;
  int fitting = 0;
  for (std::uint64_t rest = mask_; rest != 0; rest &= rest - 1) {
    const auto room = idle_milli_[static_cast<std::size_t>(std::countr_zero(rest))];
    idle += room;
    if (room < need) {
      too_small += room;
    } else {
      ++fitting;
    }
  }
  bool runs = target.allowed[id_] && target.type_rank[type] != kNone &&
              fitting >= target.spec.request.gpu.devices;
  for (std::size_t d = 0; runs && d < nodes_.host_dims(); ++d) {
    runs = target.host[d] <= host_free_[d];
  }
  return runs ? too_small : idle;
}

std::int64_t BankFragmentation::Expected() const {
  std::int64_t sum = 0, weight = 0;
  for (const ShapeId id : shapes_.Targets()) {
    sum += shapes_.demand(id) * Stranded(shapes_[id]);
    weight += shapes_.demand(id);
  }
  return weight == 0 ? 0 : sum / weight;
}

void BankFragmentation::Take(const Shape& shape, std::uint32_t device) {
  idle_milli_[device] = std::max<std::int64_t>(0, idle_milli_[device] - NeedOf(shape));
  for (std::size_t d = 0; d < nodes_.host_dims(); ++d) host_free_[d] -= shape.host[d];
  expected_ = Expected();
}

std::int64_t BankFragmentation::Growth(const Shape& shape, std::uint32_t device) const {
  BankFragmentation after = *this;
  after.Take(shape, device);
  const auto growth = after.expected_ - expected_;
  const auto steps = growth >= 0 ? growth / kStepMilli : -((-growth + kStepMilli - 1) / kStepMilli);
  return steps * kStepMilli;
}

}  // namespace muster::engine
