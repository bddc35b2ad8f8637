#include "api/log_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder.h"

namespace muster::api {
namespace {

namespace fs = std::filesystem;

class LogReaderTest : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  // As the shim does it: the names move up, the oldest file is dropped.
  void Rotate(int kept = 4) {
    if (kept == 1) fs::remove(path_);
    for (int i = kept - 1; i > 0; --i) {
      const auto from = i == 1 ? path_ : path_ + "." + std::to_string(i - 1);
      if (fs::exists(from)) fs::rename(from, path_ + "." + std::to_string(i));
    }
  }
  static std::string All(LogReader& reader) {
    std::string out;
    for (auto piece = reader.Read(3); !piece.empty(); piece = reader.Read(3)) out += piece;
    return out;
  }
  std::string Tail(std::int64_t lines) {
    LogReader reader(path_);
    reader.Look();
    while (!reader.SeekTail(lines)) {
    }
    return All(reader);
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "0.out";
};

TEST_F(LogReaderTest, ReadsAllKeptFilesFromTheOldest) {
  for (const char* text : {"a\n", "b\n", "c\n"}) {
    Rotate();
    Write(text);
  }
  LogReader reader(path_);
  reader.Look();
  EXPECT_EQ(reader.files(), 3U);
  EXPECT_EQ(reader.bytes(), 6);
  EXPECT_EQ(All(reader), "a\nb\nc\n");
}

TEST_F(LogReaderTest, ALogThatBeginsLaterIsTakenUp) {
  LogReader reader(path_);
  reader.Look();
  EXPECT_EQ(All(reader), "");
  Write("late\n");
  reader.Look();
  EXPECT_EQ(All(reader), "late\n");
}

TEST_F(LogReaderTest, FollowsThroughRotationsAndLosesNothing) {
  Write("0");
  LogReader reader(path_);
  reader.Look();
  std::string got = All(reader), wrote = "0";
  for (int i = 1; i < 30; ++i) {
    Write(std::to_string(i) + "x");  // behind what was read, then moved away
    wrote += std::to_string(i) + "x";
    for (int moves = 0; moves < i % 4; ++moves) {
      Rotate();
      Write(std::to_string(moves));
      wrote += std::to_string(moves);
    }
    reader.Look();
    got += All(reader);
  }
  EXPECT_EQ(got, wrote);
}

TEST_F(LogReaderTest, AFileThatIsDroppedWhileItIsReadIsReadToItsEnd) {
  Write("abcdef");
  LogReader reader(path_);
  reader.Look();
  EXPECT_EQ(reader.Read(3), "abc");
  for (int i = 0; i < 3; ++i) {
    Rotate();
    Write(std::to_string(i));
    reader.Look();
  }
  Rotate(4);
  Write("3");
  reader.Look();
  EXPECT_EQ(All(reader), "def0123");
}

TEST_F(LogReaderTest, WhatWasDroppedUnseenIsMarkedWhereItIsMissing) {
  Write("a\n");
  LogReader reader(path_);
  reader.Look();
  for (int i = 0; i < 6; ++i) {
    Rotate();
    Write(std::to_string(i) + "\n");
  }
  reader.Look();
  const auto got = All(reader);
  EXPECT_TRUE(got.starts_with("a\n[muster: output is missing here")) << got;
  EXPECT_TRUE(got.ends_with("]\n2\n3\n4\n5\n")) << got;
}

TEST_F(LogReaderTest, ASlowReaderHoldsABoundedNumberOfFiles) {
  Write("a\n");
  LogReader reader(path_);
  for (int i = 0; i < 40; ++i) {
    reader.Look();
    Rotate();
    Write(std::to_string(i) + "\n");
  }
  reader.Look();
  EXPECT_LE(reader.files(), 8U);
  const auto got = All(reader);
  EXPECT_TRUE(got.starts_with("a\n[muster: ")) << got;
  EXPECT_TRUE(got.ends_with("]\n33\n34\n35\n36\n37\n38\n39\n")) << got;
}

TEST_F(LogReaderTest, ATailReachesOverTheBordersOfFiles) {
  Write("one\ntwo\n");
  Rotate();
  Write("three\nfo");  // a line that did not fit goes on in the next file
  Rotate();
  Write("ur\nfive\n");
  EXPECT_EQ(Tail(0), "");
  EXPECT_EQ(Tail(1), "five\n");
  EXPECT_EQ(Tail(2), "four\nfive\n");
  EXPECT_EQ(Tail(3), "three\nfour\nfive\n");
  EXPECT_EQ(Tail(4), "two\nthree\nfour\nfive\n");
  EXPECT_EQ(Tail(99), "one\ntwo\nthree\nfour\nfive\n");
}

TEST_F(LogReaderTest, ATailIsFoundInStepsWhenItsLinesAreLong) {
  Write(std::string(std::size_t{6} << 20, 'x') + "\n");
  Rotate();
  Write(std::string(std::size_t{6} << 20, 'y') + "\n");
  LogReader reader(path_);
  reader.Look();
  int steps = 1;
  while (!reader.SeekTail(2)) ++steps;
  EXPECT_GT(steps, 1);
  EXPECT_EQ(reader.Read(1), "x");
}

TEST_F(LogReaderTest, FilesLastWrittenToBeforeThenAreLeftOut) {
  const auto at = [](std::int64_t s) {
    return fs::file_time_type::clock::from_sys(
        std::chrono::sys_time<std::chrono::seconds>(std::chrono::seconds(s)));
  };
  Write("old\n");
  fs::last_write_time(path_, at(1'000'000));
  Rotate();
  Write("new\n");
  fs::last_write_time(path_, at(2'000'000));
  LogReader some(path_), none(path_);
  some.Look();
  some.SkipBefore(1'500'000'000);
  EXPECT_EQ(All(some), "new\n");
  none.Look();
  none.SkipBefore(2'500'000'000);
  EXPECT_EQ(All(none), "");
  Write("more\n");
  EXPECT_EQ(All(none), "more\n");
}

TEST_F(LogReaderTest, AFrozenLogEndsWhereItEndedThen) {
  Write("a\n");
  LogReader reader(path_);
  reader.Look();
  reader.Freeze();
  Write("b\n");
  EXPECT_EQ(All(reader), "a\n");
}

TEST_F(LogReaderTest, WhatIsNoPlainFileIsNotOpened) {
  std::ofstream(folder_ / "secret") << "secret\n";
  fs::create_symlink(folder_ / "secret", path_);
  LogReader reader(path_);
  reader.Look();
  EXPECT_EQ(All(reader), "");
}

TEST_F(LogReaderTest, AnotherReaderGoesOnWhereOneWas) {
  Write("0123");
  LogReader none(path_ + "-missing");
  none.Look();
  EXPECT_EQ(none.Place(), "0");
  LogReader first(path_);
  first.Look();
  EXPECT_EQ(first.Read(3), "012");
  const auto place = first.Place();
  Write("45");
  Rotate();
  Write("67");
  LogReader second(path_);
  second.Look();
  ASSERT_TRUE(second.SeekTo(place));
  EXPECT_EQ(All(second), "34567");
  LogReader third(path_);
  third.Look();
  ASSERT_TRUE(third.SeekTo(second.Place()));
  EXPECT_EQ(All(third), "");
  LogReader fresh(path_);
  fresh.Look();
  ASSERT_TRUE(fresh.SeekTo("0"));
  EXPECT_EQ(All(fresh), "01234567");
}

TEST_F(LogReaderTest, APlaceThatRotationDroppedIsMarkedAndNothingComesTwice) {
  Write("a\n");
  LogReader first(path_);
  first.Look();
  EXPECT_EQ(All(first), "a\n");
  const auto place = first.Place();
  for (const char* text : {"b\n", "c\n"}) {
    Rotate(2);
    Write(text);
  }
  LogReader second(path_);
  second.Look();
  ASSERT_TRUE(second.SeekTo(place));
  const auto got = All(second);
  EXPECT_TRUE(got.starts_with("[muster: output is missing here")) << got;
  EXPECT_TRUE(got.ends_with("]\nb\nc\n")) << got;
}

TEST_F(LogReaderTest, WhatIsNoPlaceIsRefused) {
  Write("a");
  for (const char* word : {"", "1", "1-2", "1-2-3-4", "1-2-x", "-1-2-3", "1--3", "1-2-"}) {
    LogReader reader(path_);
    reader.Look();
    EXPECT_FALSE(reader.SeekTo(word)) << word;
  }
}

}  // namespace
}  // namespace muster::api
