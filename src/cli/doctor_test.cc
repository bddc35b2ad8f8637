#include "cli/doctor.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Doctor, ACgroupWithoutTheControllersThatLimitsNeedIsNoticed) {
  EXPECT_EQ(ControllersMissing("cpuset cpu io memory hugetlb pids"), "");
  EXPECT_EQ(ControllersMissing("cpuset io memory"), "cpu");
  EXPECT_EQ(ControllersMissing("cpu"), "memory");
  EXPECT_EQ(ControllersMissing(""), "cpu and memory");
}

}  // namespace
}  // namespace muster::cli
