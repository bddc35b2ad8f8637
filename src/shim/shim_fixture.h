// ShimTest: the built program, run as the daemon runs it, around real workers.
//
// Each test has folders of its own under the temporary one. Waiting is by the kernel's notices,
// never by time; a shim that a failed test leaves behind is killed with its worker.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "contract/order.h"
#include "contract/records.h"
#include "contract/tell.h"
#include "shim/cgroup.h"
#include "shim/handle.h"

namespace muster::shim {

namespace fs = std::filesystem;

class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(dir_);
    for (const char* name : {"run", "spool", "log", "work"}) fs::create_directories(dir_ / name);
    order_.launch = "17.0.2";
    order_.run_dir = dir_ / "run";
    order_.spool_dir = dir_ / "spool";
    order_.log_dir = dir_ / "log";
    order_.workdir = dir_ / "work";
    order_.env = {{"PATH", "/usr/bin:/bin"}, {"D", dir_.string()}};
    order_.cgroup_root = "muster-test-" + std::to_string(getpid());
  }

  void TearDown() override {
    if (shim_ > 0) {
      kill(shim_, SIGKILL);
      waitpid(shim_, nullptr, 0);
    }
    for (const char* controller : {"memory", "cpu", "pids", "."}) {
      rmdir((fs::path(kCgroupBase) / controller / order_.cgroup_root).c_str());
    }
    umount2((dir_ / "log").c_str(), MNT_DETACH);  // of a test that failed before it did
    fs::remove_all(dir_);
  }

  void Start(std::vector<std::string> command) {
    order_.command = std::move(command);
    const auto text = contract::Encode(order_);
    const Handle order(memfd_create("order", MFD_CLOEXEC));
    ASSERT_EQ(write(order.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    const Handle lock(open((dir_ / "run/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    shim_ = fork();
    ASSERT_GE(shim_, 0);
    if (shim_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that hangs and is killed leaves nothing behind
      const int moved = fcntl(order.get(), F_DUPFD, 20);
      const int stray = fcntl(order.get(), F_DUPFD, 500);  // a daemon's own, left open by mistake
      dup2(fcntl(lock.get(), F_DUPFD, 20), 4);
      dup2(moved, 3);
      execl(MUSTER_SHIM, "muster-shim", nullptr);
      _exit(stray > 0 ? 99 : 98);
    }
  }
  void StartShell(const std::string& script) { Start({"sh", "-c", script}); }

  // Waits for the shim to end; its status.
  int End() {
    int status = -1;
    EXPECT_EQ(waitpid(shim_, &status, 0), shim_);
    shim_ = -1;
    return status;
  }

  contract::ExitRecord EndWithRecord() {
    EXPECT_EQ(End(), 0);
    const auto record = contract::DecodeExit(Text("spool/17.0.2.exit"));
    EXPECT_TRUE(record.has_value()) << Text("spool/17.0.2.exit");
    return record.value_or(contract::ExitRecord{});
  }

  // Until the file appears in its folder; by the kernel's notice.
  void Await(const std::string& name) {
    const auto path = dir_ / name;
    const Handle notices(inotify_init1(IN_CLOEXEC));
    inotify_add_watch(notices.get(), path.parent_path().c_str(), IN_CREATE | IN_MOVED_TO);
    char block[4096];
    while (!fs::exists(path) && read(notices.get(), block, sizeof block) > 0) {
    }
  }

  std::string Text(const std::string& name) {
    return ReadFile((dir_ / name).string()).value_or("-");
  }
  contract::StartRecord Started() {
    Await("spool/17.0.2.start");
    return contract::DecodeStart(Text("spool/17.0.2.start")).value_or(contract::StartRecord{});
  }
  void Send(const contract::Tell& tell) {
    const auto sent = contract::SendTell(order_.run_dir, tell);
    EXPECT_TRUE(sent.has_value()) << sent.error().message;
  }
  bool LockIsFree() {
    const Handle lock(open((dir_ / "run/lock").c_str(), O_RDWR | O_CLOEXEC));
    return flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  }

  fs::path dir_ = fs::temp_directory_path() / ("muster-shim-" + std::to_string(getpid()));
  contract::LaunchOrder order_;
  pid_t shim_ = -1;
};

}  // namespace muster::shim
