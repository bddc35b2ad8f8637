#include "shim/log_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace muster::shim {
namespace {

class LogWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Text(const std::string& name) {
    return ReadFile((folder_ / name).string()).value_or("-");
  }
  LogFile File(std::int64_t most_bytes, int files) {
    return {(folder_ / "0.out").string(), most_bytes, files};
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("muster-log-" + std::to_string(getpid()));
};

TEST_F(LogWriterTest, NoFileWithoutAByte) {
  LogWriter log(File(100, 2));
  log.Close();
  EXPECT_EQ(Text("0.out"), "-");
}

TEST_F(LogWriterTest, FilesEndWithALineAndTheOldestGoes) {
  LogWriter log(File(10, 3));
  log.Write("aaaa\nbbbb\ncc");
  log.Write("cc\ndddd\n");
  log.Write("eeee\nffff\ngggg\n");
  log.Close();
  EXPECT_EQ(Text("0.out"), "gggg\n");
  EXPECT_EQ(Text("0.out.1"), "eeee\nffff\n");
  EXPECT_EQ(Text("0.out.2"), "cccc\ndddd\n");
  EXPECT_EQ(Text("0.out.3"), "-");
  EXPECT_EQ(log.dropped(), 0);
}

TEST_F(LogWriterTest, ALineLongerThanAFileIsCut) {
  LogWriter log(File(4, 1));
  log.Write("abcdefghij");
  log.Close();
  EXPECT_EQ(Text("0.out"), "ij");
}

TEST_F(LogWriterTest, TheNextAttemptGoesOnWhereTheLastEnded) {
  LogWriter(File(10, 2)).Write("first\n");
  LogWriter(File(10, 2)).Write("next\n");
  EXPECT_EQ(Text("0.out.1"), "first\n");
  EXPECT_EQ(Text("0.out"), "next\n");
}

TEST_F(LogWriterTest, WhatIsLostIsCountedAndSaidOnce) {
  LogWriter log(File(1000, 2));
  std::filesystem::rename(folder_, folder_.string() + ".away");
  log.Write("12345");
  log.Write("678\n");
  std::filesystem::rename(folder_.string() + ".away", folder_);
  log.Write("here again\n");
  log.Write("and again\n");
  log.Close();
  EXPECT_EQ(log.dropped(), 9);
  EXPECT_EQ(Text("0.out"),
            "[muster: 9 bytes of output were lost here: no such file or directory]\n"
            "here again\nand again\n");
}

TEST_F(LogWriterTest, WhatIsNoPlainFileIsNotWritten) {
  const auto target = folder_ / "precious";
  std::filesystem::create_symlink(target, folder_ / "0.out");
  LogWriter log(File(1000, 2));
  log.Write("x\n");
  log.Close();
  EXPECT_EQ(log.dropped(), 2);
  EXPECT_FALSE(std::filesystem::exists(target));
}

}  // namespace
}  // namespace muster::shim
