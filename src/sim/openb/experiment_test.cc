#include "sim/openb/experiment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/temp_folder.h"
#include "sim/openb/policy.h"
#include "sim/openb/trace.h"

namespace muster::sim {
namespace {

class OpenbTest : public ::testing::Test {
 public:
  OpenbTest() {
    nodes_ = Write("nodes.csv",
                   "sn,cpu_milli,memory_mib,gpu,model\n"
                   "a,64000,1000,2,T4\n"
                   "b,96000,1000,8,G2\n");
    pods_ = Write("pods.csv",
                  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                  "p0,1000,10,1,500,\n"
                  "p1,1000,10,1,1000,G3|T4\n"
                  "p2,8000,10,0,0,\n"
                  "p3,1000,10,1,500,\n");
  }

 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    return folder_.Write(name, text);
  }

  TempFolder folder_;
  std::string nodes_;
  std::string pods_;
  ManualClock clock_;
};

TEST_F(OpenbTest, EqualPodsAreOneShapeAndTypesAreBits) {
  const auto trace = ReadOpenb(nodes_, pods_);
  ASSERT_TRUE(trace) << Describe(trace.error());
  EXPECT_EQ(trace->gpu_milli(), 10'000);
  EXPECT_EQ(trace->pods, (std::vector<std::uint32_t>{0, 1, 2, 0}));
  EXPECT_TRUE(trace->nodes[0].Fits(trace->shapes[1]));
  EXPECT_FALSE(trace->nodes[1].Fits(trace->shapes[1]));
  EXPECT_TRUE(trace->nodes[1].Fits(trace->shapes[0]));
  EXPECT_TRUE(trace->shapes[0].shares());
  EXPECT_FALSE(trace->shapes[1].shares());
}

TEST_F(OpenbTest, PodsThatWouldHaveToBeDrawnForEverAreRefused) {
  std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i < 2'000; ++i) nodes += "n,1,1,8,T4\n";
  const auto pods = Write("tiny.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1\n");
  const auto result = RunOpenb({Write("many.csv", nodes), pods, "fgd", 1}, clock_);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("too small"), std::string::npos);
}

TEST_F(OpenbTest, WrongRowsAreNamed) {
  const auto text = [](const auto& result) { return result ? "" : Describe(result.error()); };
  const std::string head = "cpu_milli,memory_mib,num_gpu,gpu_milli\n";
  EXPECT_NE(text(ReadOpenb(nodes_, Write("x.csv", head + "1,1,1,1001\n"))).find("x.csv:2"),
            std::string::npos);
  EXPECT_NE(text(ReadOpenb(nodes_, Write("x.csv", head + "1,1,1,10\n-1,1,1,1\n"))).find("x.csv:3"),
            std::string::npos);
  EXPECT_NE(text(ReadOpenb(nodes_, Write("x.csv", head + "1,1,0,0\n"))).find("no pod"),
            std::string::npos);
  EXPECT_NE(text(ReadOpenb(nodes_, Write("x.csv", head + "1,1,2,1000\n1,1,2,500\n")))
                .find("x.csv:3: gpu_milli is 500 for 2 GPUs"),
            std::string::npos)
      << "parts of several GPUs: the books of the policies would differ";
  EXPECT_NE(text(ReadOpenb(nodes_, Write("x.csv", head + "1,1,4294967297,1000\n")))
                .find("x.csv:2: num_gpu is 4294967297"),
            std::string::npos);
  EXPECT_NE(text(ReadOpenb(pods_, pods_)).find("gpu"), std::string::npos);
}

TEST_F(OpenbTest, ArrivalsAskForJustOver130Percent) {
  const auto trace = ReadOpenb(nodes_, pods_);
  ASSERT_TRUE(trace);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    std::int64_t demand = 0;
    for (const auto pod : DrawArrivals(*trace, random))
      demand += trace->shapes[pod].total_gpu_milli();
    EXPECT_GE(demand, 13'000);
    EXPECT_LT(demand, 14'000);
  }
}

TEST_F(OpenbTest, TooManyPodsAreThinnedOut) {
  auto trace = ReadOpenb(nodes_, pods_);
  ASSERT_TRUE(trace);
  trace->pods.assign(100, 1);
  Random random(1);
  EXPECT_EQ(DrawArrivals(*trace, random).size(), 13U);
}

TEST_F(OpenbTest, TheSameSeedGivesTheSameResult) {
  for (const auto name : PlacementPolicyNames()) {
    const OpenbOptions options{nodes_, pods_, std::string(name), 5};
    const auto first = RunOpenb(options, clock_);
    const auto second = RunOpenb(options, clock_);
    ASSERT_TRUE(first && second) << name;
    EXPECT_EQ(first->policy, name);
    EXPECT_EQ(first->seed, 5U);
    EXPECT_EQ(first->placed, second->placed);
    EXPECT_EQ(first->failed, second->failed);
    EXPECT_DOUBLE_EQ(first->gpu_allocation_pct, second->gpu_allocation_pct);
    EXPECT_DOUBLE_EQ(first->fragmentation_pct, second->fragmentation_pct);
    EXPECT_GT(first->gpu_allocation_pct, 20);
    EXPECT_LE(first->gpu_allocation_pct + first->fragmentation_pct, 100 + 1e-9);
  }
}

TEST_F(OpenbTest, AnUnknownPolicyIsAnError) {
  const auto result = RunOpenb({nodes_, pods_, "tetris", 1}, clock_);
  ASSERT_FALSE(result);
  EXPECT_NE(Describe(result.error()).find("best-fit"), std::string::npos);
}

// Published mean of ten seeds on the default trace, and how far one of ours may be from it.
TEST(OpenbTraceTest, TheDefaultTraceComesOutAsPublishedAndMusterAhead) {
  const char* folder = std::getenv("MUSTER_TRACES");
  if (folder == nullptr)
    GTEST_SKIP() << "set MUSTER_TRACES to the folder of the public traces, with openb in it";
  const std::string openb = std::string(folder) + "/openb/openb_";
  const auto trace = ReadOpenb(openb + "node_list_gpu_node.csv", openb + "pod_list_default.csv.gz");
  ASSERT_TRUE(trace) << Describe(trace.error());
  const std::map<std::string, double> published = {{"random", 87.47},     {"dot-product", 90.85},
                                                   {"clustering", 91.88}, {"packing", 92.00},
                                                   {"best-fit", 93.08},   {"fgd", 95.39}};
  for (const auto& [policy, percent] : published) {
    const auto result = PlaceOpenb(*trace, policy, 42);
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->gpu_allocation_pct, percent, 1.5) << policy;
  }
  const auto ours = PlaceOpenb(*trace, "muster", 42);
  ASSERT_TRUE(ours);
  EXPECT_GT(ours->gpu_allocation_pct, 95.7);
}

}  // namespace
}  // namespace muster::sim
