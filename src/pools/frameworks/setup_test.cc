#include "pools/frameworks/setup.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using model::Framework;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::GangOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobOf;
using ::testing::Key;
using testing::Made;
using testing::MemberAt;
using ::testing::Not;
using ::testing::Pair;

Error Refusal(const GangView& gang, int rank = 0) {
  auto setup = SetUpWorker(gang, rank);
  if (setup) {
    ADD_FAILURE() << "was not refused";
    return {};
  }
  return setup.error();
}

Member WithGpus(Member member, int gpus, std::uint64_t devices) {
  member.gpus = gpus;
  member.devices = devices;
  return member;
}

// Two nodes, `a` with ranks 0 and 2, `b` with rank 1.
std::vector<Member> Three() {
  return {MemberAt(0, "a", 0), MemberAt(1, "b", 0), MemberAt(2, "a", 1)};
}

const std::string& FileNamed(const WorkerSetup& setup, const std::string& name) {
  static const std::string none;
  for (const auto& file : setup.files) {
    if (file.name == name) return file.body;
  }
  ADD_FAILURE() << "no file " << name;
  return none;
}

TEST(VisibleDevices, NamesTheBitsInOrder) {
  EXPECT_EQ(VisibleDevices(0), "");
  EXPECT_EQ(VisibleDevices(0b1), "0");
  EXPECT_EQ(VisibleDevices(0b1010), "1,3");
  EXPECT_EQ(VisibleDevices(std::uint64_t{1} << 63 | 1), "0,63");
}

TEST(SetUpWorker, TellsEveryWorkerWhoItIs) {
  model::Job job = JobOf(Framework::kNone, 2, 3, {"run", "it"});
  job.workdir = "/data/work";
  job.checkpoint.dir = "ckpt";
  GangView gang = GangOf(job, Three());
  gang.restart_count = 2;
  gang.generation = 5;
  gang.members[2] = WithGpus(gang.members[2], 2, 0b110);
  const WorkerSetup setup = Made(gang, 2);
  const std::map<std::string, std::string> expected{{"MUSTER_JOB_ID", "j17"},
                                                    {"MUSTER_JOB_NAME", "test"},
                                                    {"MUSTER_JOB_DIR", "/run/muster/j17"},
                                                    {"MUSTER_QUEUE", "team/a"},
                                                    {"MUSTER_NODE", "a"},
                                                    {"MUSTER_ROLE", "worker"},
                                                    {"MUSTER_RANK", "2"},
                                                    {"MUSTER_ROLE_RANK", "2"},
                                                    {"MUSTER_LOCAL_RANK", "1"},
                                                    {"MUSTER_WORLD_SIZE", "3"},
                                                    {"MUSTER_MIN_WORKERS", "2"},
                                                    {"MUSTER_RESTART_COUNT", "2"},
                                                    {"MUSTER_GENERATION", "5"},
                                                    {"MUSTER_GPUS", "2"},
                                                    {"MUSTER_CHECKPOINT_DIR", "/data/work/ckpt"}};
  EXPECT_EQ(setup.env, expected);
  EXPECT_THAT(setup.command, ElementsAre("run", "it"));
  EXPECT_EQ(setup.devices, 0b110U);
  EXPECT_FALSE(setup.follows);
  EXPECT_THAT(setup.files, IsEmpty());
}

TEST(SetUpWorker, FrameworkMusterAddsNothing) {
  const model::Job plain = JobOf(Framework::kNone, 1, 3);
  const model::Job muster = JobOf(Framework::kMuster, 1, 3);
  EXPECT_EQ(Made(GangOf(plain, Three()), 1).env, Made(GangOf(muster, Three()), 1).env);
}

TEST(SetUpWorker, TheFewestWorkersAreThoseOfAllGroupsThatMustRun) {
  model::Job job = JobOf(Framework::kMuster, 1, 3);
  EXPECT_EQ(Made(GangOf(job, Three()), 1).env.at("MUSTER_MIN_WORKERS"), "1");
  job.groups = {{"root", -1, 1, {}}, {"one", 0, 3, {}}, {"two", 0, 2, {}}};
  EXPECT_EQ(Made(GangOf(job, Three()), 1).env.at("MUSTER_MIN_WORKERS"), "2");
}

TEST(SetUpWorker, AnAbsoluteCheckpointFolderStaysAndNoneIsNotNamed) {
  model::Job job = JobOf(Framework::kNone, 1, 1);
  job.workdir = "/data/work";
  EXPECT_THAT(Made(GangOf(job, {MemberAt(0, "a", 0)}), 0).env,
              Not(Contains(Key("MUSTER_CHECKPOINT_DIR"))));
  job.checkpoint.dir = "/ckpt";
  EXPECT_THAT(Made(GangOf(job, {MemberAt(0, "a", 0)}), 0).env,
              Contains(Pair("MUSTER_CHECKPOINT_DIR", "/ckpt")));
}

TEST(SetUpWorker, TheJobsOwnEnvironmentWinsButForMusters) {
  model::Job job = JobOf(Framework::kTorch, 1, 1);
  job.env = {{"MASTER_PORT", "1"}, {"EPOCHS", "90"}, {"MUSTER_RANK", "7"}, {"MUSTER_SOCKET", "x"}};
  const auto env = Made(GangOf(job, {MemberAt(0, "a", 0)}), 0).env;
  EXPECT_EQ(env.at("MASTER_PORT"), "1");
  EXPECT_EQ(env.at("EPOCHS"), "90");
  EXPECT_EQ(env.at("MUSTER_RANK"), "0");
  EXPECT_THAT(env, Not(Contains(Key("MUSTER_SOCKET"))));
}

TEST(SetUpWorker, RefusesAGangThatCannotBe) {
  const model::Job job = JobOf(Framework::kNone, 1, 2);
  const Member zero = MemberAt(0, "a", 0);
  EXPECT_EQ(Refusal(GangOf(job, {zero}), 1).code, ErrorCode::kInternal);
  EXPECT_THAT(Refusal(GangOf(job, {})).message, HasSubstr("no worker 0"));
  EXPECT_THAT(Refusal(GangOf(job, {zero, zero})).message, HasSubstr("rank 0 does not belong"));
  EXPECT_THAT(Refusal(GangOf(job, {zero, MemberAt(2, "a", 1)})).message, HasSubstr("rank 2"));
  EXPECT_THAT(Refusal(GangOf(job, {zero, MemberAt(1, "a", 0)})).message,
              HasSubstr("local rank 0 on node a"));
  EXPECT_THAT(Refusal(GangOf(job, {MemberAt(0, "", 0)})).message, HasSubstr("no address"));
  EXPECT_THAT(Refusal(GangOf(job, {zero}, 65'521)).message, HasSubstr("16 ports do not fit"));
  EXPECT_TRUE(SetUpWorker(GangOf(job, {zero}, 65'520), 0));
}

TEST(Torch, SeatsFollowTheNodesWithoutGpus) {
  const model::Job job = JobOf(Framework::kTorch, 1, 3);
  const auto env = Made(GangOf(job, Three()), 2).env;
  const std::map<std::string, std::string> expected{{"MASTER_ADDR", "a"},
                                                    {"MASTER_PORT", "30000"},
                                                    {"RANK", "2"},
                                                    {"WORLD_SIZE", "3"},
                                                    {"LOCAL_RANK", "1"},
                                                    {"LOCAL_WORLD_SIZE", "2"},
                                                    {"GROUP_RANK", "0"},
                                                    {"GROUP_WORLD_SIZE", "2"},
                                                    {"PET_NNODES", "1:3"},
                                                    {"PET_NODE_RANK", "2"},
                                                    {"PET_NPROC_PER_NODE", "1"},
                                                    {"PET_RDZV_BACKEND", "c10d"},
                                                    {"PET_RDZV_ENDPOINT", "a:30001"},
                                                    {"PET_RDZV_ID", "j17"},
                                                    {"PET_MAX_RESTARTS", "0"}};
  for (const auto& [name, value] : expected) EXPECT_THAT(env, Contains(Pair(name, value)));
  EXPECT_THAT(env, Not(Contains(Key("PET_REDIRECTS"))));
  EXPECT_THAT(env, Not(Contains(Key("GLOO_SOCKET_IFNAME"))));
  EXPECT_EQ(Made(GangOf(job, Three()), 1).env.at("GROUP_RANK"), "1");
}

// Or torch.cuda.set_device(LOCAL_RANK) would miss the one GPU that the process sees.
TEST(Torch, AWorkerWithGpusSitsAlone) {
  const model::Job job = JobOf(Framework::kTorch, 2, 2);
  const GangView gang =
      GangOf(job, {WithGpus(MemberAt(0, "a", 0), 1, 0b01), WithGpus(MemberAt(1, "a", 1), 1, 0b10)});
  const auto env = Made(gang, 1).env;
  EXPECT_EQ(env.at("LOCAL_RANK"), "0");
  EXPECT_EQ(env.at("LOCAL_WORLD_SIZE"), "1");
  EXPECT_EQ(env.at("GROUP_RANK"), "1");
  EXPECT_EQ(env.at("MUSTER_LOCAL_RANK"), "1");
}

TEST(Torch, TorchrunGetsAProcessForEachGpuAndItsStreamsMended) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"/usr/bin/torchrun", "train.py"},
        std::vector<std::string>{"python3", "-m", "torch.distributed.run", "train.py"}}) {
    model::Job job = JobOf(Framework::kTorch, 1, 4, command);
    job.limits.retries = 3;
    GangView gang = GangOf(job, {WithGpus(MemberAt(0, "a", 0), 4, 0b1111)});
    gang.restart_count = 1;
    const auto env = Made(gang, 0).env;
    EXPECT_EQ(env.at("PET_NPROC_PER_NODE"), "4");
    EXPECT_EQ(env.at("PET_NNODES"), "1:4");
    EXPECT_EQ(env.at("PET_REDIRECTS"), "1");
    EXPECT_EQ(env.at("PET_TEE"), "1");
    EXPECT_EQ(env.at("PET_MAX_RESTARTS"), "2");
  }
}

TEST(Torch, TheMinimumIsThatOfAllGroups) {
  model::Job job = JobOf(Framework::kTorch, 1, 4);
  job.groups = {{"root", -1, 2, {}}, {"x", 0, 3, {}}, {"y", 0, 1, {}}, {"z", 0, 2, {}}};
  job.roles.resize(3, job.roles.front());
  EXPECT_EQ(Made(GangOf(job, {MemberAt(0, "a", 0)}), 0).env.at("PET_NNODES"), "3:12");
}

std::vector<Member> Cast(const std::vector<std::string>& roles) {
  std::vector<Member> members;
  for (const std::string& role : roles) {
    const int rank = static_cast<int>(members.size());
    members.push_back(MemberAt(rank, "a", rank, role));
  }
  return members;
}

TEST(Tensorflow, RolesBecomeTasks) {
  const model::Job job = JobOf(Framework::kTensorflow, 1, 5);
  const GangView gang = GangOf(job, Cast({"master", "worker", "worker", "server", "evaluator"}));
  const auto expected = nlohmann::json::parse(R"({
      "cluster": {"chief": ["a:30000"], "worker": ["a:30001", "a:30002"], "ps": ["a:30003"],
                  "evaluator": ["a:30004"]},
      "task": {"type": "worker", "index": 1}})");
  EXPECT_EQ(nlohmann::json::parse(Made(gang, 2).env.at("TF_CONFIG")), expected);
  EXPECT_FALSE(Made(gang, 2).follows);
  EXPECT_TRUE(Made(gang, 3).follows);
}

TEST(Tensorflow, WithoutAChiefWorkerZeroStaysAWorker) {
  const model::Job job = JobOf(Framework::kTensorflow, 1, 2);
  const auto config =
      nlohmann::json::parse(Made(GangOf(job, Cast({"worker", "worker"})), 0).env.at("TF_CONFIG"));
  EXPECT_EQ(config["task"], nlohmann::json::parse(R"({"type": "worker", "index": 0})"));
  EXPECT_FALSE(config["cluster"].contains("chief"));
}

TEST(Tensorflow, RefusesRolesItCannotName) {
  const model::Job job = JobOf(Framework::kTensorflow, 1, 2);
  EXPECT_THAT(Refusal(GangOf(job, Cast({"worker", "driver"}))).message, HasSubstr("\"driver\""));
  EXPECT_THAT(Refusal(GangOf(job, Cast({"chief", "master"}))).message, HasSubstr("one chief"));
  const std::vector<std::string> seventeen(17, "worker");
  EXPECT_THAT(Refusal(GangOf(job, Cast(seventeen))).message, HasSubstr("more than 16"));
}

TEST(Mpi, RankZeroLaunchesAndTheOthersHoldTheirPlaces) {
  const model::Job job = JobOf(Framework::kMpi, 3, 3, {"mpirun", "./solve"});
  GangView gang = GangOf(job, Three());
  gang.members[0] = WithGpus(gang.members[0], 1, 0b001);
  gang.members[2] = WithGpus(gang.members[2], 1, 0b100);
  const WorkerSetup leader = Made(gang, 0);
  EXPECT_THAT(leader.command, ElementsAre("mpirun", "./solve"));
  EXPECT_EQ(FileNamed(leader, "hostfile"), "a slots=2\nb slots=1\n");
  EXPECT_EQ(leader.env.at("OMPI_MCA_orte_default_hostfile"), "/run/muster/j17/hostfile");
  EXPECT_EQ(leader.devices, 0b101U) << "it starts the processes of rank 2 as well";
  EXPECT_FALSE(leader.follows);
  const WorkerSetup other = Made(gang, 2);
  EXPECT_THAT(other.command, ElementsAre("sleep", "infinity"));
  EXPECT_TRUE(other.follows);
}

TEST(Deepspeed, AProgramOfItsOwnRunsInEveryWorker) {
  const model::Job job = JobOf(Framework::kDeepspeed, 3, 3, {"python3", "train.py"});
  const WorkerSetup setup = Made(GangOf(job, Three()), 1);
  EXPECT_THAT(setup.command, ElementsAre("python3", "train.py"));
  EXPECT_EQ(setup.env.at("RANK"), "1");
  EXPECT_FALSE(setup.follows);
}

TEST(Deepspeed, ItsLauncherIsToldOurGpusAndNoOthers) {
  const model::Job job = JobOf(Framework::kDeepspeed, 3, 3, {"deepspeed", "train.py"});
  GangView gang = GangOf(job, Three());
  EXPECT_THAT(Refusal(gang).message, HasSubstr("no GPU"));
  gang.members[0] = WithGpus(gang.members[0], 1, 0b0010);
  gang.members[1] = WithGpus(gang.members[1], 2, 0b0011);
  gang.members[2] = WithGpus(gang.members[2], 1, 0b1000);
  const WorkerSetup leader = Made(gang, 0);
  EXPECT_THAT(leader.command,
              ElementsAre("deepspeed", "--master_addr", "a", "--master_port", "30000", "--hostfile",
                          "/run/muster/j17/hostfile", "--include", "a:1,3@b:0,1", "train.py"));
  EXPECT_EQ(FileNamed(leader, "hostfile"), "a slots=4\nb slots=2\n");
  EXPECT_EQ(leader.devices, 0b1010U);
  EXPECT_TRUE(Made(gang, 1).follows);
}

TEST(Deepspeed, OnOneNodeItsLauncherGoesByTheVisibleDevices) {
  const model::Job job = JobOf(Framework::kDeepspeed, 1, 1, {"deepspeed", "train.py"});
  const WorkerSetup leader = Made(GangOf(job, {WithGpus(MemberAt(0, "a", 0), 2, 0b1100)}), 0);
  EXPECT_THAT(leader.command,
              ElementsAre("deepspeed", "--master_addr", "a", "--master_port", "30000", "train.py"));
  EXPECT_THAT(leader.files, IsEmpty());
}

TEST(Horovod, HorovodrunIsElasticThroughTheDiscoveryScript) {
  const model::Job job = JobOf(Framework::kHorovod, 2, 4, {"horovodrun", "python3", "train.py"});
  const WorkerSetup leader = Made(GangOf(job, Three()), 0);
  EXPECT_THAT(leader.command,
              ElementsAre("horovodrun", "--gloo", "-np", "3", "--min-np", "2", "--max-np", "4",
                          "--host-discovery-script", "/run/muster/j17/horovod_discovery.sh",
                          "python3", "train.py"));
  EXPECT_EQ(FileNamed(leader, "horovod_hosts"), "a:2\nb:1\n");
  EXPECT_THAT(leader.env, Not(Contains(Key("HOROVOD_RANK"))));
  EXPECT_TRUE(Made(GangOf(job, Three()), 1).follows);
}

TEST(Horovod, AFixedGangIsListed) {
  const model::Job job = JobOf(Framework::kHorovod, 3, 3, {"horovodrun", "./train"});
  EXPECT_THAT(Made(GangOf(job, Three()), 0).command,
              ElementsAre("horovodrun", "--gloo", "-np", "3", "-H", "a:2,b:1", "./train"));
}

TEST(SetUpWorker, FrameworksWithALauncherNeedACommand) {
  for (const Framework framework : {Framework::kMpi, Framework::kHorovod, Framework::kRay}) {
    const model::Job job = JobOf(framework, 1, 1, {});
    const Error error = Refusal(GangOf(job, {MemberAt(0, "a", 0)}));
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_THAT(error.message, HasSubstr("needs a command"));
  }
}

TEST(Ray, TheHeadRunsTheProgramAndTheOthersFollow) {
  model::Job job = JobOf(Framework::kRay, 2, 2, {"python3", "tune.py"});
  job.roles.front().request.cpu_milli = 4500;
  const GangView gang = GangOf(job, {MemberAt(0, "a", 0), WithGpus(MemberAt(1, "b", 0), 2, 0b11)});
  const WorkerSetup head = Made(gang, 0);
  EXPECT_THAT(head.command, ElementsAre("/run/muster/j17/ray_worker.sh", "head", "a", "30003", "a",
                                        "4", "0", "30004", "python3", "tune.py"));
  EXPECT_EQ(head.env.at("RAY_ADDRESS"), "a:30003");
  EXPECT_FALSE(head.follows);
  const WorkerSetup node = Made(gang, 1);
  EXPECT_THAT(node.command, ElementsAre("/run/muster/j17/ray_worker.sh", "node", "a", "30003", "b",
                                        "4", "2", "30004"));
  EXPECT_TRUE(node.follows);
}

}  // namespace
}  // namespace muster::pools
