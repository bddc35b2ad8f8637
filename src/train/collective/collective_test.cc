#include "train/collective/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "train/collective/half.h"
#include "train/collective/sum.h"
#include "train/mesh/test_gang.h"

namespace muster::train {
namespace {

const std::vector<std::size_t> kSizes{0, 1, 5, 16, 17, 1000, 65'537, 300'001};

std::vector<float> Values(std::size_t size, int seed) {
  Random random(static_cast<std::uint64_t>(seed) + 1);
  std::vector<float> out(size);
  for (auto& v : out) v = static_cast<float>(random.Between(-1'000'000, 1'000'000)) * 1e-3F;
  return out;
}

std::vector<double> Total(std::size_t size, int ranks) {
  std::vector<double> total(size);
  for (int r = 0; r < ranks; ++r) {
    const auto values = Values(size, r);
    for (std::size_t i = 0; i < size; ++i) total[i] += static_cast<double>(values[i]);
  }
  return total;
}

void ExpectNear(std::span<const float> got, const std::vector<double>& expected, double error,
                const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], error) << what << " at " << i;
  }
}

// The same bits for everybody: by the values of rank 0, which all others get.
void ExpectSameEverywhere(Collective& collective, std::span<const float> values) {
  std::vector<float> first(values.begin(), values.end());
  ASSERT_TRUE(collective.Broadcast(std::as_writable_bytes(std::span(first)), 0));
  if (!values.empty()) {
    EXPECT_EQ(std::memcmp(first.data(), values.data(), values.size_bytes()), 0);
  }
}

// `where`: 0 in shared memory, 1 elsewhere.
void CheckAllReduce(Worker& worker, Collective& collective, Algorithm algorithm, int where) {
  const int ranks = static_cast<int>(worker.all.size());
  for (const std::size_t size : kSizes) {
    std::vector<float> elsewhere = Values(size, worker.rank);
    std::span<float> values = elsewhere;
    if (where == 0) {
      const auto memory = worker.mesh->memory();
      values = {reinterpret_cast<float*>(memory.data()), size};
      std::ranges::copy(elsewhere, values.begin());
    }
    const auto done = collective.AllReduce(values, algorithm);
    ASSERT_TRUE(done) << done.error().message;
    ExpectNear(values, Total(size, ranks), 0.01, NameOf(algorithm));
    ExpectSameEverywhere(collective, values);
  }
}

void CheckOthers(Worker& worker, Collective& collective) {
  const int ranks = static_cast<int>(worker.all.size());
  for (const std::size_t size : kSizes) {
    auto values = Values(size, worker.rank);
    ASSERT_TRUE(collective.ReduceScatter(values));
    const auto total = Total(size, ranks);
    const auto mine = collective.Part(values, worker.rank);
    const auto from = mine.data() - values.data();
    ExpectNear(mine, {total.begin() + from, total.begin() + from + static_cast<long>(mine.size())},
               0.01, "reduce-scatter");
    ASSERT_TRUE(collective.AllGather(values));
    ExpectNear(values, total, 0.01, "all-gather");
    for (int root = 0; root < ranks; ++root) {
      values = Values(size, worker.rank);
      ASSERT_TRUE(collective.Broadcast(std::as_writable_bytes(std::span(values)), root));
      EXPECT_EQ(values, Values(size, root));
    }
    ASSERT_TRUE(collective.Barrier());
  }
}

struct Gang {
  std::string name;
  std::vector<std::string> hosts;  // by rank; empty: no memory is shared
  bool encrypt = false;
};
void PrintTo(const Gang& gang, std::ostream* out) { *out << gang.name; }

std::vector<Gang> Gangs() {
  std::vector<Gang> gangs;
  for (std::size_t n = 1; n <= 5; ++n) {
    gangs.push_back({"shared" + std::to_string(n), std::vector<std::string>(n, "a")});
    gangs.push_back({"tcp" + std::to_string(n), std::vector<std::string>(n)});
  }
  gangs.push_back({"two_and_two", {"a", "a", "b", "b"}});
  gangs.push_back({"uneven", {"a", "b", "a", "c", "a"}});
  gangs.push_back({"encrypted", {"a", "b", "a"}, true});
  return gangs;
}

class CollectiveTest : public testing::TestWithParam<Gang> {};
INSTANTIATE_TEST_SUITE_P(Gangs, CollectiveTest, testing::ValuesIn(Gangs()),
                         [](const auto& gang) { return gang.param.name; });

std::vector<MeshOptions> OptionsOf(const Gang& gang) {
  std::vector<MeshOptions> out(gang.hosts.size(), TestOptions());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].memory_bytes = 2 << 20;
    out[i].host = gang.hosts[i].empty() ? "a" : gang.hosts[i];
    out[i].share_memory = !gang.hosts[i].empty();
    out[i].encrypt = gang.encrypt;
  }
  return out;
}

TEST_P(CollectiveTest, EveryAlgorithmGivesEveryMemberTheSameSum) {
  TestGang gang(OptionsOf(GetParam()), [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    auto collective = Collective::Open(*fabric);
    ASSERT_TRUE(collective);
    for (const auto algorithm :
         {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
      for (const int where : {0, 1}) CheckAllReduce(worker, **collective, algorithm, where);
    }
    CheckOthers(worker, **collective);
    ASSERT_TRUE((*collective)->Probe());
    CheckAllReduce(worker, **collective, Algorithm::kAuto, 0);
    worker.End();
  });
  gang.EndAll();
}

// The mean over many rounds comes nearer than one rounding: nothing is lost for good.
TEST_P(CollectiveTest, HalfOnTheWireLosesNothingForGood) {
  TestGang gang(OptionsOf(GetParam()), [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    auto collective = Collective::Open(*fabric);
    ASSERT_TRUE(collective);
    const int ranks = static_cast<int>(worker.all.size());
    const std::size_t size = 1001;
    std::vector<float> residual(size);
    std::vector<double> mean(size);
    const int rounds = 64;
    for (int round = 0; round < rounds; ++round) {
      auto values = Values(size, worker.rank);
      ASSERT_TRUE((*collective)->AllReduceHalf(values, residual));
      ExpectNear(values, Total(size, ranks), 4.0 * ranks, "half");  // 11 bits of some thousands
      ExpectSameEverywhere(**collective, values);
      for (std::size_t i = 0; i < size; ++i) mean[i] += static_cast<double>(values[i]) / rounds;
    }
    const std::vector<float> means(mean.begin(), mean.end());
    ExpectNear(means, Total(size, ranks), 8.0 * ranks / rounds + 0.01, "mean of halves");
    worker.End();
  });
  gang.EndAll();
}

// In the midst of a ring with chunks expected ahead: memory may go away at once, and the rest goes
// on in the next generation.
TEST(CollectiveLossTest, TheDeathOfAMemberEndsACollectiveAndTheOthersGoOn) {
  for (const char* hosts : {"aaa", "abc", "aab"}) {
    std::vector<MeshOptions> options(3, TestOptions());
    for (std::size_t i = 0; i < 3; ++i) options[i].host = hosts[i];
    TestGang gang(options, [](Worker& worker) {
      {
        const auto fabric = worker.Enter(1);
        ASSERT_TRUE(fabric);
        auto collective = Collective::Open(*fabric);
        ASSERT_TRUE(collective);
        SendLine(worker.line, "ready");
        if (worker.rank == 2) ReadLine(worker.line);  // never comes
        for (const auto algorithm : {Algorithm::kRing, Algorithm::kDirect}) {
          std::vector<float> values(3'000'000, 1.0F);
          EXPECT_FALSE((*collective)->AllReduce(values, algorithm));
        }
      }
      EXPECT_EQ(worker.inbox->NextLost().first, worker.all[2].id);
      worker.all.pop_back();
      const auto fabric = worker.Enter(2);
      ASSERT_TRUE(fabric);
      auto collective = Collective::Open(*fabric);
      ASSERT_TRUE(collective);
      std::vector<float> values(1'000'000, 1.0F);
      ASSERT_TRUE((*collective)->AllReduce(values, Algorithm::kRing));
      EXPECT_EQ(values, std::vector<float>(values.size(), 2.0F));
      worker.End();
    });
    for (int i = 0; i < 3; ++i) ReadLine(gang.line(i));
    gang.Signal(2, SIGKILL);
    gang.Await(2);
    gang.EndAll();
  }
}

// As in a view that somebody leaves: nobody waits for who is in the fabric and not in the
// collective.
TEST(CollectiveMembersTest, TheFirstMembersOfAFabricGoOnWithoutTheLast) {
  std::vector<MeshOptions> options(4, TestOptions());
  for (std::size_t i = 0; i < 4; ++i) options[i].host = "aabb"[i];
  TestGang gang(options, [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    if (worker.rank == 3) return worker.End();
    auto collective = Collective::Open(*fabric, {.members = 3});
    ASSERT_TRUE(collective);
    ASSERT_TRUE((*collective)->Probe());
    std::vector<float> values(1000, 1.0F);
    ASSERT_TRUE((*collective)->AllReduce(values));
    EXPECT_EQ(values, std::vector<float>(values.size(), 3.0F));
    EXPECT_EQ((*collective)->hosts(), (std::vector<int>{0, 0, 2}));
    worker.End();
  });
  gang.EndAll();
}

TEST(CostModelTest, PicksBySizeAndTopology) {
  const CostModel model;
  const std::size_t small = 64, large = 64 << 20;
  EXPECT_EQ(model.Pick(large, {0, 0, 0, 0}), Algorithm::kDirect);
  EXPECT_EQ(model.Pick(large, {0, 1, 2, 3}), Algorithm::kRing);
  EXPECT_EQ(model.Pick(large, {0, 0, 2, 2}), Algorithm::kHierarchical);
  EXPECT_EQ(model.Pick(small, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
            Algorithm::kTree);
}

TEST(SumTest, BitsAreThoseOfOneAdditionAfterTheOther) {
  for (const std::size_t count : {1U, 2U, 3U, 4U, 7U}) {
    for (const std::size_t size : {1U, 15U, 16U, 33U, 5000U}) {
      std::vector<std::vector<float>> parts;
      std::vector<const float*> from;
      for (std::size_t p = 0; p < count; ++p)
        parts.push_back(Values(size + 1, static_cast<int>(p)));
      for (const auto& part : parts) from.push_back(part.data() + 1);  // not aligned
      std::vector<float> expected(parts[0].begin() + 1, parts[0].end());
      for (std::size_t p = 1; p < count; ++p) {
        for (std::size_t i = 0; i < size; ++i) expected[i] += parts[p][i + 1];
      }
      const std::span into(parts.back().data() + 1, size);
      SumOf(into, from);
      EXPECT_TRUE(std::ranges::equal(into, expected)) << count << " parts of " << size;
    }
  }
}

TEST(HalfTest, EveryHalfComesBackAndInstructionsGiveTheSameBits) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats(halves.size());
  FromHalf(halves, floats.data());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float one = FloatOf(halves[i]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(one), std::bit_cast<std::uint32_t>(floats[i])) << i;
    if (std::isnan(one)) continue;
    ASSERT_EQ(HalfOf(one), halves[i]);
  }
  // Between, around and beyond them.
  Random random(3);
  std::vector<float> many{65504,      65519.99F,
                          65520,      1e30F,
                          0x1p-25F,   0x1.000002p-25F,
                          0x1.8p-24F, std::numeric_limits<float>::infinity(),
                          -0.0F,      std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < 200'000; ++i) {
    many.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.Next())));
  }
  for (const float value : floats) {
    many.push_back(std::nextafter(value, 1e9F));
    many.push_back(value * 1.00048828125F);
  }
  while (many.size() % 8 != 0) many.push_back(0);
  std::vector<std::uint16_t> rounded(many.size());
  ToHalf(many, rounded.data());
  for (std::size_t i = 0; i < many.size(); ++i) {
    ASSERT_EQ(rounded[i], HalfOf(many[i])) << std::bit_cast<std::uint32_t>(many[i]);
  }
}

}  // namespace
}  // namespace muster::train
