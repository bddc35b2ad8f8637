#include "pools/local/notebook.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace muster::pools {
namespace {

TEST(Notebook, IsKeptForTheDaemonAloneAndFoundAgain) {
  const std::string folder = testing::TempDir() + "/notebook_test";
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(FindNotebook(folder).has_value());
  ASSERT_TRUE(KeepNotebook(folder, {20'004, "secret"}));
  const auto found = FindNotebook(folder);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->port, 20'004);
  EXPECT_EQ(found->token, "secret");
  struct stat facts {};
  ASSERT_EQ(::stat((folder + "/notebook").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  std::filesystem::remove_all(folder);
}

TEST(Notebook, TheCommandHasThePortAndNeverTheToken) {
  const auto command = NotebookCommand(20'004);
  EXPECT_EQ(command.front(), "/bin/sh");
  EXPECT_EQ(command.back(), "20004");
}

}  // namespace
}  // namespace muster::pools
