// The tables of the levels, each from a file that is compiled for it. For kernels.cc alone.
//
// To ask for a table is safe on any CPU; to call what is in it needs one of that level. On other
// architectures than x86-64 there is only the base.
#pragma once

#include "train/compute/kernels.h"

namespace muster::train {

const Kernels& KernelsBase();
const Kernels& KernelsAvx2();
const Kernels& KernelsAvx512();

}  // namespace muster::train
