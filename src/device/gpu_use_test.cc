#include "device/gpu_use.h"

#include <gtest/gtest.h>

namespace muster::device {
namespace {

NvmlOptions Stub(const std::string& name) {
  return NvmlOptions{{MUSTER_NVML_STUBS + name + ".so"}};
}

TEST(GpuUse, CountsTheProcessesThatAreAskedForAndNoOthers) {
  GpuUse use(Stub("eight"));
  std::uint64_t seen = 0;
  EXPECT_EQ(use.PercentOf(2, {1000}, false, seen), 30);
  EXPECT_GT(seen, 0U);
  EXPECT_EQ(use.PercentOf(2, {1000}, false, seen), 0);  // nothing new since
  seen = 0;
  EXPECT_EQ(use.PercentOf(2, {1001, 4}, false, seen), 7);
  seen = 0;
  EXPECT_EQ(use.PercentOf(2, {4}, false, seen), 0);
}

TEST(GpuUse, ADriverThatDoesNotTellAnswersForWholeGpusOnly) {
  GpuUse use(Stub("two"));
  std::uint64_t seen = 0;
  EXPECT_EQ(use.PercentOf(1, {1000}, true, seen), 10);
  EXPECT_FALSE(use.PercentOf(1, {1000}, false, seen).has_value());
}

TEST(GpuUse, WithoutALibraryNothingIsKnown) {
  GpuUse use(NvmlOptions{{"libmuster-has-no-such-library.so"}});
  std::uint64_t seen = 0;
  EXPECT_FALSE(use.PercentOf(0, {1}, true, seen).has_value());
}

}  // namespace
}  // namespace muster::device
