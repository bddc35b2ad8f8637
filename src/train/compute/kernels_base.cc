#define MUSTER_EIGEN eigen_base
#include "train/compute/kernels_body.h"
#include "train/compute/kernels_levels.h"

namespace muster::train {

const Kernels& KernelsBase() {
  static constexpr Kernels kTable = Table("base");
  return kTable;
}

}  // namespace muster::train
