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

TEST(RuntimeHistory, WhatComesAgainAndAgainOutlivesWhatCameOnce) {
  RuntimeHistory history;
  for (int i = 0; i < 60'000; ++i) {
    history.Add({"ben", "vision", "once-" + std::to_string(i) + "x", 1'000}, 100);
    if (i % 1'000 == 0) history.Add(kTrain, 10);
  }
  EXPECT_EQ(history.Guess(kTrain)->likely_ms, 10);
}

TEST(RuntimeHistory, MeasuresByWhichFactorItsGuessesWereWrong) {
  RuntimeHistory history;
  history.Add(kTrain, 900);
  history.Add(kTrain, 100, {200, 0, 1});  // half as long
  history.Add(kTrain, 100, {100, 0, 1});
  EXPECT_FALSE(history.ErrorOf(kTrain, 1).has_value()) << "two are too few";
  history.Add(kTrain, 480, {160, 0, 1});  // three times as long
  const auto error = history.ErrorOf(kTrain, history.Guess(kTrain)->from);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->factor_milli, 2'000);
  EXPECT_EQ(error->guesses, 3);
}

TEST(RuntimeHistory, AGuessFromLittleLikenessIsNotMeasuredByThoseFromMuch) {
  RuntimeHistory history;
  for (int i = 0; i < 9; ++i) history.Add(kTrain, 100, {100, 0, 1});
  for (int i = 0; i < 3; ++i) history.Add(kTrain, 100, {400, 0, 5});
  const RuntimeKind newcomer{"cem", "speech", "asr", 8'000};
  const auto guess = history.Guess(newcomer);
  ASSERT_TRUE(guess.has_value());
  EXPECT_EQ(guess->from, 5U);
  EXPECT_EQ(history.ErrorOf(newcomer, guess->from)->factor_milli, 4'000);
  EXPECT_EQ(history.ErrorOf(kTrain, 1)->factor_milli, 1'000);
  EXPECT_FALSE(history.ErrorOf(kTrain, 0).has_value());
  EXPECT_FALSE(history.ErrorOf(kTrain, 6).has_value());
}

TEST(RuntimeHistory, TheErrorIsThatOfTheLatestGuesses) {
  RuntimeHistory history;
  for (int i = 0; i < 100; ++i) history.Add(kTrain, 100, {500, 0, 1});
  for (int i = 0; i < 24; ++i) history.Add(kTrain, 0, {0, 0, 1});
  EXPECT_EQ(history.ErrorOf(kTrain, 1)->factor_milli, 1'000);
  EXPECT_EQ(history.ErrorOf(kTrain, 1)->guesses, 24);
}

}  // namespace
}  // namespace muster::engine
