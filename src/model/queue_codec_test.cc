#include "model/queue_codec.h"

#include <gtest/gtest.h>

#include "model/spec_codec.h"

namespace muster::model {
namespace {

TEST(QueueCodec, ReadsTheFileOfTheInterface) {
  const auto queues = DecodeQueues(R"(
queues:
  - name: vision
    quota: {gpus: 16, H100: 8}
    limit: {gpus: 32}
    weight: 2
    kinds: {build: {gpu_types: [T4], idle: 1h}, train: {nodes: {zone: a}}}
    members: {"group:vision": user, "group:vision-leads": queue-admin}
  - name: vision/detection
    quota: {gpus: 4}
)");
  ASSERT_TRUE(queues.has_value()) << Describe(queues.error());
  ASSERT_EQ(queues->size(), 2U);
  const auto& vision = (*queues)[0];
  EXPECT_EQ(vision.quota, (Amounts{{"gpus", 16'000}, {"H100", 8'000}}));
  EXPECT_EQ(vision.limit, (Amounts{{"gpus", 32'000}}));
  EXPECT_EQ(vision.general_weight_milli, 2'000);
  EXPECT_EQ(vision.kinds.at(JobKind::kBuild).idle_ms, 3'600'000);
  EXPECT_EQ(vision.kinds.at(JobKind::kTrain).confinement.nodes.at("zone"), "a");
  EXPECT_EQ(vision.members.at("group:vision-leads"), "queue-admin");
  EXPECT_EQ((*queues)[1].parent, "vision");
  EXPECT_EQ((*queues)[1].created_order, 1);
}

TEST(QueueCodec, CountsEachResourceInItsUnit) {
  const auto queues = DecodeQueues(
      "queues: [{name: a, quota: {gpus: 0.5, cpus: 2, memory: 1Gi, fpga: 3, virtual: 1.5, "
      "A100: unlimited}, weight: {default: 2, gpus: 0.5, fpga: 3}}]");
  ASSERT_TRUE(queues.has_value()) << Describe(queues.error());
  const auto& queue = (*queues)[0];
  EXPECT_EQ(queue.quota, (Amounts{{"gpus", 500},
                                  {"cpus", 2'000},
                                  {"memory", std::int64_t{1} << 30},
                                  {"fpga", 3},
                                  {"virtual", 1'500},
                                  {"A100", kUnlimited}}));
  EXPECT_EQ(queue.general_weight_milli, 2'000);
  EXPECT_EQ(queue.weight, (Amounts{{"gpus", 500}, {"fpga", 3'000}}));
}

TEST(QueueCodec, AParentMayStandBehindItsChildAndInAnotherDocument) {
  EXPECT_TRUE(DecodeQueues("queues: [{name: a/b}]\n---\nqueues: [{name: a}]").has_value());
}

TEST(QueueCodec, WarnsWhenChildrenArePromisedMoreThanTheirParent) {
  const auto decoded = DecodeSpec(
      "queues:\n- {name: a, quota: {gpus: 4}}\n- {name: a/b, quota: {gpus: 3}}\n"
      "- {name: a/c, quota: {gpus: unlimited}}\n");
  EXPECT_FALSE(decoded.problems.HasErrors());
  ASSERT_EQ(decoded.problems.Sorted().size(), 1U);
  EXPECT_EQ(decoded.problems.Sorted()[0].message,
            "the queues under `a` are promised unlimited gpus, more than its own quota of 4");
}

}  // namespace
}  // namespace muster::model
