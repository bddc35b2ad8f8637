// The production controller with a simulated pool of two GPU types, whose jobs tell their speed.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "control/access.h"
#include "control/controller.h"
#include "control/plan.h"
#include "control/views.h"
#include "model/document_writer.h"
#include "pools/simulated/simulated_pool.h"
#include "state/sqlite_store.h"

namespace muster::control {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMinuteMs = 60'000;

class SimulatedSpeedTest : public testing::Test {
 protected:
  SimulatedSpeedTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("muster-speed-" + std::to_string(::getpid()))),
        store_(Open(folder_)),
        pool_(Lab(), clock_),
        control_({clock_, *store_, {&pool_}}, Settings{}) {
    clock_.Advance(100 * kMinuteMs);  // no time is 0
    EXPECT_TRUE(control_.Recover());
    model::Queue queue;
    queue.name = "q";
    EXPECT_TRUE(control_.ApplyQueues({queue}, "root"));
    EXPECT_TRUE(control_.Turn());
  }
  ~SimulatedSpeedTest() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<state::Store> Open(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    auto store = state::OpenSqlite((folder / "journal.db").string());
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  static model::Pool Lab() {
    model::Pool pool;
    pool.name = "lab";
    pool.driver = model::PoolDriver::kSimulated;
    for (const auto* type : {"A100", "H100"}) {
      auto& group = pool.nodes.emplace_back();
      group.gpus = 4;
      group.type = type;
    }
    return pool;
  }

  static model::Job Wanted(const std::string& name, const std::string& speed) {
    model::Job spec;
    spec.name = name;
    spec.queue = "q";
    spec.command = {"sleep", "1000000"};
    spec.env[pools::SimulatedPool::kSpeedVariable] = speed;
    spec.groups.emplace_back().minimum = 1;
    auto& role = spec.roles.emplace_back();
    role.name = "worker";
    role.count = 4;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    return spec;
  }
  JobNumber Submit(const std::string& name, const std::string& speed) {
    Submission submission;
    submission.spec = Wanted(name, speed);
    submission.user = "ana";
    auto made = control_.Submit(std::move(submission));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made.value_or(0);
  }
  void Pass(std::int64_t ms) {
    const auto until = clock_.WallMs() + ms;
    while (clock_.WallMs() < until) {
      ASSERT_TRUE(control_.Turn());
      clock_.Advance(500);
    }
  }
  std::int64_t Workers(JobNumber job) const {
    return static_cast<std::int64_t>(
        control_.state().Find(job)->Count(state::WorkerPhase::kRunning));
  }
  Access Root() const {
    Caller root;
    root.user = "root";
    root.is_root = true;
    return Access(control_.state(), MembersOf(control_.state().queues()), root);
  }
  std::string Why(JobNumber job) {
    return model::WriteDocument(WhyView(control_, Root(), *control_.state().Find(job)),
                                model::TextFormat::kJson);
  }
  std::string Plan(const model::Job& job) {
    const Access access = Root();
    const auto plan = Trial(control_, job, access).Run();
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
    return plan ? model::WriteDocument(*plan, model::TextFormat::kJson) : "";
  }
  std::string TypeOf(JobNumber job) const {
    return control_.state().GpuTypeOf(*control_.state().Find(job));
  }

  ManualClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<state::Store> store_;
  pools::SimulatedPool pool_;
  Controller control_;
};

TEST_F(SimulatedSpeedTest, WhoGainsNothingGivesGpusBack) {
  const auto bad = Submit("bad", "any=1s sync=100s");
  Pass(5 * kMinuteMs);
  EXPECT_EQ(Workers(bad), 1);
  const auto told = control_.state().Find(bad)->speed;
  ASSERT_NE(told, nullptr);
  for (const auto& speed : told->told) EXPECT_FALSE(speed.gpu_type.empty());
  EXPECT_EQ(told->latest.gpus, 4);
  EXPECT_EQ(told->latest.step_us, 101'000'000);
  EXPECT_THAT(Why(bad), HasSubstr("its size is given out by goodput: on 1 GPU of type"));
}

// Their sizes are given out together, so the others make room for the new one.
TEST_F(SimulatedSpeedTest, APlanNamesThoseWhoShrinkForANewJob) {
  for (const auto* name : {"left", "right"}) Submit(name, "any=100ms sync=1ms");
  Pass(5 * kMinuteMs);
  const auto plan = Plan(Wanted("new", "any=100ms sync=1ms"));
  EXPECT_THAT(plan, HasSubstr("as soon as 1 job has made room, within 30s"));
  EXPECT_THAT(plan, HasSubstr("\"rule\": \"resize\""));
  EXPECT_THAT(plan, HasSubstr("the sizes that pay best"));
}

// While its node was drained it ran on the other type; from then on it knows both.
TEST_F(SimulatedSpeedTest, AJobThatRanOnBothTypesGoesToTheFasterOne) {
  const auto job = Submit("picky", "A100=300ms H100=100ms sync=1ms");
  Pass(kMinuteMs);
  const auto first = TypeOf(job);
  EXPECT_EQ(Workers(job), 4);
  const std::string other = first == "A100" ? "H100" : "A100";
  const auto node = control_.state().Find(job)->workers[0].node;
  ASSERT_TRUE(control_.MarkNode(node, true, true, "root"));
  Pass(5 * kMinuteMs);
  EXPECT_EQ(TypeOf(job), other);
  ASSERT_TRUE(control_.MarkNode(node, false, false, "root"));
  Pass(30 * kMinuteMs);
  EXPECT_EQ(TypeOf(job), "H100");
  EXPECT_EQ(Workers(job), 4);
}

}  // namespace
}  // namespace muster::control
