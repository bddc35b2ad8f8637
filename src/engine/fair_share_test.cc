#include "engine/fair_share.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/resources.h"

namespace muster::engine {
namespace {

using model::kUnlimited;

constexpr std::int64_t kUnit = 1000;

ShareClaim Claim(std::int64_t quota, std::int64_t weight, std::int64_t request) {
  ShareClaim claim;
  claim.quota = quota;
  claim.limit = kUnlimited;
  claim.weight = weight;
  claim.request = request;
  return claim;
}

std::vector<std::int64_t> Divide(std::int64_t total, std::vector<ShareClaim> claims) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].created_order = static_cast<std::int64_t>(i);
  }
  ShareDivider().Divide(total, kUnit, claims);
  std::vector<std::int64_t> shares;
  for (const auto& claim : claims) shares.push_back(claim.share);
  return shares;
}

using Shares = std::vector<std::int64_t>;

TEST(FairShare, GivesEveryQuotaFirstEvenIfTogetherTheyExceedWhatThereIs) {
  EXPECT_EQ(Divide(4000, {Claim(3000, 1, 9000), Claim(3000, 1, 9000)}), (Shares{3000, 3000}));
}

TEST(FairShare, NeverGivesMoreThanWasAskedFor) {
  EXPECT_EQ(Divide(8000, {Claim(5000, 1, 1000), Claim(0, 1, 2000)}), (Shares{1000, 2000}));
}

TEST(FairShare, DividesWhatIsOverByWeight) {
  EXPECT_EQ(Divide(8000, {Claim(0, 3, 9000), Claim(0, 1, 9000)}), (Shares{6000, 2000}));
}

TEST(FairShare, HandsOnWhatSomebodyCannotUse) {
  EXPECT_EQ(Divide(8000, {Claim(0, 1, 1000), Claim(0, 1, 9000), Claim(0, 1, 9000)}),
            (Shares{1000, 4000, 3000}));
}

TEST(FairShare, GivesWholeUnitsAndTheLastOneToTheOlder) {
  EXPECT_EQ(Divide(3000, {Claim(0, 1, 9000), Claim(0, 1, 9000)}), (Shares{2000, 1000}));
}

TEST(FairShare, GivesTheLastUnitToWhomTheMostWasCutOff) {
  EXPECT_EQ(Divide(4000, {Claim(0, 1, 9000), Claim(0, 2, 9000)}), (Shares{1000, 3000}));
}

TEST(FairShare, ServesAHigherPriorityBandFirst) {
  auto low = Claim(0, 9, 9000), high = Claim(0, 1, 3000);
  high.priority = 1;
  EXPECT_EQ(Divide(4000, {low, high}), (Shares{1000, 3000}));
}

TEST(FairShare, StopsAtTheLimit) {
  auto capped = Claim(0, 9, 9000);
  capped.limit = 2000;
  EXPECT_EQ(Divide(8000, {capped, Claim(0, 1, 9000)}), (Shares{2000, 6000}));
}

TEST(FairShare, GivesNothingOverQuotaToWeightZero) {
  EXPECT_EQ(Divide(8000, {Claim(1000, 0, 9000), Claim(0, 1, 2000)}), (Shares{1000, 2000}));
}

TEST(FairShare, TakesAnUnlimitedQuotaForTheWholeAmount) {
  EXPECT_EQ(Divide(8000, {Claim(kUnlimited, 1, 20'000), Claim(0, 1, 9000)}), (Shares{8000, 0}));
}

TEST(FairShare, ReturnsWhatNobodyTook) {
  std::vector<ShareClaim> claims = {Claim(1000, 1, 2000)};
  EXPECT_EQ(ShareDivider().Divide(5000, kUnit, claims), 3000);
  EXPECT_EQ(claims[0].share, 2000);
}

TEST(FairShare, DividesOnlyWhatIsOverOnTopOfWhatEachHas) {
  std::vector<ShareClaim> claims = {Claim(0, 1, 9000), Claim(0, 1, 9000)};
  claims[0].share = 2000;
  EXPECT_EQ(ShareDivider().DivideOver(4000, kUnit, claims), 0);
  EXPECT_EQ(claims[0].share, 4000);
  EXPECT_EQ(claims[1].share, 2000);
}

TEST(FairShare, DoesNotOverflowWithHugeWeightsAndBytes) {
  const std::int64_t tib = 1LL << 40;
  std::vector<ShareClaim> claims = {Claim(0, 1'000'000'000, 1000 * tib),
                                    Claim(0, 3'000'000'000, 1000 * tib)};
  EXPECT_EQ(ShareDivider().Divide(1000 * tib, 1, claims), 0);
  EXPECT_EQ(claims[0].share, 250 * tib);
  EXPECT_EQ(claims[1].share, 750 * tib);
}

}  // namespace
}  // namespace muster::engine
