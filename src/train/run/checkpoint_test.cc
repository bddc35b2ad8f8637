#include "train/run/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : root_(temp_ / "checkpoints"), folder_(root_) {}

  static CheckpointPart Part(std::int64_t step, int parts, int part) {
    CheckpointPart out{.step = step,
                       .parts = parts,
                       .part = part,
                       .state_floats = 2,
                       .buckets = {{40, 100}, {0, 40}}};
    std::size_t floats = 0;
    for (const auto& bucket : out.buckets) floats += PartOf(bucket, parts, part).size() * 3;
    for (std::size_t i = 0; i < floats; ++i) {
      out.values.push_back(static_cast<float>(step * 1000 + part) + static_cast<float>(i) / 256);
    }
    return out;
  }
  void Write(std::int64_t step, int parts) {
    for (int part = 0; part < parts; ++part) ASSERT_TRUE(folder_.Write(Part(step, parts, part)));
  }
  fs::path FileOf(std::int64_t step, const std::string& name) {
    for (const auto& entry : fs::directory_iterator(root_)) {
      if (std::stoll(entry.path().filename().string().substr(5)) == step)
        return entry.path() / name;
    }
    return {};
  }

  const TempFolder temp_;
  fs::path root_;
  CheckpointFolder folder_;
};

TEST_F(CheckpointTest, IsReadAsItWasWrittenPartByPart) {
  Write(7, 3);
  const auto newest = folder_.Newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->second, 7);
  int part = 0;
  ASSERT_TRUE(folder_.Read(newest->first, [&](const CheckpointPart& read) -> Result<void> {
    const auto written = Part(7, 3, part++);
    EXPECT_EQ(read.values, written.values);
    EXPECT_EQ(read.buckets, written.buckets);
    EXPECT_EQ(read.part, written.part);
    EXPECT_EQ(read.state_floats, 2);
    return {};
  }));
  EXPECT_EQ(part, 3);
}

TEST_F(CheckpointTest, NoneIsThereWhereNothingWasWritten) { EXPECT_FALSE(folder_.Newest()); }

TEST_F(CheckpointTest, OneWithoutAllItsPartsIsPassedOver) {
  Write(7, 2);
  ASSERT_TRUE(folder_.Write(Part(8, 2, 0)));
  EXPECT_EQ(folder_.Newest()->second, 7);
  ASSERT_TRUE(folder_.Write(Part(8, 1, 0)));  // by the one worker that was left
  EXPECT_EQ(folder_.Newest()->second, 8);
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
  EXPECT_FALSE(folder_.Newest());
  write(1, 3, 0);
  write(1, 3, 1);
  EXPECT_FALSE(folder_.Newest());
  write(1, 3, 2);
  ASSERT_TRUE(folder_.Newest());
  std::vector<std::pair<int, int>> read;
  EXPECT_TRUE(
      folder_.Read(folder_.Newest()->first, [&](const CheckpointPart& part) -> Result<void> {
        read.emplace_back(part.column, part.part);
        return {};
      }));
  EXPECT_EQ(read, (std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}}));
}

TEST_F(CheckpointTest, OneThatIsCutOffOrChangedIsPassedOver) {
  Write(7, 1);
  Write(8, 1);
  const auto file = FileOf(8, "0-of-1");
  const auto size = fs::file_size(file);
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at = 0; at < size; at += 13) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 4);
    std::ofstream(file, std::ios::binary) << broken;
    EXPECT_EQ(folder_.Newest()->second, 7) << "byte " << at;
  }
  for (std::size_t cut = 0; cut < size; cut += 101) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, cut);
    EXPECT_EQ(folder_.Newest()->second, 7) << "cut at " << cut;
  }
  std::ofstream(file, std::ios::binary) << whole;
  EXPECT_EQ(folder_.Newest()->second, 8);
}

TEST_F(CheckpointTest, OldOnesAreRemovedButNeverTheLastGoodOnes) {
  for (const std::int64_t step : {3, 4, 5}) Write(step, 1);
  ASSERT_TRUE(folder_.Write(Part(6, 2, 1)));
  folder_.Prune(2);
  EXPECT_EQ(folder_.Newest()->second, 5);
  EXPECT_FALSE(FileOf(4, "").empty());
  EXPECT_TRUE(FileOf(3, "").empty());
  EXPECT_FALSE(FileOf(6, "").empty());  // somebody may still be writing the rest
}

TEST_F(CheckpointTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  CheckpointFolder folder("/proc/none");
  const auto written = folder.Write(Part(1, 1, 0));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/proc/none"), std::string::npos);
}

}  // namespace
}  // namespace muster::train
