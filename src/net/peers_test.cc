#include "net/peers.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

TEST(Peers, OneMachineIsOnePeerWhateverItsAddressInItsNetwork) {
  EXPECT_EQ(PeerKey(std::nullopt, "2001:db8::1"), PeerKey(std::nullopt, "2001:db8::ffff:2"));
  EXPECT_NE(PeerKey(std::nullopt, "2001:db8::1"), PeerKey(std::nullopt, "2001:db8:0:1::1"));
  EXPECT_NE(PeerKey(std::nullopt, "10.0.0.1"), PeerKey(std::nullopt, "10.0.0.2"));
  EXPECT_EQ(PeerKey(Peer{.uid = 7, .pid = 1}, ""), PeerKey(Peer{.uid = 7, .pid = 2}, ""));
  EXPECT_NE(PeerKey(Peer{.uid = 7}, ""), PeerKey(Peer{.uid = 8}, ""));
}

TEST(Peers, CountsConnectionsOfEachApart) {
  Peers peers;
  EXPECT_TRUE(peers.Enter("a", 2, 0));
  EXPECT_TRUE(peers.Enter("a", 2, 0));
  EXPECT_FALSE(peers.Enter("a", 2, 0));
  EXPECT_TRUE(peers.Enter("b", 2, 0));
  peers.Leave("a");
  EXPECT_TRUE(peers.Enter("a", 2, 0));
  peers.Leave("a");
  peers.Leave("a");
  peers.Leave("b");
  EXPECT_EQ(peers.size(), 0U);
}

TEST(Peers, AllowsABurstThenTheRateAndSaysHowLongToWait) {
  Peers peers;
  const RateLimit rate{.per_minute = 120, .burst = 3};
  peers.Enter("a", 1, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(peers.Ask("a", rate, 1000), 0);
  EXPECT_EQ(peers.Ask("a", rate, 1000), 500);
  EXPECT_EQ(peers.Ask("a", rate, 1499), 1);
  EXPECT_EQ(peers.Ask("a", rate, 1500), 0);
  EXPECT_EQ(peers.Ask("a", rate, 1500), 500);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(peers.Ask("a", rate, 1'000'000'000'000), 0);  // no more
  EXPECT_GT(peers.Ask("a", rate, 1'000'000'000'000), 0);
  EXPECT_EQ(peers.Ask("a", {}, 1'000'000'000'000), 0);
}

TEST(Peers, RemembersABucketLongerThanTheConnectionAndForgetsItOnceFull) {
  Peers peers;
  const RateLimit rate{.per_minute = 60, .burst = 1};
  peers.Enter("a", 1, 0);
  EXPECT_EQ(peers.Ask("a", rate, 0), 0);
  peers.Leave("a");
  peers.Sweep(500);
  EXPECT_EQ(peers.size(), 1U);
  peers.Enter("a", 1, 500);
  EXPECT_EQ(peers.Ask("a", rate, 500), 500);
  peers.Leave("a");
  peers.Sweep(2000);
  EXPECT_EQ(peers.size(), 0U);
}

TEST(Peers, AreNeverMoreThanTheBound) {
  Peers peers;
  for (std::size_t i = 0; i < Peers::kMostPeers; ++i) {
    ASSERT_TRUE(peers.Enter(std::to_string(i), 1, 0));
  }
  EXPECT_FALSE(peers.Enter("one more", 1, 0));
  peers.Leave("7");
  EXPECT_TRUE(peers.Enter("one more", 1, 0));
}

}  // namespace
}  // namespace muster::net
