#include "pools/local/orders.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "pools/container/container.h"
#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two sockets with two GPUs and four cores each.
LocalMachine TwoSockets() {
  LocalMachine machine;
  machine.gpu_uuids = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};
  machine.numa_of_gpu = {0, 0, 1, 1};
  machine.cores_of_numa = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  return machine;
}

class OrdersTest : public ::testing::Test {
 protected:
  OrdersTest() {
    auto& role = job_.roles.emplace_back();
    role.name = "worker";
    job_.command = {"true"};
    role.request.gpu.kind = model::GpuKind::kWhole;
    role.request.cpu_milli = 2000;
    folders_.state = folder_.path();
    folders_.run = folder_.path() + "/run";
  }

  contract::LaunchOrder Order(std::uint64_t devices) {
    Launch launch;
    launch.key = {17, 0, 1};
    launch.spec = std::make_shared<model::Job>(job_);
    launch.uid = ::geteuid();
    launch.gid = ::getegid();
    launch.devices = devices;
    launch.members = {{0, 0, "here", devices}};
    auto order = MakeOrder(launch, folders_, machine_);
    if (order) return *order;
    ADD_FAILURE() << Describe(order.error());
    return {};
  }

  const testing::Folder folder_;
  LocalFolders folders_;
  LocalMachine machine_ = TwoSockets();
  model::Job job_;
};

TEST_F(OrdersTest, AWorkerSeesItsGpusAndRunsOnTheCoresBesideThem) {
  const auto order = Order(0b0100);
  EXPECT_EQ(order.env.at("CUDA_VISIBLE_DEVICES"), "GPU-c");
  EXPECT_THAT(order.cores, ElementsAre(4, 5, 6, 7));
}

TEST_F(OrdersTest, CoresAreLeftOpenWhereNoneAreNearOrTheyAreTooFew) {
  EXPECT_THAT(Order(0b1001).cores, IsEmpty()) << "GPUs of both sockets";
  job_.roles[0].request.cpu_milli = 5000;
  EXPECT_THAT(Order(0b0001).cores, IsEmpty()) << "a socket has four cores";
  machine_ = LocalMachine{};
  machine_.virtual_gpus = true;
  job_.roles[0].request.cpu_milli = 1000;
  EXPECT_THAT(Order(0b0001).cores, IsEmpty()) << "virtual GPUs are beside no core";
}

TEST_F(OrdersTest, AWorkerFindsTheProgramsOfMusterLast) {
  machine_.programs = "/opt/muster/bin";
  EXPECT_TRUE(Order(1).env.at("PATH").ends_with(":/bin:/opt/muster/bin"));
}

TEST_F(OrdersTest, AnImageComesWithItsSocketAndItsRemoval) {
  if (!ProgramsIn("/usr/bin:/bin")("podman")) GTEST_SKIP() << "podman is not installed";
  job_.image = "localhost/tool:1";
  machine_.container_env = {{"CONTAINERS_CONF", "/etc/muster/containers.conf"}};
  const auto order = Order(0b0001);
  EXPECT_THAT(order.command, Contains(HasSubstr("/17.0.1/worker.sock:")));
  EXPECT_THAT(order.cleanup, Contains(EndsWith("-run-17.0.1"))) << "and the folder before it";
  EXPECT_EQ(order.env.at("CONTAINERS_CONF"), "/etc/muster/containers.conf");
}

}  // namespace
}  // namespace muster::pools
