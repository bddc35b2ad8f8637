// A real container, by the command line that ContainerCommand makes. Its image is a static busybox,
// imported from a folder; storage and state lie in a folder of the test.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"
#include "pools/container/container.h"
#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using testing::Child;
using testing::Ended;
using testing::Folder;
using ::testing::HasSubstr;

class PodmanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_("podman")) GTEST_SKIP() << "podman is not installed";
    if (!std::filesystem::exists("/bin/busybox")) GTEST_SKIP() << "busybox-static is not installed";
    std::filesystem::create_directories(folder_ / "image/bin");
    std::filesystem::create_directories(folder_ / "image/tmp");
    std::filesystem::copy_file("/bin/busybox", folder_ / "image/bin/busybox");
    std::filesystem::create_symlink("busybox", folder_ / "image/bin/sh");
    const Ended packed = testing::Run({"tar", "-C", "image", "-cf", "image.tar", "."}, {}, path());
    ASSERT_EQ(packed.status, 0) << packed.output;
    options_.engine = {"--root",   folder_ / "root", "--runroot",        folder_ / "run",
                       "--tmpdir", folder_ / "tmp",  "--storage-driver", "vfs"};
    options_.image = "localhost/muster-test:1";
    options_.name = "muster-test-" + std::to_string(getpid());
    options_.extra = Limits();
    std::vector<std::string> import{*find_("podman")};
    import.insert(import.end(), options_.engine.begin(), options_.engine.end());
    import.insert(import.end(), {"import", "--quiet", "image.tar", options_.image});
    const Ended imported = testing::Run(import, {}, path());
    if (imported.status != 0) GTEST_SKIP() << "podman cannot import here: " << imported.output;
    SkipUnlessAContainerRuns();
  }

  void TearDown() override {
    const auto removal = ContainerRemoval(options_, find_);
    if (removal && !options_.name.empty()) testing::Run(Here(*removal), {}, path());
  }

  // As root, podman asks for more open files than this process may have, which takes a capability
  // that root lacks inside some virtual machines.
  static std::vector<std::string> Limits() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const std::string most = std::to_string(std::min<rlim_t>(files.rlim_max, 1'048'576));
    return {"--ulimit", "nofile=" + most + ":" + most, "--ulimit", "nproc=1000:1000"};
  }

  // crun refuses a machine with both versions of cgroups mounted, even where it is to make none. A
  // mount namespace without the second is enough for it.
  std::vector<std::string> Here(const std::vector<std::string>& command) const {
    if (!hybrid_) return command;
    std::vector<std::string> line{"unshare",
                                  "--mount",
                                  "--propagation",
                                  "private",
                                  "sh",
                                  "-c",
                                  "umount /sys/fs/cgroup/unified && exec \"$@\"",
                                  "sh"};
    line.insert(line.end(), command.begin(), command.end());
    return line;
  }

  void SkipUnlessAContainerRuns() {
    for (const bool hybrid : {false, true}) {
      hybrid_ = hybrid;
      const Ended ended = RunInside({"/bin/busybox", "true"});
      if (ended.status == 0) return;
      if (hybrid || ended.output.find("hybrid mode") == std::string::npos) {
        GTEST_SKIP() << "podman cannot run a container here: " << ended.output;
      }
    }
  }

  ContainerLaunch Launch(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& env) const {
    auto launch = ContainerCommand(options_, command, env, find_);
    if (launch) return *launch;
    ADD_FAILURE() << Describe(launch.error());
    return {};
  }

  Ended RunInside(const std::vector<std::string>& command,
                  const std::map<std::string, std::string>& env = {}) const {
    const ContainerLaunch launch = Launch(command, env);
    return testing::Run(Here(launch.command), launch.env, path());
  }

  const std::string& path() const { return folder_.path(); }

  const Folder folder_;
  const FindProgram find_ = ProgramsIn("/usr/bin:/bin:/usr/sbin:/sbin");
  ContainerOptions options_;
  bool hybrid_ = false;
};

TEST_F(PodmanTest, TheWorkerHasItsFolderItsEnvironmentAndItsStatus) {
  std::filesystem::create_directory(folder_ / "work");
  options_.workdir = folder_ / "work";
  const Ended ended =
      RunInside({"/bin/sh", "-c", "echo \"$TOKEN\" >said; /bin/busybox pwd; exit 7"},
                {{"TOKEN", "two\nlines"}, {"PATH", "/nowhere"}});
  EXPECT_EQ(ended.status, 7) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(folder_ / "work"));
  EXPECT_EQ(ReadFile(folder_ / "work/said").value_or(""), "two\nlines\n");
}

// Podman drops what comes before it listens, a moment after the worker has begun: so it is
// sent again with every line of the worker, which stays for what is on the way once it was told.
TEST_F(PodmanTest, SignalsReachTheWorkerThroughThePodmanProcess) {
  const ContainerLaunch launch =
      Launch({"/bin/sh", "-c",
              "trap 'trap \"\" USR1; echo told; /bin/busybox sleep 1; exit 9' USR1; "
              "while :; do echo up; /bin/busybox sleep 0.05; done"},
             {});
  Child child(Here(launch.command), launch.env, path());
  while (!child.Printed("told") && child.ReadMore()) child.Signal(SIGUSR1);
  const Ended ended = child.Wait();
  EXPECT_EQ(ended.status, 9) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("told"));
}

TEST_F(PodmanTest, RemovalEndsTheContainerOfALauncherThatWasKilled) {
  const ContainerLaunch launch =
      Launch({"/bin/sh", "-c", "echo up; while :; do /bin/busybox sleep 1; done"}, {});
  Child child(Here(launch.command), launch.env, path());
  ASSERT_TRUE(child.Await("up"));
  child.Signal(SIGKILL);
  const auto removal = ContainerRemoval(options_, find_);
  ASSERT_TRUE(removal);
  const Ended removed = testing::Run(Here(*removal), {}, path());
  EXPECT_EQ(removed.status, 0) << removed.output;
  child.Wait();  // returns once the container's end of the pipe is closed too
}

}  // namespace
}  // namespace muster::pools
