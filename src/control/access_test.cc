#include "control/access.h"

#include <gmock/gmock.h>

namespace muster::control {
namespace {

using model::Queue;

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    Queue open, vision, detection, secret;
    open.name = "open";
    vision.name = "vision";
    vision.members = {{"group:vision", "user"}, {"user:lea", "queue-admin"}};
    detection.name = "vision/detection";
    detection.parent = "vision";
    detection.members = {{"group:guests", "viewer"}};
    secret.name = "secret";
    secret.members = {{"user:zoe", "user"}};
    state_.Fold({1, model::QueuesApplied{{open, vision, detection, secret}, "test"}});
  }

  Access Of(const std::string& user, std::vector<std::string> groups = {}) {
    Caller caller;
    caller.user = user;
    caller.groups = std::move(groups);
    return Access(state_, MembersOf(state_.queues()), caller);
  }
  static state::JobRecord JobOf(const std::string& user, const std::string& queue) {
    auto spec = std::make_shared<model::Job>();
    spec->queue = queue;
    state::JobRecord job;
    job.id = 7;
    job.user = user;
    job.spec = spec;
    return job;
  }

  state::State state_;
};

TEST_F(AccessTest, AQueueWithoutMembersIsOpenAndOneWithMembersIsNot) {
  EXPECT_EQ(Of("ana").On("open"), Role::kUser);
  EXPECT_EQ(Of("ana").On("vision"), Role::kNone);
  EXPECT_EQ(Of("ana").On("vision/detection"), Role::kNone);
  EXPECT_EQ(Of("ana", {"vision"}).On("vision"), Role::kUser);
}

TEST_F(AccessTest, TheStrongestRoleIsThatOfAWalkOverAllQueues) {
  state_.Fold({2, model::UserSet{"kim", "viewer", {"vision"}, "test"}});
  state_.Fold({3, model::UserSet{"out", "none", {"vision"}, "test"}});
  const auto& queues = state_.queues();
  for (const bool with_open : {true, false}) {
    std::vector<Queue> some(queues.begin() + (with_open ? 0 : 1), queues.end());
    for (const char* user : {"ana", "lea", "zoe", "kim", "out"}) {
      for (const auto& groups : std::vector<std::vector<std::string>>{{}, {"guests"}, {"vision"}}) {
        for (const Role cap : {Role::kViewer, Role::kUser, Role::kAdmin}) {
          Caller caller;
          caller.user = user;
          caller.groups = groups;
          caller.cap = cap;
          const Access access(state_, MembersOf(some), caller);
          Role best = Role::kNone;
          for (const auto& queue : some) best = std::max(best, access.On(queue.name));
          EXPECT_EQ(access.Strongest(), best) << user << groups.size() << Name(cap) << with_open;
        }
      }
    }
  }
}

TEST_F(AccessTest, AQueueThatIsGoneIsOpenToNobody) {
  EXPECT_EQ(Of("ana").On("was-there"), Role::kNone);
  EXPECT_TRUE(Of("ana").MaySee(JobOf("ana", "was-there"))) << "its own";
}

TEST_F(AccessTest, ARoleHoldsForTheQueuesBelowAndTheStrongestCounts) {
  EXPECT_EQ(Of("lea").On("vision/detection"), Role::kQueueAdmin);
  EXPECT_EQ(Of("ana", {"guests"}).On("vision/detection"), Role::kViewer);
  EXPECT_EQ(Of("ana", {"guests", "vision"}).On("vision/detection"), Role::kUser);
  EXPECT_EQ(Of("ana", {"guests"}).On("vision"), Role::kNone) << "not upwards";
}

TEST_F(AccessTest, WhoMayDoWhatToAJob) {
  const auto job = JobOf("ana", "vision");
  EXPECT_TRUE(Of("ana").MayAct(job)) << "its own, also after it left the queue";
  EXPECT_TRUE(Of("lea").MayAct(job));
  EXPECT_TRUE(Of("ben", {"vision"}).MaySee(job));
  EXPECT_EQ(Of("ben", {"vision"}).MayAct(job).error().code, ErrorCode::kDenied);
  EXPECT_EQ(Of("zoe").MaySee(job).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Of("zoe").MayAct(job).error().code, ErrorCode::kNotFound);
}

TEST_F(AccessTest, RootIsAdminAndACapHolds) {
  Caller root;
  root.user = "root";
  root.is_root = true;
  EXPECT_TRUE(Access(state_, MembersOf(state_.queues()), root).MayAdministerAll());
  root.cap = Role::kViewer;
  const Access capped(state_, MembersOf(state_.queues()), root);
  EXPECT_FALSE(capped.MayAdministerAll());
  EXPECT_FALSE(capped.MaySubmit("open"));
  EXPECT_TRUE(capped.MaySee(JobOf("ana", "open")));
  EXPECT_FALSE(capped.MayAct(JobOf("root", "open"))) << "not even its own";
}

TEST_F(AccessTest, ARoleOfAUserHoldsEverywhereAndNoneShutsOut) {
  state_.Fold({2, model::UserSet{"eva", "viewer", {"vision"}, "root"}});
  state_.Fold({3, model::UserSet{"adi", "admin", {}, "root"}});
  state_.Fold({4, model::UserSet{"bad", "none", {"vision"}, "root"}});
  EXPECT_EQ(Of("eva").On("secret"), Role::kViewer);
  EXPECT_EQ(Of("eva").On("vision"), Role::kUser) << "by the group it was given";
  EXPECT_TRUE(Of("adi").MayAdministerAll());
  EXPECT_EQ(Of("bad").Strongest(), Role::kNone);
  EXPECT_FALSE(Of("bad").MaySubmit("open"));
}

TEST_F(AccessTest, WhoEntersAJobIsItsUserSoAQueueAdminDoesNot) {
  state_.Fold({3, model::UserSet{"adi", "admin", {}, "root"}});
  auto job = JobOf("ana", "vision");
  job.uid = 1000;
  EXPECT_TRUE(Of("lea").MayAct(job));
  EXPECT_EQ(Of("lea").MayEnter(job).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(Of("ana").MayEnter(job));
  EXPECT_TRUE(Of("adi").MayEnter(job));
  EXPECT_EQ(Of("zoe").MayEnter(job).error().code, ErrorCode::kNotFound);
  job.uid = 0;
  EXPECT_FALSE(Of("adi").MayEnter(job)) << "an admin is not root";
}

TEST_F(AccessTest, PrioritiesAboveTheNamedOnesAreForQueueAdmins) {
  EXPECT_TRUE(Of("ana", {"vision"}).MayPrioritize("vision", 125));
  EXPECT_FALSE(Of("ana", {"vision"}).MayPrioritize("vision", 126));
  EXPECT_TRUE(Of("lea").MayPrioritize("vision", 1'000'000));
}

TEST_F(AccessTest, AQueueThatCannotBeSeenIsNotSuggested) {
  const auto zoe = Of("zoe"), ben = Of("ben");
  EXPECT_NE(NoQueue(state_.queues(), &zoe, "secre").hint.find("secret"), std::string::npos);
  EXPECT_EQ(NoQueue(state_.queues(), &ben, "secre").hint.find("secret"), std::string::npos);
}

TEST_F(AccessTest, AQueueAdminIsNoAdmin) {
  EXPECT_TRUE(Of("lea").MayAdminister("vision/detection"));
  EXPECT_FALSE(Of("lea").MayAdminister("secret"));
  EXPECT_FALSE(Of("lea").MayAdministerAll());
}

}  // namespace
}  // namespace muster::control
