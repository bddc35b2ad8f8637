#include "train/exact/shard_program.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"

namespace muster::train {
namespace {

// Runs a program on numbers, as a worker runs it on gradients.
std::map<ShardRange, float> SumsOf(const ShardProgram& program, const std::vector<float>& shards) {
  std::vector<float> buffers(static_cast<std::size_t>(program.buffers));
  std::map<ShardRange, float> out;
  for (const auto& compute : program.computes) {
    buffers.at(static_cast<std::size_t>(compute.buffer)) =
        shards[static_cast<std::size_t>(compute.shard)];
    for (const auto& add : compute.adds) {
      buffers.at(static_cast<std::size_t>(add.into)) +=
          buffers.at(static_cast<std::size_t>(add.from));
    }
    if (compute.node < 0) continue;
    const auto& node = program.nodes[static_cast<std::size_t>(compute.node)];
    out[node.range] = buffers.at(static_cast<std::size_t>(node.buffer));
  }
  // What was complete stays as it was to the end, since others read it until then.
  for (const auto& node : program.nodes) {
    EXPECT_EQ(out.at(node.range), buffers.at(static_cast<std::size_t>(node.buffer)));
  }
  return out;
}

std::vector<float> Draw(Random& random, int count) {
  std::vector<float> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(random.Between(-1'000'000, 1'000'000)) * 1e-3F);
  }
  return out;
}

TEST(ShardProgramTest, ProgramsOfAnyNumberOfWorkersGiveTheSumOfOne) {
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    const int shards = static_cast<int>(random.Between(1, 20));
    const auto values = Draw(random, shards);
    const auto total = [&](int workers) {
      std::map<ShardRange, float> sums;
      std::vector<ShardRange> cover;
      for (const auto& run : RunsFor(workers, shards)) {
        for (const auto& [node, sum] : SumsOf(ProgramFor(run, shards, true), values)) {
          sums[node] = sum;
          cover.push_back(node);
        }
      }
      for (const auto& sum : SumsOver(cover, shards).sums) {
        sums[sum.node] = sums.at(sum.left) + sums.at(sum.right);
      }
      return sums.at({0, shards});
    };
    for (int workers = 2; workers <= shards + 2; ++workers) EXPECT_EQ(total(workers), total(1));
  }
}

TEST(ShardProgramTest, FewGradientsAreHeldAtOnce) {
  EXPECT_EQ(ProgramFor({0, 8}, 8, true).buffers, 4);
  EXPECT_EQ(ProgramFor({0, 64}, 64, true).buffers, 7);
  EXPECT_EQ(ProgramFor({3, 4}, 8, true).buffers, 1);
  EXPECT_EQ(ProgramFor({1, 7}, 8, true).buffers, 4);
  EXPECT_EQ(ProgramFor({0, 64}, 64, false).buffers, 2);
  EXPECT_EQ(ProgramFor({5, 5}, 8, true).buffers, 0);
}

TEST(ShardProgramTest, FastModeGivesOneSumAWorker) {
  const auto sums = SumsOf(ProgramFor({1, 5}, 8, false), {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums.at({1, 5}), 10);
}

TEST(ShardProgramTest, SeveralBatchesGiveOneSumInTwoBuffers) {
  for (const int batches : {1, 3, 7}) {
    const auto program = ProgramOver({1, 5}, batches);
    EXPECT_EQ(SumsOf(program, {0, 1, 2, 3, 4, 5, 6, 7}).at({1, 5}),
              static_cast<float>(10 * batches));
    EXPECT_EQ(program.buffers, 2);
    ASSERT_EQ(program.computes.size(), 4U * static_cast<unsigned>(batches));
    for (std::size_t i = 0; i < program.computes.size(); ++i) {
      EXPECT_EQ(program.computes[i].batch, static_cast<int>(i / 4));
      EXPECT_EQ(program.computes[i].shard, static_cast<int>(1 + i % 4));
    }
  }
  EXPECT_EQ(SumsOf(ProgramOver({2, 3}, 3), {0, 0, 5}).at({2, 3}), 15);
  EXPECT_TRUE(ProgramOver({5, 5}, 3).nodes.empty());
}

}  // namespace
}  // namespace muster::train
