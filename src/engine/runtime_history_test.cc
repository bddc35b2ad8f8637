#include "engine/runtime_history.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

const RuntimeKind kTrain{"ana", "vision", "train-17", 8'000};

TEST(RuntimeHistory, KnowsNothingAtFirst) {
  EXPECT_FALSE(RuntimeHistory().Guess(kTrain).has_value());
}

TEST(RuntimeHistory, TheMiddleOfWhatTheSameUserRanUnderThatName) {
  RuntimeHistory history;
  for (const auto ms : {10, 30, 20}) history.Add({"ana", "vision", "train-3", 8'000}, ms);
  for (int i = 0; i < 20; ++i) history.Add({"ben", "vision", "train-3", 8'000}, 900);
  const auto guess = history.Guess(kTrain);
  ASSERT_TRUE(guess.has_value());
  EXPECT_EQ(guess->likely_ms, 20);
  EXPECT_EQ(guess->jobs, 3);
}

TEST(RuntimeHistory, WidensStepByStep) {
  RuntimeHistory history;
  for (int i = 0; i < 8; ++i) history.Add({"cem", "speech", "asr", 8'000}, 400);
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 400) << "as many GPUs";
  for (int i = 0; i < 8; ++i) history.Add({"ben", "vision", "seg", 8'000}, 300);
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 300) << "of its queue";
  for (int i = 0; i < 5; ++i) history.Add({"ana", "vision", "seg", 8'000}, 200);
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 200) << "of its user";
  for (int i = 0; i < 3; ++i) history.Add({"ana", "vision", "train_4", 1'000}, 100);
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 100) << "of its name";
}

TEST(RuntimeHistory, ForgetsWhatIsLongAgo) {
  RuntimeHistory history;
  for (int i = 0; i < 100; ++i) history.Add(kTrain, 1'000);
  for (int i = 0; i < 24; ++i) history.Add(kTrain, 10);
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 10);
}

}  // namespace
}  // namespace muster::engine
