#include "sim/trace/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>

#include "base/temp_folder.h"

namespace muster::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceFilesTest : public ::testing::Test {
 protected:
  TraceFilesTest() {
    folder_.Write("secret.csv", "secret\n");
    folder_.Write("traces/a.csv", "top\n");
    folder_.Write("traces/set/b.csv", "below\n");
    files_ = TraceFiles::Within(folder_ / "traces");
  }

  TempFolder folder_;
  TraceFiles files_;
};

TEST_F(TraceFilesTest, NamesInTheFolderAndBelowAreRead) {
  EXPECT_EQ(files_.Read("a.csv"), "top\n");
  EXPECT_EQ(files_.Read("set/b.csv"), "below\n");
  EXPECT_THAT(*files_.Names("set"), ElementsAre("b.csv"));
  EXPECT_EQ(files_.Read("set/c.csv").error().code, ErrorCode::kNotFound);
}

TEST_F(TraceFilesTest, NoNameLeadsOut) {
  for (const auto& name :
       {std::string("../secret.csv"), std::string("set/../../secret.csv"), folder_ / "secret.csv",
        std::string("./a.csv"), std::string("set//b.csv"), std::string()}) {
    EXPECT_FALSE(files_.Read(name)) << name;
  }
  EXPECT_FALSE(files_.Names(".."));
}

TEST_F(TraceFilesTest, NoLinkIsFollowed) {
  fs::create_symlink(folder_ / "secret.csv", folder_ / "traces/file");
  fs::create_symlink(folder_.path(), folder_ / "traces/up");
  EXPECT_THAT(files_.Read("file").error().message, HasSubstr("is a link"));
  EXPECT_FALSE(files_.Read("up/secret.csv"));
  EXPECT_FALSE(files_.Names("up"));
}

TEST_F(TraceFilesTest, APipeDoesNotHoldAnybodyUp) {
  ASSERT_EQ(::mkfifo((folder_ / "traces/pipe").c_str(), 0600), 0);
  EXPECT_THAT(files_.Read("pipe").error().message, HasSubstr("no plain file"));
}

TEST_F(TraceFilesTest, ASmallPackedFileWithALongTextIsRefused) {
  const auto path = folder_ / "traces/bomb.csv.gz";
  gzFile file = gzopen(path.c_str(), "wb9");
  const std::string piece(1 << 20, 'a');
  for (std::size_t written = 0; written <= TraceFiles::kMostBytesWithin; written += piece.size()) {
    ASSERT_GT(gzwrite(file, piece.data(), static_cast<unsigned>(piece.size())), 0);
  }
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_THAT(files_.Read("bomb.csv.gz").error().message, HasSubstr("64 MiB"));
}

}  // namespace
}  // namespace muster::sim
