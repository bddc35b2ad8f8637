#include "train/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : root_(temp_ / "checkpoints"), folder_(root_) {}

  static constexpr CheckpointView kView{3, 0xabcdef};

  static CheckpointPart Part(std::int64_t step, int parts, int part, CheckpointView view = kView) {
    CheckpointPart out{.step = step,
                       .view = view,
                       .parts = parts,
                       .part = part,
                       .state_floats = 2,
                       .run = "model mlp:8,1; batch 64",
                       .buckets = {{40, 100}, {0, 40}}};
    std::size_t floats = 0;
    for (const auto& bucket : out.buckets) floats += PartOf(bucket, parts, part).size() * 3;
    for (std::size_t i = 0; i < floats; ++i) {
      out.values.push_back(static_cast<float>(step * 1000 + part) + static_cast<float>(i) / 256);
    }
    return out;
  }
  void Write(std::int64_t step, int parts, CheckpointView view = kView) {
    for (int part = 0; part < parts; ++part) {
      ASSERT_TRUE(folder_.Write(Part(step, parts, part, view)));
    }
  }
  fs::path FileOf(std::int64_t step, const std::string& name) {
    for (const auto& entry : fs::directory_iterator(root_)) {
      if (std::stoll(entry.path().filename().string().substr(5)) == step)
        return name.empty() ? entry.path() : entry.path() / ("3-0000000000abcdef." + name);
    }
    return {};
  }

  static std::string Bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // As another version of Muster would have written it.
  static void SetVersion(const fs::path& file, char version) {
    constexpr std::size_t kVersionAt = 7, kDigest = 32;
    std::string bytes = Bytes(file);
    bytes[kVersionAt] = version;
    unsigned char digest[EVP_MAX_MD_SIZE];
    ASSERT_EQ(
        EVP_Digest(bytes.data(), bytes.size() - kDigest, digest, nullptr, EVP_sha256(), nullptr),
        1);
    bytes.replace(bytes.size() - kDigest, kDigest, reinterpret_cast<const char*>(digest), kDigest);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  std::optional<std::pair<std::string, std::int64_t>> Newest() const {
    const auto newest = folder_.Newest();
    EXPECT_TRUE(newest) << newest.error().message;
    return newest.value_or(std::nullopt);
  }
  std::optional<Error> WhyNotRead() const {
    const auto newest = Newest();
    if (!newest) return std::nullopt;
    const auto read =
        folder_.Read(newest->first, [](const CheckpointPart&) -> Result<void> { return {}; });
    return read ? std::nullopt : std::optional(read.error());
  }

  const TempFolder temp_;
  fs::path root_;
  CheckpointFolder folder_;
};

TEST_F(CheckpointTest, IsReadAsItWasWrittenPartByPart) {
  Write(7, 3);
  const auto newest = Newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->second, 7);
  int part = 0;
  ASSERT_TRUE(folder_.Read(newest->first, [&](const CheckpointPart& read) -> Result<void> {
    const auto written = Part(7, 3, part++);
    EXPECT_EQ(read.values, written.values);
    EXPECT_EQ(read.buckets, written.buckets);
    EXPECT_EQ(read.part, written.part);
    EXPECT_EQ(read.state_floats, 2);
    EXPECT_EQ(read.view, kView);
    EXPECT_EQ(read.run, written.run);
    return {};
  }));
  EXPECT_EQ(part, 3);
}

TEST_F(CheckpointTest, NoneIsThereWhereNothingWasWritten) { EXPECT_FALSE(Newest()); }

TEST_F(CheckpointTest, OneWithoutAllItsPartsIsPassedOver) {
  Write(7, 2);
  ASSERT_TRUE(folder_.Write(Part(8, 2, 0)));
  EXPECT_EQ(Newest()->second, 7);
  ASSERT_TRUE(folder_.Write(Part(8, 1, 0)));  // by the one worker that was left
  EXPECT_EQ(Newest()->second, 8);
}

TEST_F(CheckpointTest, EachColumnHasItsOwnNumberOfParts) {
  const auto write = [&](int column, int parts, int part) {
    auto one = Part(9, parts, part);
    one.columns = 2;
    one.column = column;
    EXPECT_TRUE(folder_.Write(one));
  };
  write(0, 2, 0);
  write(0, 2, 1);
  EXPECT_FALSE(Newest());
  EXPECT_TRUE(folder_.Complete(9, kView, 1));
  write(1, 3, 0);
  write(1, 3, 1);
  EXPECT_FALSE(Newest());
  EXPECT_FALSE(folder_.Complete(9, kView, 2));
  write(1, 3, 2);
  ASSERT_TRUE(Newest());
  EXPECT_TRUE(folder_.Complete(9, kView, 2));
  EXPECT_FALSE(folder_.Complete(9, {4, 0xabcdef}, 2));
  EXPECT_FALSE(folder_.Complete(8, kView, 2));
  std::vector<std::pair<int, int>> read;
  EXPECT_TRUE(folder_.Read(Newest()->first, [&](const CheckpointPart& part) -> Result<void> {
    read.emplace_back(part.column, part.part);
    return {};
  }));
  EXPECT_EQ(read, (std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}}));
}

// As where a job was taken back and reached the step again on another way.
TEST_F(CheckpointTest, PartsOfTwoViewsAreNoCheckpoint) {
  Write(5, 2);
  const CheckpointView again{4, 0xabcdef}, other_job{3, 0x123};
  ASSERT_TRUE(folder_.Write(Part(8, 2, 0)));
  ASSERT_TRUE(folder_.Write(Part(8, 2, 1, again)));
  ASSERT_TRUE(folder_.Write(Part(8, 2, 1, other_job)));
  EXPECT_EQ(Newest()->second, 5);
  // Also where a file got the name of the other.
  fs::copy_file(FileOf(8, "") / "4-0000000000abcdef.1-of-2", FileOf(8, "1-of-2"));
  EXPECT_EQ(Newest()->second, 5);
  ASSERT_TRUE(folder_.Write(Part(8, 2, 0, again)));
  ASSERT_EQ(Newest()->second, 8);
  EXPECT_TRUE(folder_.Read(Newest()->first, [&](const CheckpointPart& part) -> Result<void> {
    EXPECT_EQ(part.view, again);
    return {};
  }));
}

TEST_F(CheckpointTest, ABrokenOneDoesNotHarmThatOfAnotherViewOfTheSameStep) {
  Write(8, 1);
  Write(8, 1, {2, 7});
  fs::resize_file(FileOf(8, "0-of-1"), 100);
  std::vector<CheckpointView> views;
  EXPECT_TRUE(folder_.Read(Newest()->first, [&](const CheckpointPart& part) -> Result<void> {
    views.push_back(part.view);
    return {};
  }));
  EXPECT_EQ(views, (std::vector<CheckpointView>{{2, 7}}));
}

TEST_F(CheckpointTest, WhatTheReaderRefusesIsTheError) {
  Write(8, 1);
  Write(8, 1, {2, 7});
  int asked = 0;
  const auto read = folder_.Read(Newest()->first, [&](const auto&) -> Result<void> {
    ++asked;
    return Fail(ErrorCode::kConflict, "of another run");
  });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kConflict);
  EXPECT_EQ(asked, 1);
}

TEST_F(CheckpointTest, OneThatIsCutOffOrChangedIsPassedOver) {
  Write(7, 1);
  Write(8, 1);
  const auto file = FileOf(8, "0-of-1");
  const auto size = fs::file_size(file);
  const std::string whole = Bytes(file);
  for (std::size_t at = 0; at < size; at += 13) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 4);
    std::ofstream(file, std::ios::binary) << broken;
    EXPECT_EQ(Newest()->second, 7) << "byte " << at;
  }
  for (std::size_t cut = 0; cut < size; cut += 101) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, cut);
    EXPECT_EQ(Newest()->second, 7) << "cut at " << cut;
  }
  std::ofstream(file, std::ios::binary) << whole;
  EXPECT_EQ(Newest()->second, 8);
}

// Not passed over: the job would begin anew, or go on from long ago, without a word.
TEST_F(CheckpointTest, OneOfAnotherVersionIsAnErrorThatSaysWhatToDo) {
  for (const char version : {'2', '4'}) {
    Write(8, 2);
    for (const char* part : {"0-of-2", "1-of-2"}) SetVersion(FileOf(8, part), version);
    const auto why = WhyNotRead();
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, ErrorCode::kConflict);
    EXPECT_THAT(why->message, HasSubstr("step-000000000008"));
    EXPECT_THAT(why->message, HasSubstr(std::string("is of version ") + version +
                                        " of the format; this program"));
    EXPECT_THAT(why->hint, HasSubstr("the version of Muster that wrote it"));
    Write(7, 1);
    EXPECT_EQ(Newest()->second, 8);
    folder_.Prune(1);
    EXPECT_FALSE(FileOf(8, "").empty());
    Write(9, 1);  // what is older than a good one does not matter
    EXPECT_EQ(Newest()->second, 9);
    EXPECT_FALSE(WhyNotRead());
    for (const std::int64_t step : {7, 8, 9}) fs::remove_all(FileOf(step, ""));
  }
}

TEST_F(CheckpointTest, OneOfAnotherVersionUnderNamesOfItsOwnIsSeenToo) {
  Write(8, 1);
  SetVersion(FileOf(8, "0-of-1"), '9');
  fs::rename(FileOf(8, "0-of-1"), FileOf(8, "") / "all-of-it");
  ASSERT_TRUE(WhyNotRead());
  EXPECT_THAT(WhyNotRead()->message, HasSubstr("is of version 9"));
}

TEST_F(CheckpointTest, OneWhoseVersionWasChangedByAccidentIsPassedOver) {
  Write(7, 1);
  Write(8, 1);
  const std::string whole = Bytes(FileOf(8, "0-of-1"));
  for (const char version : {'2', '7', '\0', 'x'}) {
    std::string broken = whole;
    broken[7] = version;
    std::ofstream(FileOf(8, "0-of-1"), std::ios::binary) << broken;
    EXPECT_EQ(Newest()->second, 7);
  }
  std::ofstream(FileOf(8, "0-of-1"), std::ios::binary) << "MUSTCKP4";
  EXPECT_EQ(Newest()->second, 7);
}

TEST_F(CheckpointTest, OldOnesAreRemovedButNeverTheLastGoodOnes) {
  for (const std::int64_t step : {3, 4, 5}) Write(step, 1);
  ASSERT_TRUE(folder_.Write(Part(6, 2, 1)));
  folder_.Prune(2);
  EXPECT_EQ(Newest()->second, 5);
  EXPECT_FALSE(FileOf(4, "").empty());
  EXPECT_TRUE(FileOf(3, "").empty());
  EXPECT_FALSE(FileOf(6, "").empty());  // somebody may still be writing the rest
}

TEST_F(CheckpointTest, LeftoversThatCanNeverBeCompleteGoWhenANewerOneIs) {
  Write(3, 1);
  ASSERT_TRUE(folder_.Write(Part(4, 2, 1)));
  fs::create_directories(root_ / "step-000000000005");
  Write(6, 1);
  fs::create_directories(root_ / "step-000000000009");
  folder_.Prune(2);
  EXPECT_FALSE(FileOf(3, "").empty());
  EXPECT_TRUE(FileOf(4, "").empty());
  EXPECT_TRUE(FileOf(5, "").empty());
  EXPECT_FALSE(FileOf(6, "").empty());
  EXPECT_TRUE(FileOf(9, "").empty());
}

TEST_F(CheckpointTest, WhereTheDiskIsFullOnlyTheNewestGoodOneAndTheStepThatIsWrittenStay) {
  Write(3, 1);
  Write(4, 1);
  ASSERT_TRUE(folder_.Write(Part(5, 2, 1)));
  ASSERT_TRUE(folder_.Write(Part(6, 2, 1)));
  folder_.Prune(1, 6);
  EXPECT_TRUE(FileOf(3, "").empty());
  EXPECT_FALSE(FileOf(4, "").empty());
  EXPECT_TRUE(FileOf(5, "").empty());
  EXPECT_FALSE(FileOf(6, "").empty());
}

// Without a file descriptor left, or on a disk that answers with errors for a while. Here a link to
// itself is not opened, and the start of a process's memory not read.
TEST_F(CheckpointTest, WhatCannotBeReadJustNowIsNotRemovedHoweverFullTheDiskIs) {
  for (const bool opens : {false, true}) {
    for (const std::int64_t step : {3, 4}) Write(step, 1);
    Write(5, 2);
    const fs::path file = FileOf(5, "1-of-2"), aside = temp_ / "aside";
    fs::rename(file, aside);
    fs::create_symlink(opens ? fs::path("/proc/self/mem") : file, file);
    const auto newest = folder_.Newest();
    ASSERT_FALSE(newest) << "going back to the one before would lose its steps";
    EXPECT_EQ(newest.error().code, ErrorCode::kUnavailable);
    folder_.Prune(1, 6);
    EXPECT_FALSE(FileOf(5, "").empty());
    EXPECT_FALSE(FileOf(4, "").empty()) << "the newest that is good";
    EXPECT_TRUE(FileOf(3, "").empty());
    fs::rename(aside, file);
    EXPECT_EQ(Newest()->second, 5);
    folder_.Prune(1, 6);
    EXPECT_FALSE(FileOf(5, "").empty());
    EXPECT_TRUE(FileOf(4, "").empty());
    fs::remove_all(FileOf(5, ""));
  }
}

TEST_F(CheckpointTest, OneOfAnotherVersionIsNotRemovedWhereNoNewerOneIsGood) {
  Write(4, 1);
  Write(5, 1);
  SetVersion(FileOf(5, "0-of-1"), '9');
  folder_.Prune(1, 7);
  EXPECT_FALSE(FileOf(5, "").empty());
  Write(6, 1);
  folder_.Prune(2, 7);
  EXPECT_TRUE(FileOf(5, "").empty());
}

TEST_F(CheckpointTest, DiscardsWhatOneViewWroteAndNothingElse) {
  Write(6, 1);
  ASSERT_TRUE(folder_.Write(Part(6, 2, 1, {4, 9})));
  folder_.Discard(6, {4, 9});
  EXPECT_EQ(Newest()->second, 6);
  folder_.Discard(6, kView);
  EXPECT_TRUE(FileOf(6, "").empty());
  folder_.Discard(7, kView);
}

TEST_F(CheckpointTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  CheckpointFolder folder("/proc/none");
  const auto written = folder.Write(Part(1, 1, 0));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/proc/none"), std::string::npos);
}

}  // namespace
}  // namespace muster::train
