#include "shim/cgroup.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace muster::shim {
namespace {

// A folder that looks like a cgroup file system as far as Make() writes to it: here are the files
// and their values checked, that the kernel heeds them in shim_test.cc.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(base_);
    order_.launch = "17.0.2";
    order_.cgroup_root = "muster";
    order_.memory_bytes = 1 << 30;
    order_.cpu_milli = 2'500;
    order_.max_processes = 100;
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  void Touch(const std::string& path) {
    std::filesystem::create_directories((base_ / path).parent_path());
    std::ofstream(base_ / path).flush();
  }
  std::string Text(const std::string& path) {
    return ReadFile((base_ / path).string()).value_or("-");
  }
  void TouchV2() {
    for (const char* file :
         {"cgroup.controllers", "muster/17.0.2/memory.max", "muster/17.0.2/cpu.max",
          "muster/17.0.2/cpu.weight", "muster/17.0.2/pids.max", "muster/17.0.2/memory.oom.group",
          "muster/17.0.2/cgroup.procs"}) {
      Touch(file);
    }
  }
  void TouchV1() {
    for (const char* file :
         {"memory/muster/17.0.2/memory.limit_in_bytes", "memory/muster/17.0.2/cgroup.procs",
          "cpu/muster/17.0.2/cpu.cfs_quota_us", "cpu/muster/17.0.2/cpu.cfs_period_us",
          "cpu/muster/17.0.2/cpu.shares", "cpu/muster/17.0.2/cgroup.procs",
          "pids/muster/17.0.2/pids.max", "pids/muster/17.0.2/cgroup.procs"}) {
      Touch(file);
    }
  }

  std::filesystem::path base_ =
      std::filesystem::temp_directory_path() / ("muster-cgroup-" + std::to_string(getpid()));
  contract::LaunchOrder order_;
};

TEST_F(CgroupTest, Version2GetsItsFiles) {
  TouchV2();
  const auto group = Cgroup::Make(base_.string(), order_);
  ASSERT_TRUE(group.has_value()) << group.error().message;
  EXPECT_EQ(group->version(), 2);
  EXPECT_EQ(group->doors().size(), 1U);
  EXPECT_EQ(Text("muster/17.0.2/memory.max"), "1073741824");
  EXPECT_EQ(Text("muster/17.0.2/memory.oom.group"), "1");
  EXPECT_EQ(Text("muster/17.0.2/cpu.max"), "250000 100000");
  EXPECT_EQ(Text("muster/17.0.2/pids.max"), "100");
  EXPECT_FALSE(group->KilledForMemory());
  std::ofstream(base_ / "muster/17.0.2/memory.events") << "low 0\noom 3\noom_kill 1\n";
  EXPECT_TRUE(group->KilledForMemory());
}

TEST_F(CgroupTest, Version1GetsItsFiles) {
  TouchV1();
  const auto group = Cgroup::Make(base_.string(), order_);
  ASSERT_TRUE(group.has_value()) << group.error().message;
  EXPECT_EQ(group->version(), 1);
  EXPECT_EQ(group->doors().size(), 3U);
  EXPECT_EQ(Text("memory/muster/17.0.2/memory.limit_in_bytes"), "1073741824");
  EXPECT_EQ(Text("cpu/muster/17.0.2/cpu.cfs_quota_us"), "250000");
  EXPECT_EQ(Text("pids/muster/17.0.2/pids.max"), "100");
  std::ofstream(base_ / "memory/muster/17.0.2/memory.oom_control")
      << "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n";
  EXPECT_FALSE(group->KilledForMemory());
  std::ofstream(base_ / "memory/muster/17.0.2/memory.oom_control")
      << "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
  EXPECT_TRUE(group->KilledForMemory());
}

TEST_F(CgroupTest, VirtualCoresAreAWeight) {
  order_.cpu_is_weight = true;
  TouchV2();
  ASSERT_TRUE(Cgroup::Make(base_.string(), order_).has_value());
  EXPECT_EQ(Text("muster/17.0.2/cpu.weight"), "250");
  EXPECT_EQ(Text("muster/17.0.2/cpu.max"), "");
  std::filesystem::remove_all(base_);
  TouchV1();
  ASSERT_TRUE(Cgroup::Make(base_.string(), order_).has_value());
  EXPECT_EQ(Text("cpu/muster/17.0.2/cpu.shares"), "2560");
  EXPECT_EQ(Text("cpu/muster/17.0.2/cpu.cfs_quota_us"), "");
}

TEST_F(CgroupTest, SaysWhyThereCanBeNoneAndLeavesNothing) {
  Touch("memory/cgroup.procs");
  const auto group = Cgroup::Make(base_.string(), order_);
  ASSERT_FALSE(group.has_value());
  EXPECT_THAT(group.error().message, testing::StartsWith("cannot write \"1073741824\" to "));
  EXPECT_FALSE(std::filesystem::exists(base_ / "memory/muster/17.0.2"));
  order_.memory_bytes = 0;
  EXPECT_EQ(Cgroup::Make(base_.string(), order_).error().message,
            "there is no controller " + base_.string() + "/cpu");
  order_.cgroup_root.clear();
  EXPECT_EQ(Cgroup::Make(base_.string(), order_).error().message, "no cgroup was named");
}

}  // namespace
}  // namespace muster::shim
