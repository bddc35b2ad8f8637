#include "api/identity.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

namespace muster::api {
namespace {

// The server's thread is this one: what is posted to it runs when Serve() waits for it. The account
// database answers when the test lets it.
class AccountsTest : public ::testing::Test {
 protected:
  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(task));
    }
    came_.notify_one();
  }
  void Serve() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !posted_.empty(); });
    const auto task = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    task();
  }
  Result<control::Caller> LookUp(const Accounts::Key& key) {
    const auto uid = std::get<std::uint32_t>(key);
    ++asked_;
    if (uid == kSlow) answer_.get_future().wait();
    if (uid == kBroken) return Fail(ErrorCode::kUnavailable, "no answer");
    control::Caller caller;
    caller.user = "u" + std::to_string(uid);
    return caller;
  }
  static net::Request From(std::uint32_t uid) {
    net::Request request;
    request.peer = net::Peer{};
    request.peer->uid = uid;
    return request;
  }
  bool Knows(std::uint32_t uid) {
    const auto identity = accounts_.Of(From(uid));
    return !identity || identity->has_value();
  }
  void Ask(std::uint32_t uid) {
    ASSERT_TRUE(accounts_.Ask(From(uid), [this] { ++told_; }));
  }

  static constexpr std::uint32_t kSlow = 7, kBroken = 8;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> posted_;
  std::promise<void> answer_;
  std::atomic<int> asked_ = 0;
  int told_ = 0;
  ManualClock clock_;
  TokenBook book_;
  Accounts accounts_{book_, clock_, [this](auto task) { Post(std::move(task)); },
                     [this](const auto& key) { return LookUp(key); }};
};

TEST_F(AccountsTest, WhoIsNotKnownIsAskedForOnceAndRememberedForAWhile) {
  EXPECT_FALSE(Knows(1));
  Ask(1);
  Serve();
  EXPECT_EQ(told_, 1);
  const auto identity = accounts_.Of(From(1));
  ASSERT_TRUE(identity && *identity);
  EXPECT_EQ((*identity)->caller.user, "u1");
  clock_.Advance(59'999);
  EXPECT_TRUE(Knows(1));
  clock_.Advance(1);
  EXPECT_FALSE(Knows(1));
}

TEST_F(AccountsTest, ASlowAnswerIsAskedForOnceAndOthersAreKnownMeanwhile) {
  Ask(1);
  Serve();
  for (int i = 0; i < 3; ++i) Ask(kSlow);
  EXPECT_TRUE(Knows(1));  // this thread waited for nothing
  EXPECT_FALSE(Knows(kSlow));
  EXPECT_EQ(told_, 1);
  clock_.Advance(30'000);
  answer_.set_value();
  Serve();
  EXPECT_EQ(told_, 4);
  EXPECT_EQ(asked_, 2);
  EXPECT_TRUE(Knows(kSlow));  // counted from the answer
}

TEST_F(AccountsTest, NoAnswerIsRememberedShortly) {
  Ask(kBroken);
  Serve();
  const auto identity = accounts_.Of(From(kBroken));
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, ErrorCode::kUnavailable);
  clock_.Advance(5'000);
  EXPECT_FALSE(Knows(kBroken));
}

TEST_F(AccountsTest, OnlySoManyWait) {
  Result<void> asked;
  for (int i = 0; i < 2'000 && asked; ++i) asked = accounts_.Ask(From(kSlow), [this] { ++told_; });
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, ErrorCode::kUnavailable);
  answer_.set_value();
  Serve();
  EXPECT_EQ(told_, 1'000);
  Ask(1);  // there is room again
}

}  // namespace
}  // namespace muster::api
