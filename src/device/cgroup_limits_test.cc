#include "device/cgroup_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::device {
namespace {

namespace fs = std::filesystem;

class CgroupLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("muster-cgroup-" +
             std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const auto file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  CgroupLimits Read() {
    return ReadCgroupLimits({(root_ / "mount").string(), (root_ / "membership").string()});
  }

  fs::path root_;
};

TEST_F(CgroupLimitsTest, SecondGenerationTakesTheLeastOfAllLevels) {
  Write("membership", "0::/a/b\n");
  Write("mount/a/b/cpu.max", "max 100000\n");
  Write("mount/a/b/memory.max", "8589934592\n");
  Write("mount/a/cpu.max", "250000 100000\n");
  Write("mount/a/memory.max", "4294967296\n");
  Write("mount/cpu.max", "400000 100000\n");
  const auto limits = Read();
  ASSERT_TRUE(limits.cpu_milli.has_value());
  EXPECT_EQ(limits.cpu_milli->amount, 2500);
  EXPECT_THAT(limits.cpu_milli->file, testing::EndsWith("mount/a/cpu.max"));
  ASSERT_TRUE(limits.memory_bytes.has_value());
  EXPECT_EQ(limits.memory_bytes->amount, std::int64_t{4} << 30);
  EXPECT_THAT(limits.memory_bytes->file, testing::EndsWith("mount/a/memory.max"));
}

TEST_F(CgroupLimitsTest, FirstGenerationReadsEachControllerInItsOwnTree) {
  Write("membership", "4:memory:/job/7\n2:cpu,cpuacct:/slice\n0::/\n");
  Write("mount/cpu,cpuacct/slice/cpu.cfs_quota_us", "150000\n");
  Write("mount/cpu,cpuacct/slice/cpu.cfs_period_us", "50000\n");
  Write("mount/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("mount/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Write("mount/memory/job/7/memory.limit_in_bytes", "1073741824\n");
  Write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto limits = Read();
  ASSERT_TRUE(limits.cpu_milli.has_value());
  EXPECT_EQ(limits.cpu_milli->amount, 3000);
  ASSERT_TRUE(limits.memory_bytes.has_value());
  EXPECT_EQ(limits.memory_bytes->amount, std::int64_t{1} << 30);
}

TEST_F(CgroupLimitsTest, AContainerThatMountsOnlyItsOwnGroupIsStillBound) {
  Write("membership", "4:memory:/docker/0123\n1:cpu:/docker/0123\n");
  Write("mount/memory/memory.limit_in_bytes", "2147483648\n");
  Write("mount/cpu/cpu.cfs_quota_us", "50000\n");
  Write("mount/cpu/cpu.cfs_period_us", "100000\n");
  const auto limits = Read();
  ASSERT_TRUE(limits.memory_bytes.has_value());
  EXPECT_EQ(limits.memory_bytes->amount, std::int64_t{2} << 30);
  ASSERT_TRUE(limits.cpu_milli.has_value());
  EXPECT_EQ(limits.cpu_milli->amount, 500);
}

TEST_F(CgroupLimitsTest, NoBoundIsNoBound) {
  EXPECT_FALSE(Read().cpu_milli.has_value());
  Write("membership", "0::/a\n");
  Write("mount/a/cpu.max", "max 100000\n");
  Write("mount/a/memory.max", "max\n");
  EXPECT_FALSE(Read().cpu_milli.has_value());
  EXPECT_FALSE(Read().memory_bytes.has_value());
}

TEST_F(CgroupLimitsTest, NonsenseBindsNothing) {
  Write("membership", "nonsense\n:\n::\n1:cpu\n0::\n0::no-slash\n3:cpu:/x\n");
  Write("mount/cpu.max", "100000 0\n");
  Write("mount/memory.max", "12x\n");
  Write("mount/cpu/x/cpu.cfs_quota_us", "99999999999999999999\n");
  Write("mount/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(Read().cpu_milli.has_value());
  EXPECT_FALSE(Read().memory_bytes.has_value());
}

}  // namespace
}  // namespace muster::device
