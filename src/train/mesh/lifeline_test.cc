#include "train/mesh/lifeline.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>

namespace muster::train {
namespace {

using std::chrono::seconds;

bool KernelCanWait() {
  return syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) < 0 && errno == EINVAL;
}

// Two lives in memory that this process and its child map; no socket is between them.
class LifelineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelCanWait()) GTEST_SKIP() << "the kernel has no futex_waitv";
    void* at =
        mmap(nullptr, 2 * sizeof(Life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    lives_ = static_cast<Life*>(at);
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (lives_ != nullptr) munmap(lives_, 2 * sizeof(Life));
  }
  // A child that lives until it is killed, and drops its lifeline before if it is to.
  void StartChild(bool drops) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    Lifelines lines([](int) {});
    lines.Add(1, nullptr, lives_[0], lives_[1]);
    if (drops) lines.Remove(1);
    while (true) pause();
  }
  void AwaitChild() {
    while (lives_[0].word.load() == 0) std::this_thread::yield();
  }

  Life* lives_ = nullptr;
  pid_t child_ = -1;
};

TEST_F(LifelineTest, TellsOfAProcessThatIsKilled) {
  StartChild(false);
  std::promise<int> told;
  Lifelines lines([&](int key) { told.set_value(key); });
  lines.Add(7, nullptr, lives_[1], lives_[0]);
  auto key = told.get_future();
  AwaitChild();
  EXPECT_EQ(key.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  kill(child_, SIGKILL);
  ASSERT_EQ(key.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(key.get(), 7);
}

TEST_F(LifelineTest, TellsOfOneThatHadEndedBefore) {
  StartChild(false);
  AwaitChild();
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = -1;
  std::promise<int> told;
  Lifelines lines([&](int key) { told.set_value(key); });
  lines.Add(7, nullptr, lives_[1], lives_[0]);
  EXPECT_EQ(told.get_future().wait_for(seconds(20)), std::future_status::ready);
}

TEST_F(LifelineTest, OneThatWasLetGoIsNotTold) {
  StartChild(true);
  bool told = false;
  {
    Lifelines lines([&](int) { told = true; });
    lines.Add(7, nullptr, lives_[1], lives_[0]);
    AwaitChild();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it has dropped it
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace muster::train
