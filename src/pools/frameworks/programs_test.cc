// Real distributed programs of PyTorch and OpenMPI, started with what SetUpWorker gives.
#include <gmock/gmock.h>

#include <memory>
#include <regex>
#include <set>

#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using model::Framework;
using testing::Child;
using ::testing::ContainsRegex;
using testing::Ended;
using testing::Example;
using testing::Folder;
using ::testing::HasSubstr;
using testing::JobOf;
using testing::LocalGang;
using testing::Made;

bool HasTorch() { return std::filesystem::exists("/usr/bin/torchrun"); }
bool HasMpi() { return std::filesystem::exists("/usr/bin/mpirun"); }

std::string Last(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::string last = "none in: " + text;
  for (std::sregex_iterator each(text.begin(), text.end(), expression), end; each != end; ++each) {
    last = each->str(1);
  }
  return last;
}

constexpr const char* kParameters = "parameters ([-0-9.]+)";

std::vector<std::unique_ptr<Child>> StartGang(const GangView& gang) {
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < static_cast<int>(gang.members.size()); ++rank) {
    const WorkerSetup setup = Made(gang, rank);
    testing::WriteFiles(setup, gang.job_dir);
    children.push_back(std::make_unique<Child>(setup.command, setup.env, gang.job_dir));
  }
  return children;
}

class TorchPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasTorch()) GTEST_SKIP() << "python3-torch is not installed (no /usr/bin/torchrun)";
  }
};

TEST_F(TorchPrograms, DistributedDataParallelEndsWithEqualParametersAndGoesOnAfterASave) {
  const Folder folder;
  model::Job job = JobOf(Framework::kTorch, 2, 2,
                         {"/usr/bin/python3", Example("programs/torch_ddp.py"), "--steps", "20",
                          "--save-every", "10"});
  job.workdir = folder.path();
  job.checkpoint.dir = "ckpt";
  std::vector<std::string> parameters;
  for (auto& child : StartGang(LocalGang(job, 2, folder.path()))) {
    const Ended ended = child->Wait();
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("of 2 begins at step 0"));
    parameters.push_back(Last(ended.output, kParameters));
  }
  EXPECT_EQ(parameters[0], parameters[1]);

  job.command[3] = "1000000000";
  job.command[5] = "0";
  auto again = StartGang(LocalGang(job, 2, folder.path()));
  ASSERT_TRUE(again[0]->Await("begins at step 20"));
  again[1]->Signal(SIGUSR1);  // one is told, rank 0 saves
  ASSERT_TRUE(again[0]->Await("saved at step"));
  again[1]->Signal(SIGTERM);
  for (auto& child : again) EXPECT_EQ(child->Wait().status, 128 + SIGTERM);
}

TEST_F(TorchPrograms, OneTorchrunAgentStartsAProcessForEachGpu) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kTorch, 1, 1,
            {"/usr/bin/torchrun", Example("programs/torch_ddp.py"), "--steps", "3"});
  GangView gang = LocalGang(job, 1, folder.path());
  gang.members[0].gpus = 2;
  gang.members[0].devices = 0b11;
  const WorkerSetup setup = Made(gang, 0);
  const Ended ended = testing::Run(setup.command, setup.env, folder.path());
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string first = Last(ended.output, "rank 0 ends .* parameters ([-0-9.]+)");
  EXPECT_THAT(first, ContainsRegex("^[-0-9.]+$"));
  EXPECT_EQ(Last(ended.output, "rank 1 ends .* parameters ([-0-9.]+)"), first);
}

TEST_F(TorchPrograms, TwoTorchrunAgentsMeetInTheStoreOfTheFirst) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kTorch, 2, 2,
            {"/usr/bin/torchrun", Example("programs/torch_ddp.py"), "--steps", "3"});
  std::set<std::string> parameters;
  std::string output;
  for (auto& child : StartGang(LocalGang(job, 2, folder.path()))) {
    const Ended ended = child->Wait();
    EXPECT_EQ(ended.status, 0) << ended.output;
    parameters.insert(Last(ended.output, kParameters));
    output += ended.output;
  }
  EXPECT_EQ(parameters.size(), 1U) << output;
  EXPECT_THAT(output, HasSubstr("rank 0 of 2"));
  EXPECT_THAT(output, HasSubstr("rank 1 of 2"));
}

TEST(MpiPrograms, MpirunFillsTheHostfilesSlots) {
  if (!HasMpi()) GTEST_SKIP() << "openmpi-bin is not installed (no /usr/bin/mpirun)";
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kMpi, 3, 3,
            {"mpirun", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"});
  const GangView gang = LocalGang(job, 3, folder.path());
  Child holder(Made(gang, 1).command, Made(gang, 1).env, folder.path());
  const WorkerSetup leader = Made(gang, 0);
  testing::WriteFiles(leader, folder.path());
  const Ended ended = testing::Run(leader.command, leader.env, folder.path());
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) {
    EXPECT_THAT(ended.output, HasSubstr(rank));
  }
  holder.Signal(SIGTERM);
  EXPECT_EQ(holder.Wait().status, 128 + SIGTERM) << "it had held its place until it was stopped";
}

constexpr std::string_view kSum = R"c(#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d sum %d\n", rank, size, sum);
  MPI_Finalize();
  return 0;
}
)c";

TEST(MpiPrograms, ACompiledProgramReducesOverAllPlaces) {
  if (!HasMpi() || !std::filesystem::exists("/usr/bin/mpicc")) {
    GTEST_SKIP() << "openmpi-bin or libopenmpi-dev is not installed (no mpirun or no mpicc)";
  }
  const Folder folder;
  testing::Write(folder / "sum.c", std::string(kSum));
  const Ended compiled = testing::Run({"mpicc", "sum.c", "-o", "sum"}, {}, folder.path());
  ASSERT_EQ(compiled.status, 0) << compiled.output;
  const model::Job job = JobOf(Framework::kMpi, 2, 2, {"mpirun", "./sum"});
  const WorkerSetup leader = Made(LocalGang(job, 2, folder.path()), 0);
  testing::WriteFiles(leader, folder.path());
  const Ended ended = testing::Run(leader.command, leader.env, folder.path());
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("rank 0 of 2 sum 3"));
  EXPECT_THAT(ended.output, HasSubstr("rank 1 of 2 sum 3"));
}

}  // namespace
}  // namespace muster::pools
