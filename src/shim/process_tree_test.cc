#include "shim/process_tree.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster::shim {
namespace {

TEST(ProcessTree, FindsChildrenOfChildrenBothWays) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      pause();
      _exit(0);
    }
    if (write(ends[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    pause();
    _exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  EXPECT_THAT(Descendants(getpid()), testing::ElementsAre(child, grandchild));
  EXPECT_THAT(DescendantsByScan(getpid()), testing::ElementsAre(child, grandchild));
  EXPECT_THAT(Descendants(child), testing::ElementsAre(grandchild));

  SignalEach({child, grandchild}, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_THAT(Descendants(getpid()), testing::IsEmpty());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace muster::shim
