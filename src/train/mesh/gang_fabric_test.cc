#include "train/mesh/gang_fabric.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "train/mesh/test_gang.h"

namespace muster::train {
namespace {

constexpr std::size_t kBytes = 64;  // of an offer
constexpr Tag kSignal = 1;          // offers are behind it

// Offers of worker 0 lie side by side in its memory; here the first of them lies.
std::span<std::byte> Place(Worker& worker, std::size_t index) {
  return worker.mesh->memory().subspan(index * kBytes, kBytes);
}
Tag TagOf(std::size_t index) { return (index + 1) << 23U; }  // as buckets have them

void Signal(Fabric& fabric, int peer, Tag tag) {
  static constexpr std::byte kHere{1};
  fabric.Offer(peer, tag, std::span(&kHere, 1));
}
void Await(Fabric& fabric, int peer, Tag tag) {
  std::byte here{};
  const auto came = fabric.Fetch(peer, tag, std::span(&here, 1));
  ASSERT_TRUE(came) << came.error().message;
}

// Where it lies in the memory of the peer, seen from where the first offer does; what came over the
// connection lies anywhere else.
std::ptrdiff_t LiesAt(Fabric& fabric, std::size_t index, const std::byte* first) {
  const auto seen = fabric.Look(0, TagOf(index));
  EXPECT_TRUE(seen) << (seen ? "" : seen.error().message);
  return seen ? seen->data() - first : -1;
}

// As in a step of a model with several hundred buckets, whose owner is behind.
TEST(GangFabricTest, HundredsOfOffersThatNobodyHasLookedAtGoThroughSharedMemory) {
  constexpr std::size_t kOffers = 500;
  TestGang gang({TestOptions(), TestOptions()}, [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    if (worker.rank == 0) {
      for (std::size_t i = 0; i < kOffers; ++i) fabric->Offer(1, TagOf(i), Place(worker, i));
      Signal(*fabric, 1, kSignal);
      for (std::size_t i = 0; i < kOffers; ++i) EXPECT_TRUE(fabric->Taken(1, TagOf(i)));
    } else {
      Await(*fabric, 0, kSignal);
      const auto first = fabric->Look(0, TagOf(0));
      ASSERT_TRUE(first);
      std::size_t sent = 0;
      for (std::size_t i = 0; i < kOffers; ++i) {
        const auto at = LiesAt(*fabric, i, first->data());
        sent += at == static_cast<std::ptrdiff_t>(i * kBytes) ? 0U : 1U;
        fabric->Done(0, TagOf(i));
      }
      EXPECT_EQ(sent, 0U) << "went over the connection";
    }
    worker.End();
  });
  gang.EndAll();
}

// Whoever offers asks for half of it while it goes on, and for the rest at the end.
TEST(GangFabricTest, WhatThePeerIsDoneWithMakesRoomBeforeItIsAskedFor) {
  constexpr std::size_t kOffers = 4 * kPairSlots;
  auto options = TestOptions();
  options.memory_bytes = kOffers * kBytes;
  TestGang gang({options, options}, [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    if (worker.rank == 0) {
      for (std::size_t i = 0; i < kOffers; i += 2) {
        fabric->Offer(1, TagOf(i), Place(worker, i));
        fabric->Offer(1, TagOf(i + 1), Place(worker, i + 1));
        std::thread asking([&] { EXPECT_TRUE(fabric->Taken(1, TagOf(i + 1))); });
        Await(*fabric, 1, kSignal + i);
        asking.join();
      }
      for (std::size_t i = 0; i < kOffers; i += 2) EXPECT_TRUE(fabric->Taken(1, TagOf(i)));
    } else {
      const auto first = fabric->Look(0, TagOf(0));
      ASSERT_TRUE(first);
      std::size_t sent = 0;
      for (std::size_t i = 0; i < kOffers; ++i) {
        const auto at = LiesAt(*fabric, i, first->data());
        sent += at == static_cast<std::ptrdiff_t>(i * kBytes) ? 0U : 1U;
        fabric->Done(0, TagOf(i));
        if (i % 2 == 1) Signal(*fabric, 0, kSignal + i - 1);
      }
      EXPECT_EQ(sent, 0U) << "went over the connection";
      for (std::size_t i = 0; i < kOffers; i += 2) EXPECT_TRUE(fabric->Taken(0, kSignal + i));
    }
    worker.End();
  });
  gang.EndAll();
}

}  // namespace
}  // namespace muster::train
