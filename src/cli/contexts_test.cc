#include "cli/contexts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/temp_folder.h"

namespace muster::cli {
namespace {

class ContextsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
    for (const char* name : {"MUSTER_DAEMON", "MUSTER_TOKEN", "MUSTER_CONTEXT"}) ::unsetenv(name);
    ContextFile file;
    file.current = "lab";
    file.contexts["lab"] = {"https://lab:7443", "secret-of-lab", "/ca.pem"};
    file.contexts["true"] = {"unix:/run/other.sock", "", ""};
    ASSERT_TRUE(WriteContexts(ContextPath(), file));
  }

  TempFolder folder_;
};

TEST_F(ContextsTest, TheFileIsReadAsItWasWrittenAndIsTheUsersAlone) {
  const auto file = ReadContexts(ContextPath());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->current, "lab");
  EXPECT_EQ(file->contexts.at("lab").token, "secret-of-lab");
  EXPECT_EQ(file->contexts.at("true").server, "unix:/run/other.sock");
  struct stat facts {};
  ASSERT_EQ(::stat(ContextPath().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST_F(ContextsTest, TheTokenOfAContextGoesToItsServerOnly) {
  const auto lab = ResolveSettings({});
  ASSERT_TRUE(lab);
  EXPECT_EQ(lab->target.server, "https://lab:7443");
  EXPECT_EQ(lab->target.token, "secret-of-lab");
  EXPECT_EQ(lab->target.ca, "/ca.pem");
  const auto flagged = ResolveSettings({"/other.sock", "lab"});
  ASSERT_TRUE(flagged);
  EXPECT_EQ(flagged->target.server, "/other.sock");
  EXPECT_EQ(flagged->target.token, "");
  ::setenv("MUSTER_DAEMON", "/elsewhere.sock", 1);
  EXPECT_EQ(ResolveSettings({})->target.token, "");
  EXPECT_EQ(ResolveSettings({"", "lab"})->target.token, "secret-of-lab");
}

TEST_F(ContextsTest, AFileWithTokensThatOthersMayReadIsNotUsed) {
  ASSERT_EQ(::chmod(ContextPath().c_str(), 0640), 0);
  const auto file = ReadContexts(ContextPath());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kDenied);
  EXPECT_NE(file.error().hint.find("chmod 600"), std::string::npos);
  std::ofstream(ContextPath()) << "contexts: {here: {server: /a.sock}}";
  EXPECT_TRUE(ReadContexts(ContextPath()));  // no secret in it
}

TEST_F(ContextsTest, NoSettingShowsAToken) {
  ::setenv("MUSTER_TOKEN", "secret-of-mine", 1);
  const auto settings = ResolveSettings({});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->target.token, "secret-of-mine");
  for (const auto& one : settings->all) {
    EXPECT_EQ(one.value.find("secret"), std::string::npos) << one.name;
  }
}

TEST_F(ContextsTest, AContextThatIsNotThereAndABrokenFileAreErrors) {
  EXPECT_EQ(ResolveSettings({"", "nowhere"}).error().code, ErrorCode::kNotFound);
  std::ofstream(ContextPath()) << "contexts: [";
  EXPECT_EQ(ResolveSettings({}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace muster::cli
