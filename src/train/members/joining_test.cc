#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/members/folder_store.h"
#include "train/members/keys.h"
#include "train/members/members.h"
#include "train/mesh/socket.h"
#include "train/mesh/test_gang.h"

namespace muster::train {
namespace {

// Of several threads.
class SharedClock final : public Clock {
 public:
  std::int64_t WallMs() override { return now_ms_; }
  std::int64_t MonotonicNs() override { return now_ms_ * 1'000'000; }
  void Advance(std::int64_t ms) { now_ms_ += ms; }

 private:
  std::atomic<std::int64_t> now_ms_{1};
};

// Counts how often it is asked for the newest view, which a joiner does before it tries anything.
class CountingStore final : public Store {
 public:
  explicit CountingStore(const std::string& folder) : store_(folder) {}

  Result<std::string> Claim(const std::string& key, const std::string& value) override {
    return store_.Claim(key, value);
  }
  Result<void> Write(const std::string& key, const std::string& value) override {
    return store_.Write(key, value);
  }
  Result<std::optional<std::string>> Read(const std::string& key) override {
    if (key == kNewestKey) ++asked_;
    return store_.Read(key);
  }
  // What was begun before this has come to its end, and so has another one.
  void AwaitAttempts() const {
    for (const int until = asked_ + 3; asked_ < until;) std::this_thread::yield();
  }

 private:
  FolderStore store_;
  std::atomic<int> asked_{0};
};

// Somebody who comes to a job of which this test is all the members.
class JoiningTest : public testing::Test {
 protected:
  JoiningTest() : store_(folder_ / "store") { Open(0); }
  void Open(int setbacks) {
    MembersOptions options;
    options.setbacks = setbacks;
    options.mesh = TestOptions();
    options.recoverable = [](const Holdings&, std::int64_t) { return true; };
    options.newest_checkpoint =
        []() -> Result<std::optional<std::pair<std::string, std::int64_t>>> {
      return std::nullopt;
    };
    auto members = Members::Open(options, store_, clock_, leave_);
    EXPECT_TRUE(members);
    if (members) joiner_ = std::move(*members);
  }
  ~JoiningTest() override {
    leave_ = true;
    if (joining_.joinable()) joining_.join();
  }

  void Join() {
    joining_ = std::thread([this] {
      const auto turn = joiner_->Next({});
      if (turn) end_ = turn->kind;
      if (!turn) why_ = turn.error();
    });
  }
  // A member that is said to be there.
  static Endpoint At(const Listening& far) { return {7, "elsewhere", far.address, "", 0}; }
  // Takes connections and ends them, as whatever is between it and the joiner may.
  static void TurnAway(const Listening& far, int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(AwaitSocket(far.fd.get(), POLLIN, NowNs() + 60'000'000'000));
      EXPECT_TRUE(AcceptOn(far.fd.get()).fd);
    }
  }
  void ClaimView(std::uint64_t generation, std::vector<Endpoint> members) {
    ChangeMessage change;
    change.view.generation = generation;
    change.view.members = std::move(members);
    ASSERT_TRUE(store_.Claim(ViewKey(generation), Encode(change)));
  }
  // The next that this member is told is that the joiner wants to come in.
  void ExpectKnock(Inbox& inbox) const {
    const auto [who, text] = inbox.NextTold();
    EXPECT_EQ(who, joiner_->id());
    const auto told = DecodeMessage(text);
    ASSERT_TRUE(told);
    EXPECT_TRUE(told->join);
  }

  const TempFolder folder_;
  CountingStore store_;
  SharedClock clock_;
  std::atomic<bool> leave_{false};
  std::unique_ptr<Members> joiner_;
  std::thread joining_;
  std::optional<Turn::Kind> end_;
  std::optional<Error> why_;
};

TEST_F(JoiningTest, OneThatReachesSomeMembersOnlyWaitsForAViewOfWhichItReachesAll) {
  Inbox inbox;
  auto member = Mesh::Open(TestOptions(), inbox.Events());
  ASSERT_TRUE(member);
  const auto far = ListenTcp("127.0.0.1");
  ASSERT_TRUE(far);
  ClaimView(1, {(*member)->self(), At(*far)});
  Join();
  TurnAway(*far, 3);
  EXPECT_TRUE((*member)->Connected(joiner_->id()));
  EXPECT_EQ(inbox.AllTold().size(), 0U);
  ClaimView(2, {(*member)->self()});
  ExpectKnock(inbox);
  leave_ = true;
  joining_.join();
  EXPECT_EQ(end_, Turn::Kind::kLeft);
}

// They may reach it where it does not reach them.
TEST_F(JoiningTest, OneThatHasNotReachedSomeMembersForLongKnocksAllTheSame) {
  Inbox inbox;
  auto member = Mesh::Open(TestOptions(), inbox.Events());
  ASSERT_TRUE(member);
  auto far = ListenTcp("127.0.0.1");
  ASSERT_TRUE(far);
  ClaimView(1, {(*member)->self(), At(*far)});
  Join();
  TurnAway(*far, 3);
  EXPECT_EQ(inbox.AllTold().size(), 0U);
  clock_.Advance(20 * TestOptions().timeout_ms);
  *far = {};
  ExpectKnock(inbox);
}

TEST_F(JoiningTest, OneWithWhichNoViewCameAboutWaitsTwiceAsLongEachTime) {
  Inbox inbox;
  auto member = Mesh::Open(TestOptions(), inbox.Events());
  ASSERT_TRUE(member);
  Open(4);
  ClaimView(1, {(*member)->self()});
  Join();
  for (const std::int64_t timeouts : {0, 7}) {
    clock_.Advance(timeouts * TestOptions().timeout_ms);
    store_.AwaitAttempts();
    EXPECT_EQ(inbox.AllTold().size(), 0U) << timeouts;
  }
  clock_.Advance(TestOptions().timeout_ms);
  ExpectKnock(inbox);
}

// As one that was started with another --wire than those on other machines.
TEST_F(JoiningTest, OneThatSomeMemberRefusesForGoodIsToldWhyInTheEnd) {
  Inbox inbox, other_inbox;
  auto member = Mesh::Open(TestOptions(), inbox.Events());
  auto options = TestOptions();
  options.secret = "a secret of others";
  auto other = Mesh::Open(options, other_inbox.Events());
  ASSERT_TRUE(member && other);
  auto far = ListenTcp("127.0.0.1");
  ASSERT_TRUE(far);
  ClaimView(1, {(*member)->self(), (*other)->self(), At(*far)});
  Join();
  TurnAway(*far, 3);  // not at once: another process may have the port of one that is gone
  clock_.Advance(10 * options.timeout_ms);
  *far = {};
  joining_.join();
  ASSERT_TRUE(why_);
  EXPECT_EQ(why_->code, ErrorCode::kDenied);
  EXPECT_NE(why_->message.find("has another secret"), std::string::npos) << why_->message;
}

}  // namespace
}  // namespace muster::train
