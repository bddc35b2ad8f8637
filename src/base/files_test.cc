#include "base/files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temp_folder.h"

namespace muster {
namespace {

TEST(Files, ReadsAWholeFileByteForByte) {
  const auto path = std::filesystem::path(testing::TempDir()) / "muster-files-test";
  const std::string text = std::string("a\r\n\0b", 5) + std::string(100'000, 'x');
  std::ofstream(path, std::ios::binary) << text;
  const auto read = ReadFile(path.string());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, text);
  std::filesystem::remove(path);
}

TEST(Files, TellsAMissingFileFromAFolder) {
  const auto missing = ReadFile("/no/such/file");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  const auto folder = ReadFile(testing::TempDir());
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(folder.error().hint, "name the files in it");
  EXPECT_EQ(PathError("x", EACCES).code, ErrorCode::kDenied);
  EXPECT_EQ(PathError("x", EMFILE).code, ErrorCode::kUnavailable) << "it may pass";
}

TEST(Files, SaysOfAFullDiskThatItCannotBeWritten) {
  const auto full = WriteError("a/b", ENOSPC);
  EXPECT_EQ(full.code, ErrorCode::kUnavailable);
  EXPECT_EQ(full.message.find("cannot write \"a/b\": "), 0U) << full.message;
  EXPECT_NE(full.hint.find("room"), std::string::npos) << full.hint;
  const auto refused = WriteError("a/b", EACCES);
  EXPECT_EQ(refused.code, ErrorCode::kDenied);
  EXPECT_EQ(refused.hint, "check who may write there");
  EXPECT_EQ(WriteError("a/b", ENOENT).code, ErrorCode::kNotFound);
}

TEST(Files, StopsReadingBehindTheBound) {
  std::istringstream in(std::string(1'000'000, 'x'));
  const auto text = ReadStream(in, 1000);
  EXPECT_GT(text.size(), 1000U);
  EXPECT_LT(text.size(), 200'000U);
}

TEST(Files, MakesAFolderAndThoseAboveIt) {
  const TempFolder temp;
  const auto folder = temp / "a/b/c";
  EXPECT_EQ(MakeFolders(folder), 0);
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(MakeFolders(folder + "/"), 0);
  EXPECT_EQ(SyncFolder(folder), 0);
  std::ofstream(temp / "file") << "x";
  EXPECT_EQ(MakeFolders(temp / "file/below"), ENOTDIR);
  EXPECT_EQ(SyncFolder(temp / "nowhere"), ENOENT);
}

}  // namespace
}  // namespace muster
