#define MUSTER_EIGEN eigen_avx2
#include "train/compute/kernels_body.h"
#include "train/compute/kernels_levels.h"

namespace muster::train {

const Kernels& KernelsAvx2() {
  static constexpr Kernels kTable = Table("avx2");
  return kTable;
}

}  // namespace muster::train
