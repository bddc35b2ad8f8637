// What was set up for TensorFlow, Horovod, DeepSpeed and Ray, judged by real processes that were
// started with it; and the example programs that need no package.
#include <gmock/gmock.h>
#include <sys/un.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using model::Framework;
using testing::Child;
using testing::Ended;
using testing::Example;
using testing::Folder;
using ::testing::HasSubstr;
using testing::JobOf;
using testing::LocalGang;
using testing::Made;
using ::testing::StartsWith;

// All workers at once, each with its own start; what each printed, by rank.
std::vector<Ended> RunGang(const GangView& gang, std::map<std::string, std::string> more = {}) {
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < static_cast<int>(gang.members.size()); ++rank) {
    WorkerSetup setup = Made(gang, rank);
    testing::WriteFiles(setup, gang.job_dir);
    setup.env.insert(more.begin(), more.end());
    children.push_back(std::make_unique<Child>(setup.command, setup.env, gang.job_dir));
  }
  std::vector<Ended> ended;
  for (auto& child : children) ended.push_back(child->Wait());
  return ended;
}

TEST(Checks, TensorflowsTasksFindTheirPlace) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kTensorflow, 2, 2, {"python3", Example("checks/tensorflow.py")});
  const auto ended = RunGang(LocalGang(job, 2, folder.path()));
  for (int rank = 0; rank < 2; ++rank) {
    const Ended& one = ended[static_cast<std::size_t>(rank)];
    EXPECT_EQ(one.status, 0) << one.output;
    EXPECT_THAT(one.output, StartsWith("worker " + std::to_string(rank)));
  }
}

TEST(Checks, HorovodsWorkersMeetInTheStoreOfTheFirst) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kHorovod, 2, 2, {"python3", Example("checks/horovod.py")});
  for (const Ended& one : RunGang(LocalGang(job, 2, folder.path()))) {
    EXPECT_EQ(one.status, 0) << one.output;
    EXPECT_THAT(one.output, HasSubstr("met 2"));
  }
}

TEST(Checks, HorovodsServerPassesSignalsAndStatusOn) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kHorovod, 1, 1,
            {"sh", "-c", "trap 'echo told; exit 7' USR1; echo up; while :; do sleep 0.05; done"});
  const GangView gang = LocalGang(job, 1, folder.path());
  const WorkerSetup setup = Made(gang, 0);
  testing::WriteFiles(setup, folder.path());
  Child child(setup.command, setup.env, folder.path());
  ASSERT_TRUE(child.Await("up"));
  child.Signal(SIGUSR1);
  const Ended ended = child.Wait();
  EXPECT_EQ(ended.status, 7);
  EXPECT_THAT(ended.output, HasSubstr("told"));
}

TEST(Checks, DeepspeedsProgramsGetTorchsVariables) {
  const Folder folder;
  const model::Job job =
      JobOf(Framework::kDeepspeed, 2, 2, {"python3", Example("checks/deepspeed.py")});
  const auto ended = RunGang(LocalGang(job, 2, folder.path()));
  EXPECT_EQ(ended[0].output, "rank 0 of 2\n");
  EXPECT_EQ(ended[1].output, "rank 1 of 2\n");
}

// A `ray` that writes down how it was called, and stays while a node would.
constexpr std::string_view kRayDouble = R"sh(#!/bin/sh
echo "$*" >>"$LOG"
[ "$1" != health-check ] || exit 0
case $* in *--block*) ;; *) exit 1 ;; esac
trap 'echo "ended $2" >>"$LOG"; exit 0' TERM
echo node is up
while :; do sleep 0.05; done
)sh";

TEST(Checks, RaysHeadIsUpBeforeTheProgramAndEndsWithIt) {
  const Folder folder;
  testing::Write(folder / "ray", std::string(kRayDouble), true);
  const model::Job job = JobOf(Framework::kRay, 2, 2, {"python3", Example("checks/ray.py")});
  const GangView gang = LocalGang(job, 2, folder.path());
  const std::string port = std::to_string(gang.port_base + 3);
  std::map<std::string, std::string> env{{"PATH", folder.path() + ":/usr/bin:/bin"},
                                         {"LOG", folder / "node.log"}};
  WorkerSetup node_setup = Made(gang, 1);
  testing::WriteFiles(node_setup, folder.path());
  node_setup.env.insert(env.begin(), env.end());
  Child node(node_setup.command, node_setup.env, folder.path());
  ASSERT_TRUE(node.Await("node is up"));

  env["LOG"] = folder / "head.log";
  WorkerSetup head_setup = Made(gang, 0);
  head_setup.env.insert(env.begin(), env.end());
  const Ended head = testing::Run(head_setup.command, head_setup.env, folder.path());
  EXPECT_EQ(head.status, 0) << head.output;
  EXPECT_THAT(head.output, HasSubstr("head at 127.0.0.1:" + port));
  const std::string head_log = ReadFile(folder / "head.log").value_or("");
  EXPECT_THAT(head_log, HasSubstr("start --head --node-ip-address=127.0.0.1 --port=" + port));
  EXPECT_THAT(head_log, HasSubstr("health-check --address 127.0.0.1:" + port));
  EXPECT_THAT(head_log, HasSubstr("ended --head"));

  node.Signal(SIGTERM);
  node.Wait();
  EXPECT_THAT(ReadFile(folder / "node.log").value_or(""),
              StartsWith("start --address=127.0.0.1:" + port));
}

TEST(Checks, WithoutRayTheErrorSaysSo) {
  const Folder folder;
  const model::Job job = JobOf(Framework::kRay, 1, 1, {"true"});
  const WorkerSetup setup = Made(LocalGang(job, 1, folder.path()), 0);
  testing::WriteFiles(setup, folder.path());
  auto env = setup.env;
  env["PATH"] = "/usr/sbin:/sbin";
  std::vector<std::string> command = setup.command;
  command.insert(command.begin(), "/bin/sh");
  const Ended ended = testing::Run(command, env, folder.path());
  EXPECT_EQ(ended.status, 127);
  EXPECT_THAT(ended.output, HasSubstr("there is no program \"ray\" in PATH"));
}

TEST(Checks, BesideRaysHeadTheProgramsStatusIsTheWorkers) {
  const Folder folder;
  testing::Write(folder / "ray", std::string(kRayDouble), true);
  const model::Job job = JobOf(Framework::kRay, 1, 1, {"sh", "-c", "exit 9"});
  WorkerSetup setup = Made(LocalGang(job, 1, folder.path()), 0);
  testing::WriteFiles(setup, folder.path());
  setup.env["PATH"] = folder.path() + ":/usr/bin:/bin";
  setup.env["LOG"] = folder / "log";
  EXPECT_EQ(testing::Run(setup.command, setup.env, folder.path()).status, 9);
}

std::string PiLine(const std::string& output) {
  std::smatch found;
  return std::regex_search(output, found, std::regex("pi [0-9.]+ from [0-9]+ points"))
             ? found.str()
             : "none in: " + output;
}

TEST(Programs, CountGoesOnWhereItWasAndEndsWithTheSameNumber) {
  const Folder folder;
  model::Job job = JobOf(Framework::kNone, 1, 1,
                         {"python3", Example("programs/count.py"), "--points", "400000"});
  job.workdir = folder.path();
  job.checkpoint.dir = "ckpt";
  const WorkerSetup setup = Made(LocalGang(job, 1, folder.path()), 0);
  const Ended whole = testing::Run(setup.command, setup.env, folder.path());
  EXPECT_EQ(whole.status, 0) << whole.output;

  Child first(setup.command, setup.env, folder.path());
  ASSERT_TRUE(first.Await("progress"));
  first.Signal(SIGUSR1);
  ASSERT_TRUE(first.Await("saved at"));
  first.Signal(SIGTERM);
  const Ended stopped = first.Wait();
  EXPECT_EQ(stopped.status, 128 + SIGTERM) << stopped.output;
  const Ended second = testing::Run(setup.command, setup.env, folder.path());
  EXPECT_EQ(second.status, 0);
  EXPECT_THAT(second.output, StartsWith("resumed at"));
  EXPECT_EQ(PiLine(second.output), PiLine(whole.output));
}

class Socket {
 public:
  explicit Socket(const std::string& path) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  ~Socket() {
    close(line_);
    close(listener_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void Accept() { line_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }
  void Say(const std::string& text) {
    EXPECT_EQ(write(line_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  nlohmann::json Hear() {
    std::string text;
    for (char next = 0; read(line_, &next, 1) == 1 && next != '\n';) text += next;
    return nlohmann::json::parse(text, nullptr, false);
  }

 private:
  int listener_ = -1;
  int line_ = -1;
};

TEST(Programs, TheWorkerOfThirtyLinesKeepsTheContract) {
  const Folder folder;
  model::Job job =
      JobOf(Framework::kMuster, 1, 1, {"python3", Example("programs/muster_worker.py")});
  job.checkpoint.dir = folder.path();
  job.env = {{"STEPS", "1000000000"}};
  WorkerSetup setup = Made(LocalGang(job, 1, folder.path()), 0);
  setup.env["MUSTER_SOCKET"] = folder / "worker.sock";
  Socket shim(folder / "worker.sock");
  Child worker(setup.command, setup.env, folder.path());
  shim.Accept();
  const auto hello = shim.Hear();
  EXPECT_EQ(hello["type"], "hello");
  EXPECT_EQ(hello["version"], 1);
  EXPECT_TRUE(hello["pid"].is_number_integer());
  shim.Say("{\"type\":\"welcome\",\"version\":1}\n");
  EXPECT_EQ(shim.Hear()["type"], "ready");
  EXPECT_EQ(shim.Hear()["type"], "report");
  shim.Say("{\"type\":\"checkpoint\",\"deadline_ms\":0}\n{\"type\":\"stop\",\"grace_ms\":9}\n");
  int saved = 0;
  for (auto said = shim.Hear(); !said.is_discarded(); said = shim.Hear()) {
    if (said["type"] == "checkpointed") ++saved;
  }
  EXPECT_EQ(saved, 2) << "once when asked, once before it ends";
  const Ended ended = worker.Wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, StartsWith("1.414214 after"));
  EXPECT_TRUE(std::filesystem::exists(folder / "value.json"));
}

}  // namespace
}  // namespace muster::pools
