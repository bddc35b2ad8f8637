// BankFragmentation: how much idle GPU of a bank the workers that are known cannot use.
//
// The measure is FGD's: for each shape that is asked for, all idle GPU of the bank where the shape
// cannot run there, else what is idle on GPUs with too little room for it; summed by how many
// workers ask for the shape. A share goes where the sum grows least. Looks at the few shapes of
// ShapeTable::Targets() and at the GPUs of one bank; integers only.
#pragma once

#include <array>
#include <cstdint>

#include "engine/nodes.h"
#include "engine/shapes.h"

namespace muster::engine {

class BankFragmentation {
 public:
  BankFragmentation(const NodeTable& nodes, ShapeTable& shapes, BankId bank, Mode mode);

  // By how much the expected fragmentation grows, in thousandths of a GPU, if a worker of the shape
  // takes its part of this GPU; steps that make no difference are rounded away.
  std::int64_t Growth(const Shape& shape, std::uint32_t device) const;
  // The worker takes it.
  void Take(const Shape& shape, std::uint32_t device);

 private:
  static constexpr std::size_t kMostDevices = 64;

  std::int64_t Expected() const;
  std::int64_t Stranded(const Shape& target) const;
  std::int64_t NeedOf(const Shape& shape) const;

  const NodeTable& nodes_;
  ShapeTable& shapes_;
  BankId id_;
  std::array<std::int64_t, kMostDevices> idle_milli_{};  // by device of the node
  std::uint64_t mask_ = 0;
  HostVec host_free_{};
  std::int64_t expected_ = 0;
};

}  // namespace muster::engine
