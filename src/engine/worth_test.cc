#include "engine/worth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cluster.h"
#include "engine/cycle.h"
#include "engine/placement.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kGi = 1LL << 30;

double WasteAt(const WasteTable& table, std::int64_t room) {
  return static_cast<double>(table.At(room)) / static_cast<double>(WasteTable::kPart);
}

// The definition itself.
double BruteForce(const std::vector<WasteTable::Share>& shares, std::int64_t room,
                  std::int64_t offers,
                  std::map<std::pair<std::int64_t, std::int64_t>, double>& known) {
  if (offers == 0) return static_cast<double>(room);
  const auto found = known.find({room, offers});
  if (found != known.end()) return found->second;
  double sum = 0, weights = 0;
  for (const auto& share : shares) {
    const double refused = BruteForce(shares, room, offers - 1, known);
    const double taken =
        share.milli > room ? refused : BruteForce(shares, room - share.milli, offers - 1, known);
    sum += static_cast<double>(share.weight) * std::min(refused, taken);
    weights += static_cast<double>(share.weight);
  }
  return known[{room, offers}] = sum / weights;
}

TEST(WasteTable, IsWhatTheDefinitionSays) {
  const std::vector<WasteTable::Share> shares = {{500, 16}, {300, 4}, {125, 1}};
  for (const std::int64_t offers : {1, 7, 30}) {
    WasteTable table(offers);
    table.Learn(shares, false);
    std::map<std::pair<std::int64_t, std::int64_t>, double> known;
    for (std::int64_t room = 0; room <= kMilli; room += 7) {
      EXPECT_NEAR(WasteAt(table, room), BruteForce(shares, room, offers, known), 0.1) << room;
    }
  }
}

TEST(WasteTable, IsAllOfTheRoomUntilSomethingIsKnown) {
  const WasteTable table(30);
  EXPECT_EQ(WasteAt(table, 700), 700);
  EXPECT_EQ(WasteAt(table, kMilli), kMilli);
}

TEST(WasteTable, IsNothingForAWholeGpuWhereWholeOnesAreAskedFor) {
  WasteTable table(30);
  table.Learn({}, true);
  EXPECT_EQ(WasteAt(table, kMilli), 0);
  EXPECT_EQ(WasteAt(table, kMilli - 1), kMilli - 1);
}

TEST(WasteTable, CountsOnARareShareLessThanOnAFrequentOne) {
  WasteTable table(30);
  table.Learn(std::vector<WasteTable::Share>{{500, 64}, {300, 1}}, false);
  EXPECT_GT(WasteAt(table, 300), 100);
  EXPECT_LT(WasteAt(table, 500), 1);
}

class WorthTest : public testing::Test {
 protected:
  WorthTest() : cluster_(NewCluster()) {}

  static std::unique_ptr<Cluster> NewCluster() {
    engine::Setup setup;
    setup.queues.emplace_back().name = "q";
    return std::move(*Cluster::Make(std::move(setup)));
  }

  static model::Node Node(const std::string& name, std::int64_t cores, int gpus,
                          const std::string& type = "A") {
    model::Node node;
    node.name = name;
    node.cpu_milli = cores * kMilli;
    node.memory_bytes = 1024 * kGi;
    model::Gpu gpu;
    gpu.type = type;
    gpu.memory_bytes = kMilli;
    node.gpus.assign(static_cast<std::size_t>(gpus), gpu);
    return node;
  }
  static model::Job Job(const std::string& name, std::int64_t cores, model::GpuRequest gpu) {
    model::Job job;
    job.name = name;
    job.queue = "q";
    job.groups.emplace_back().minimum = 1;
    auto& role = job.roles.emplace_back();
    role.request.cpu_milli = cores * kMilli;
    role.request.memory_bytes = kGi;
    role.request.gpu = gpu;
    return job;
  }
  static model::GpuRequest Whole(int gpus) { return {model::GpuKind::kWhole, gpus, 0, 0}; }
  static model::GpuRequest Share(std::int64_t milli) {
    return {model::GpuKind::kShare, 1, milli, 0};
  }

  void Add(const model::Node& node) { ASSERT_TRUE(cluster_->AddNode(node).has_value()); }
  // So many jobs like it are known; none of them is placed.
  void Expect(const model::Job& like, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(cluster_->AddJob(like, 0, like.name + std::to_string(i)).has_value());
    }
  }
  // Of the first bank by the job, in thousandths of a GPU.
  std::int64_t Fall(Worth& worth, const model::Job& job) {
    const JobId id = *cluster_->AddJob(job, 0);
    const auto steps =
        worth.Fall(cluster_->shapes()[cluster_->worker({id, 0}).shape], 0, Mode::kFree);
    cluster_->RemoveJob(id);
    return steps * WorthRules{}.step_milli;
  }
  void Take(const model::Job& job, NodeId node, std::uint64_t devices) {
    const JobId id = *cluster_->AddJob(job, 0);
    ASSERT_TRUE(cluster_->ReportWorker({id, 0}, WorkerState::kRunning, node, devices, 0));
  }
  Place PlaceOf(const model::Job& job) {
    const JobId id = *cluster_->AddJob(job, 0);
    Placement placement(*cluster_);
    std::vector<Piece> pieces;
    placement.NextPieces(id, pieces);
    EXPECT_TRUE(placement.Place(pieces.at(0), Mode::kFree));
    return cluster_->worker({id, 0}).place;
  }
  std::string NodeFor(const model::Job& job) {
    return cluster_->nodes().spec(cluster_->nodes().bank(PlaceOf(job).bank).node).name;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(WorthTest, FallsByTheGpuThatTheKnownWorkersCanNoLongerUse) {
  Add(Node("a", 32, 4));
  Expect(Job("wanted", 8, Whole(1)), 4);
  auto& worth = cluster_->worth().worth();
  const auto fall = [&](const model::Job& job) { return Fall(worth, job); };
  EXPECT_EQ(fall(Job("gpu", 8, Whole(1))), 1000);
  EXPECT_EQ(fall(Job("greedy", 16, Whole(1))), 2000) << "leaves cores for two of four";
  EXPECT_EQ(fall(Job("cores", 8, {})), 1000);
  EXPECT_EQ(fall(Job("half", 4, Share(500))), 1000) << "nobody is known to want the other half";
}

TEST_F(WorthTest, IsNothingToThoseOfWhomNotEvenOneCouldRun) {
  Add(Node("a", 16, 2));
  Expect(Job("wide", 20, Whole(1)), 4);
  EXPECT_EQ(Fall(cluster_->worth().worth(), Job("any", 1, Whole(1))), 0);
}

TEST_F(WorthTest, AWorkerWithSeveralGpusGoesWhereItFallsLeast) {
  Add(Node("rich", 32, 4));
  Add(Node("poor", 16, 4));
  Expect(Job("wanted", 8, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 2, Whole(2))), "poor") << "whose cores are enough for two GPUs alone";
}

TEST_F(WorthTest, IsWhatTheNodesOtherGpusLoseToo) {
  auto mixed = Node("a", 16, 1);
  mixed.gpus.push_back({"B", kMilli});
  Add(mixed);
  Add(Node("b", 8, 1));
  Expect(Job("wanted", 8, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 8, Whole(1))), "a") << "equal, and the first";
  EXPECT_EQ(NodeFor(Job("y", 8, {})), "a") << "equal again";
}

TEST_F(WorthTest, SendsWorkersWithManyCoresWhereCoresArePlenty) {
  Add(Node("few", 96, 8));
  Add(Node("plenty", 104, 2));
  Expect(Job("wanted", 11, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 24, Whole(1))), "plenty");
}

TEST_F(WorthTest, SendsWorkersWithoutGpusWhereNoGpuNeedsTheCores) {
  Add(Node("idle", 32, 2));
  Add(Node("used", 44, 2));
  Take(Job("there", 12, Whole(1)), 1, 1);
  Expect(Job("wanted", 12, Whole(1)), 16);
  EXPECT_EQ(NodeFor(Job("x", 12, {})), "used");
}

TEST_F(WorthTest, CountsMemoryToo) {
  auto little = Node("little", 64, 2);
  little.memory_bytes = 200 * kGi;
  Add(little);
  Add(Node("much", 64, 2));
  auto wanted = Job("wanted", 1, Whole(1));
  wanted.roles[0].request.memory_bytes = 100 * kGi;
  Expect(wanted, 4);
  auto x = Job("x", 1, Whole(1));
  x.roles[0].request.memory_bytes = 150 * kGi;
  EXPECT_EQ(NodeFor(x), "much");
}

TEST_F(WorthTest, KeepsTypesThatOthersAskFor) {
  Add(Node("a", 64, 1, "A"));
  Add(Node("b", 64, 1, "B"));
  auto picky = Job("picky", 1, Whole(1));
  picky.roles[0].gpu_types = {"A"};
  Expect(picky, 4);
  Expect(Job("other", 1, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 1, Whole(1))), "b");
}

TEST_F(WorthTest, LeavesRestsThatSeveralSharesFill) {
  // 600 is twice 300, 850 wastes 50; the next share alone would see no difference.
  Add(Node("a", 64, 2));
  Take(Job("there", 1, Share(250)), 0, 2);
  Expect(Job("s", 1, Share(300)), 16);
  Expect(Job("t", 1, Share(400)), 16);
  EXPECT_EQ(PlaceOf(Job("x", 1, Share(150))).devices, 2U);
}

TEST_F(WorthTest, OfEqualsTheFullestIsTakenThenTheFirst) {
  for (const char* name : {"a", "b", "c"}) Add(Node(name, 640, 4));
  Take(Job("there", 1, Whole(1)), 1, 1);
  Expect(Job("wanted", 1, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 1, Whole(1))), "b");
  EXPECT_EQ(NodeFor(Job("y", 1, {})), "b") << "the fullest by cores, which are plenty";
  cluster_->SetNodeCordoned(1, true, false);
  EXPECT_EQ(NodeFor(Job("z", 1, Whole(1))), "a");
}

TEST_F(WorthTest, GangsAndWorkersWithSeveralGpusArePacked) {
  Add(Node("few", 96, 8));
  Add(Node("plenty", 960, 9));
  Expect(Job("wanted", 11, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("two", 24, Whole(2))), "few");
  auto gang = Job("gang", 24, Whole(1));
  gang.roles[0].count = 2;
  EXPECT_EQ(NodeFor(gang), "few");
}

TEST_F(WorthTest, WithoutTheRuleEverybodyIsPacked) {
  engine::Setup setup;
  setup.queues.emplace_back().name = "q";
  setup.policy.place_by_worth = false;
  cluster_ = std::move(*Cluster::Make(std::move(setup)));
  Add(Node("few", 96, 8));
  Add(Node("plenty", 960, 9));
  Expect(Job("wanted", 11, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 24, Whole(1))), "few");
}

TEST_F(WorthTest, InRoomThatOthersOnlyLeaveItIsPacked) {
  Add(Node("few", 96, 8));
  Add(Node("plenty", 960, 9));
  Expect(Job("wanted", 11, Whole(1)), 4);
  const JobId id = *cluster_->AddJob(Job("x", 24, Whole(1)), 0);
  Placement placement(*cluster_);
  std::vector<Piece> pieces;
  placement.NextPieces(id, pieces);
  ASSERT_TRUE(placement.Place(pieces.at(0), Mode::kFuture));
  EXPECT_EQ(cluster_->worker({id, 0}).place.bank, 0U);
}

TEST_F(WorthTest, ALimitOnAGpuTypeBinds) {
  engine::Setup setup;
  auto& queue = setup.queues.emplace_back();
  queue.name = "q";
  queue.limit["A"] = 500;
  cluster_ = std::move(*Cluster::Make(std::move(setup)));
  Add(Node("a", 960, 1, "A"));
  Add(Node("b", 96, 1, "B"));
  Expect(Job("wanted", 11, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 24, Whole(1))), "b");
  EXPECT_EQ(NodeFor(Job("y", 1, Share(500))), "a");
}

TEST_F(WorthTest, AShareInsideALevelGoesWhereWorthFallsLeastToo) {
  auto few = Node("few", 96, 8), plenty = Node("plenty", 104, 2);
  few.labels["rack"] = plenty.labels["rack"] = "r0";
  engine::Setup setup;
  setup.topologies = {{"fabric", {"rack"}}};
  setup.queues.emplace_back().name = "q";
  cluster_ = std::move(*Cluster::Make(std::move(setup)));
  Add(few);
  Add(plenty);
  Expect(Job("wanted", 11, Whole(1)), 4);
  auto share = Job("x", 24, Share(500));
  share.groups[0].topology.require = "rack";
  EXPECT_EQ(NodeFor(share), "plenty");
}

TEST_F(WorthTest, FollowsTheDemand) {
  Add(Node("a", 64, 1, "A"));
  Add(Node("b", 64, 1, "B"));
  auto picky = Job("picky", 1, Whole(1));
  picky.roles[0].gpu_types = {"A"};
  Expect(picky, 4);
  const auto x = PlaceOf(Job("x", 1, Whole(1)));
  EXPECT_EQ(x.bank, 1U);
  cluster_->RemoveJob(cluster_->FindJob("x"));
  for (int i = 0; i < 4; ++i) cluster_->RemoveJob(cluster_->FindJob("picky" + std::to_string(i)));
  picky.roles[0].gpu_types = {"B"};
  Expect(picky, 4);
  EXPECT_EQ(NodeFor(Job("y", 1, Whole(1))), "a");
}

TEST_F(WorthTest, FollowsNodesThatComeAndGo) {
  Add(Node("few", 96, 8));
  Expect(Job("wanted", 11, Whole(1)), 4);
  EXPECT_EQ(NodeFor(Job("x", 24, Whole(1))), "few");
  Add(Node("plenty", 104, 2));
  EXPECT_EQ(NodeFor(Job("y", 24, Whole(1))), "plenty");
  cluster_->SetNodeCordoned(1, true, false);
  EXPECT_EQ(NodeFor(Job("z", 24, Whole(1))), "few");
}

TEST_F(WorthTest, ForgetsShapesButNotWhereTheyGo) {
  Add(Node("few", 96, 8));
  Add(Node("plenty", 1040, 9));
  Expect(Job("wanted", 11, Whole(1)), 4);
  const auto any = [](BankId) { return true; };
  std::vector<std::pair<ShapeId, BankId>> picks;
  for (std::size_t i = 0; i <= WorthIndex::kMostKept; ++i) {
    auto job = Job("j" + std::to_string(i), 1, Whole(1));
    job.roles[0].request.cpu_milli += static_cast<std::int64_t>(i) * 50;
    const JobId id = *cluster_->AddJob(job, 0);
    const ShapeId shape = cluster_->worker({id, 0}).shape;
    cluster_->RemoveJob(id);
    picks.emplace_back(shape, cluster_->worth().Pick(shape, any));
  }
  EXPECT_EQ(cluster_->worth().kept(), WorthIndex::kMostKept);
  EXPECT_NE(picks.front().second, picks.back().second);
  for (const auto& [shape, bank] : picks) {
    EXPECT_EQ(cluster_->worth().Pick(shape, any), bank);
  }
}

TEST(Demand, CountsByPowersOfFourAndLeavesOutWhatIsRare) {
  engine::Setup setup;
  setup.queues.emplace_back().name = "q";
  const auto cluster = std::move(*Cluster::Make(std::move(setup)));
  ShapeTable& shapes = cluster->shapes();
  const auto intern = [&](std::int64_t cores) {
    ShapeSpec spec;
    spec.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    spec.request.cpu_milli = cores;
    return shapes.Intern(spec, cluster->queues().dims(), {}, 0);
  };
  const ShapeId often = intern(2), rare = intern(1);
  shapes.AddDemand(rare, 3);
  shapes.AddDemand(often, 70);
  ASSERT_EQ(shapes.Targets().size(), 2U);
  EXPECT_EQ(shapes.Targets()[0].shape, often);
  EXPECT_EQ(shapes.Targets()[0].weight, 64);
  EXPECT_EQ(shapes.Targets()[1].weight, 1);
  const auto version = shapes.demand_version();
  shapes.AddDemand(often, 100);
  EXPECT_EQ(shapes.demand_version(), version) << "64 is still the power";
  shapes.AddDemand(often, 5000);
  ASSERT_EQ(shapes.Targets().size(), 1U);
  EXPECT_GT(shapes.demand_version(), version);
}

// Who came and went before, and in which order, makes no difference.
TEST_F(WorthTest, AClusterBuiltFromWhatIsThereDecidesTheSame) {
  std::vector<model::Job> jobs;
  for (int i = 0; i < 60; ++i) {
    const auto name = "j" + std::to_string(i);
    const std::int64_t cores = 1 + i * 7 % 13;
    jobs.push_back(Job(name, cores,
                       i % 3 == 0   ? Whole(1)
                       : i % 3 == 1 ? Share(100 * (1 + i % 6))
                                    : model::GpuRequest{}));
  }
  const auto add_nodes = [](Cluster& cluster) {
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(cluster.AddNode(Node("n" + std::to_string(i), 16 + 24 * (i % 3), 2 + i % 2)));
    }
  };
  add_nodes(*cluster_);
  Scheduler scheduler(*cluster_);
  std::int64_t now_ms = 0;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(cluster_->AddJob(jobs[i], ++now_ms).has_value());
    known.push_back(jobs[i].name);
    scheduler.Cycle(now_ms);
    if (i % 2 == 1) {
      cluster_->RemoveJob(cluster_->FindJob(known[i / 2]));
      known[i / 2].clear();
    }
  }
  const auto built = NewCluster();
  add_nodes(*built);
  for (const auto& job : jobs) {
    const JobId kept = cluster_->FindJob(job.name);
    if (kept == kNone) continue;
    const JobId id = *built->AddJob(job, cluster_->job(kept).submitted_ms);
    const Place& place = cluster_->worker({kept, 0}).place;
    if (place.bank == kNone) continue;
    ASSERT_TRUE(built->ReportWorker({id, 0}, place.state, cluster_->nodes().bank(place.bank).node,
                                    place.devices, 0));
  }
  std::size_t compared = 0;
  for (const auto& job : jobs) {
    const JobId kept = cluster_->FindJob(job.name);
    if (kept == kNone) continue;
    const auto any = [](BankId) { return true; };
    const auto here = cluster_->worker({kept, 0}).shape;
    const auto there = built->worker({built->FindJob(job.name), 0}).shape;
    const auto bank = cluster_->worth().Pick(here, any);
    EXPECT_EQ(bank, built->worth().Pick(there, any)) << job.name;
    compared += bank != kNone ? 1 : 0;
  }
  EXPECT_GT(compared, 5U) << "the cluster is too full to compare anything";
}

}  // namespace
}  // namespace muster::engine
