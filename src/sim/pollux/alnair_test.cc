#include "sim/pollux/alnair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/tree.h"

namespace muster::sim {
namespace {

using ::testing::ElementsAre;

class AlnairTest : public ::testing::Test {
 protected:
  AlnairTest() {
    auto read = Application::Read(SourceTree() + "/examples/lab/pollux", "toy");
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    toy_ = std::move(*read);
  }
  // Its batch can be split over so many GPUs.
  std::unique_ptr<TrainJob> Make(int most_gpus) {
    JobRequest request;
    request.application = toy_.get();
    request.batch = most_gpus * toy_->min_local();
    return std::make_unique<TrainJob>(request);
  }
  std::vector<std::size_t> Decide(std::vector<TrainJob*> jobs) {
    const auto allocation = policy_.Decide({.nodes = 2, .gpus_per_node = 2, .jobs = jobs});
    std::vector<std::size_t> gpus;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      gpus.push_back(allocation[i].size());
      jobs[i]->Place(allocation[i]);
    }
    return gpus;
  }

  std::unique_ptr<Application> toy_;
  AlnairGreedy policy_;
};

TEST_F(AlnairTest, ANewcomerTakesAllThatIsFreeAndOthersAreCutToOne) {
  const auto a = Make(8), b = Make(8), c = Make(8);
  EXPECT_THAT(Decide({a.get()}), ElementsAre(4));
  EXPECT_THAT(Decide({a.get(), b.get()}), ElementsAre(1, 3));
  EXPECT_THAT(Decide({a.get(), b.get(), c.get()}), ElementsAre(1, 1, 2));
  EXPECT_THAT(Decide({a.get(), c.get()}), ElementsAre(1, 2)) << "nobody grows";
}

TEST_F(AlnairTest, WhereEveryJobHasOneTheNextWaits) {
  const auto a = Make(1), b = Make(1), c = Make(2), d = Make(1);
  EXPECT_THAT(Decide({a.get(), b.get(), c.get()}), ElementsAre(1, 1, 2));
  EXPECT_THAT(Decide({a.get(), b.get(), c.get(), d.get()}), ElementsAre(1, 1, 1, 1));
  const auto e = Make(8);
  EXPECT_THAT(Decide({a.get(), b.get(), c.get(), d.get(), e.get()}), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(Decide({b.get(), c.get(), d.get(), e.get()}), ElementsAre(1, 1, 1, 1));
}

TEST_F(AlnairTest, OneNodeIsTakenBeforeSeveralAndTheFullestThatWillDo) {
  const auto a = Make(3), b = Make(2), c = Make(1), d = Make(5);
  const std::vector<TrainJob*> jobs = {a.get(), b.get(), c.get(), d.get()};
  EXPECT_THAT(policy_.Decide({.nodes = 3, .gpus_per_node = 4, .jobs = jobs}),
              ElementsAre(ElementsAre(0, 0, 0), ElementsAre(1, 1), ElementsAre(0),
                          ElementsAre(2, 2, 2, 2, 1)));
}

}  // namespace
}  // namespace muster::sim
