#include "train/mesh/lifeline.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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

// What this process and a child of it share: their two lives; no socket is between them.
struct Shared {
  Life theirs, mine;
  std::atomic<bool> ready;  // the child has its lifeline, or has dropped it if it is to
};

class Child {
 public:
  // Lives until it is killed.
  explicit Child(bool drops = false) {
    void* at =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    shared_ = static_cast<Shared*>(at);
    pid_ = fork();
    if (pid_ != 0) return;
    Lifelines lines([](int) {});
    lines.Add(1, nullptr, shared_->theirs, shared_->mine);
    if (drops) lines.Remove(1);
    shared_->ready = true;
    while (true) pause();
  }
  ~Child() {
    Kill();
    if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Await() {
    ASSERT_GT(pid_, 0);
    while (!shared_->ready) std::this_thread::yield();
  }
  // Returns when it is gone.
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void Watch(Lifelines& lines, int key) { lines.Add(key, nullptr, shared_->mine, shared_->theirs); }

 private:
  Shared* shared_ = nullptr;
  pid_t pid_ = -1;
};

class LifelineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelCanWait()) GTEST_SKIP() << "the kernel has no futex_waitv";
  }
};

TEST_F(LifelineTest, TellsOfAProcessThatIsKilled) {
  Child child;
  std::promise<int> told;
  auto key = told.get_future();
  Lifelines lines([&](int ended) { told.set_value(ended); });
  child.Watch(lines, 7);
  child.Await();
  EXPECT_EQ(key.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  child.Kill();
  ASSERT_EQ(key.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(key.get(), 7);
}

TEST_F(LifelineTest, TellsOfOneThatHadEndedBefore) {
  Child child;
  child.Await();
  child.Kill();
  std::promise<int> told;
  auto key = told.get_future();
  Lifelines lines([&](int ended) { told.set_value(ended); });
  child.Watch(lines, 7);
  EXPECT_EQ(key.wait_for(seconds(20)), std::future_status::ready);
}

// Another one is killed after it: when that is told, there has been time to tell of the first.
TEST_F(LifelineTest, OneThatWasLetGoIsNotTold) {
  Child dropped(true), other;
  std::promise<int> told;
  auto key = told.get_future();
  std::atomic<int> count = 0;
  {
    Lifelines lines([&](int ended) {
      if (count++ == 0) told.set_value(ended);
    });
    dropped.Watch(lines, 7);
    other.Watch(lines, 8);
    dropped.Await();
    other.Await();
    dropped.Kill();
    other.Kill();
    ASSERT_EQ(key.wait_for(seconds(20)), std::future_status::ready);
  }
  EXPECT_EQ(key.get(), 8);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace muster::train
