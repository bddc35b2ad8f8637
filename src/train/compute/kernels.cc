#include "train/compute/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "train/compute/kernels_levels.h"

namespace muster::train {

namespace {

// Those that this CPU can run, the slowest first.
std::vector<const Kernels*> Usable() {
  std::vector<const Kernels*> out{&KernelsBase()};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    out.push_back(&KernelsAvx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      out.push_back(&KernelsAvx512());
    }
  }
#endif
  return out;
}

}  // namespace

std::vector<std::string> KernelLevels() {
  std::vector<std::string> out;
  std::ranges::transform(Usable(), std::back_inserter(out),
                         [](const Kernels* kernels) { return std::string(kernels->name); });
  return out;
}

Result<const Kernels*> KernelsFor(std::string_view name) {
  const auto usable = Usable();
  if (name == "auto") return usable.back();
  for (const Kernels* kernels : usable) {
    if (kernels->name == name) return kernels;
  }
  return Fail(ErrorCode::kInvalid, fmt::format("no kernels '{}' for this CPU", name),
              fmt::format("one of: auto, {}", fmt::join(KernelLevels(), ", ")));
}

}  // namespace muster::train
