#define MUSTER_EIGEN eigen_avx512
#include "train/compute/kernels_body.h"
#include "train/compute/kernels_levels.h"

namespace muster::train {

const Kernels& KernelsAvx512() {
  static constexpr Kernels kTable = Table("avx512");
  return kTable;
}

}  // namespace muster::train
