#include "train/members/members.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/members/folder_store.h"
#include "train/members/keys.h"
#include "train/mesh/test_gang.h"

namespace muster::train {
namespace {

// What is held of a step, by whomever.
Holding PartAfter(std::int64_t step) {
  Holding holding;
  holding.step = step;
  return holding;
}

// A later step may be held by one alone, and be lost with it before it was handed over.
TEST(MembersTest, AfterALossAllGoOnFromTheStepThatEverybodyHasCompleted) {
  const TempFolder folder;
  FolderStore store(folder / "store");
  SystemClock clock;
  std::atomic<bool> leave{false};
  MembersOptions options;
  options.mesh = TestOptions();
  options.recoverable = [](const Holdings& holdings, std::int64_t step) {
    return holdings.size() == 2 && step >= 4;
  };
  options.newest_checkpoint = []() -> Result<std::optional<std::pair<std::string, std::int64_t>>> {
    return std::nullopt;
  };
  auto founder = Members::Open(options, store, clock, leave);
  ASSERT_TRUE(founder);
  auto founded = (*founder)->Next({});
  ASSERT_TRUE(founded);

  // The other one is this test.
  Inbox inbox;
  auto other = Mesh::Open(TestOptions(), inbox.Events());
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->Connect((*founder)->mesh().self()));
  (*other)->Tell((*founder)->id(), Encode(JoinMessage{(*other)->self(), false}));
  for (int turn = 0; turn < 30'000 && !(*founder)->ChangeWanted(); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE((*founder)->ChangeWanted());
  const auto joined = (*founder)->Next({true, 0, {}});
  ASSERT_TRUE(joined);
  ASSERT_EQ(joined->change.view.members.size(), 2U);

  const auto generation = joined->change.view.generation;
  const StoppedMessage stopped{generation, false, 5, {PartAfter(4), PartAfter(5)}, {}};
  (*other)->Tell((*founder)->id(), Encode(stopped));
  const auto next = (*founder)->Next({false, 4, {PartAfter(4)}});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->change.view.generation, generation + 1);
  EXPECT_EQ(next->change.view.step, 4);
}

}  // namespace
}  // namespace muster::train
