#include "model/job_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::model {
namespace {

Job Read(const std::string& rest) {
  auto job = DecodeJob("name: j\nqueue: a/b\ncommand: [run]\n" + rest);
  EXPECT_TRUE(job.has_value()) << (job ? "" : Describe(job.error())) << "\n" << rest;
  return job ? *job : Job{};
}

TEST(JobCodec, ReadsTheFileOfTheInterface) {
  const auto decoded = DecodeJob(R"(
name: resnet-cifar
queue: vision/detection
kind: train
priority: normal
roles:
  worker:
    count: 2..8
    resources: {gpus: 1, cpus: 4, memory: 16Gi}
    gpu_types: [H100, A100]
topology: {prefer: nvlink, require: rack}
framework: torch
command: [python3, train.py]
workdir: /data/vision/resnet
env: {EPOCHS: "90"}
checkpoint: {dir: ckpt, signal: SIGUSR1, grace: 60s}
limits: {time: 12h, retries: 3, idle: 1h}
after: [prepare-data:ok]
)");
  ASSERT_TRUE(decoded.has_value()) << Describe(decoded.error());
  const auto& job = *decoded;
  EXPECT_EQ(job.queue, "vision/detection");
  EXPECT_EQ(job.priority, 50);
  EXPECT_TRUE(job.preemptible);
  ASSERT_EQ(job.roles.size(), 1U);
  EXPECT_EQ(job.roles[0].count, 8);
  EXPECT_EQ(job.roles[0].request.gpu, (GpuRequest{GpuKind::kWhole, 1, 0, 0}));
  EXPECT_EQ(job.roles[0].request.cpu_milli, 4'000);
  EXPECT_EQ(job.roles[0].request.memory_bytes, std::int64_t{16} << 30);
  EXPECT_EQ(job.roles[0].gpu_types, (std::vector<std::string>{"H100", "A100"}));
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].minimum, 2);
  EXPECT_EQ(job.groups[0].topology, (TopologyWish{"", "rack", "nvlink"}));
  EXPECT_EQ(job.framework, Framework::kTorch);
  EXPECT_EQ(job.checkpoint.grace_ms, 60'000);
  EXPECT_EQ(job.limits.retries, 3);
  EXPECT_EQ(job.after, (std::vector<Dependency>{{"prepare-data", AfterCondition::kOk}}));
}

TEST(JobCodec, ShortFormEqualsOneRole) {
  const auto brief = Read(
      "workers: 2..4\ngpus: 2\ncpus: 1.5\nmemory: 1Gi\nresources: {fpga: 1}\n"
      "gpu_types: [T4]");
  const auto full = Read(
      "roles: {worker: {count: 2..4, gpu_types: [T4], "
      "resources: {gpus: 2, cpus: 1.5, memory: 1Gi, fpga: 1}}}");
  EXPECT_EQ(brief, full);
  EXPECT_EQ(brief.roles[0].request.other, (Amounts{{"fpga", 1}}));
}

TEST(JobCodec, SharesOfGpus) {
  EXPECT_EQ(Read("gpus: 0.25").roles[0].request.gpu, (GpuRequest{GpuKind::kShare, 1, 250, 0}));
  EXPECT_EQ(Read("gpus: 0.5\ngpu_devices: 2").roles[0].request.gpu,
            (GpuRequest{GpuKind::kShare, 2, 500, 0}));
  EXPECT_EQ(Read("gpu_memory: 10Gi").roles[0].request.gpu,
            (GpuRequest{GpuKind::kMemory, 1, 0, std::int64_t{10} << 30}));
  EXPECT_EQ(Read("gpus: 0\ncpus: 1").roles[0].request.gpu, GpuRequest{});
}

TEST(JobCodec, PriorityAndPreemptionFollowKindUnlessSaid) {
  EXPECT_EQ(Read("gpus: 1\npriority: high").priority, 75);
  EXPECT_EQ(Read("gpus: 1\npriority: 7").priority, 7);
  EXPECT_FALSE(Read("gpus: 1\npriority: critical").preemptible);
  EXPECT_TRUE(Read("gpus: 1\npriority: critical\npreemptible: true").preemptible);
  EXPECT_FALSE(Read("gpus: 1\npreemptible: false").preemptible);
  const auto build = Read("gpus: 1\nkind: build");
  EXPECT_EQ(build.priority, 100);
  EXPECT_FALSE(build.preemptible);
  EXPECT_FALSE(Read("gpus: 1\nkind: build\npriority: low").preemptible);
}

TEST(JobCodec, SeveralRolesBecomeLeavesUnderARootThatNeedsThemAll) {
  const auto job = Read(
      "roles: {chief: {resources: {cpus: 1}}, worker: {count: 2..6, resources: "
      "{gpus: 1}}}");
  ASSERT_EQ(job.groups.size(), 3U);
  EXPECT_EQ(job.groups[0].minimum, 2);
  EXPECT_EQ(job.groups[1].name, "chief");
  EXPECT_EQ(job.groups[1].parent, 0);
  EXPECT_EQ(job.groups[2].minimum, 2);
  EXPECT_EQ(job.roles[1].group, 2);
}

TEST(JobCodec, GroupsAreATreeAsWritten) {
  const auto job = Read(R"(
roles:
  a: {count: 4, resources: {gpus: 1}}
  b: {count: 4, resources: {gpus: 1}}
  c: {count: 1..2, resources: {cpus: 1}}
groups:
  - {name: left, parent: both, roles: [a], minimum: 3, topology: {require: rack}}
  - {name: both, minimum: 1}
  - {name: right, parent: both, roles: [b]}
  - {name: rest, roles: [c]}
topology: {prefer: zone}
)");
  ASSERT_EQ(job.groups.size(), 5U);
  EXPECT_EQ(job.groups[0], (Group{"root", -1, 2, {"", "", "zone"}}));
  EXPECT_EQ(job.groups[1], (Group{"left", 2, 3, {"", "rack", ""}}));
  EXPECT_EQ(job.groups[2], (Group{"both", 0, 1, {}}));
  EXPECT_EQ(job.groups[3], (Group{"right", 2, 4, {}}));
  EXPECT_EQ(job.groups[4], (Group{"rest", 0, 1, {}}));
  EXPECT_EQ(job.roles[0].group, 1);
}

TEST(JobCodec, TheRootMayBeWrittenToHoldRolesOrAMinimum) {
  const auto job = Read(
      "roles: {a: {count: 4, resources: {gpus: 1}}, b: {count: 4, resources: "
      "{cpus: 1}}}\ngroups: [{name: root, roles: [a, b], minimum: 5}]");
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].minimum, 5);
}

TEST(JobCodec, ReadsTheFurtherKeys) {
  const auto job = Read(
      "gpus: 1\narray: 0-99%8\nimage: a:1\nlabels: {a: b}\nnodes: {zone: z}\nshare: {same_device: "
      "allow}\nstale_grace: never\npreemption_delay: 5m\nafter: [x, y:any, z:failed]");
  EXPECT_EQ(job.array, (ArrayRange{0, 99, 8}));
  EXPECT_TRUE(job.same_device);
  EXPECT_EQ(job.stale_grace_ms, std::nullopt);
  EXPECT_EQ(job.preemption_delay_ms, 300'000);
  EXPECT_EQ(job.after[2].condition, AfterCondition::kFailed);
  EXPECT_EQ(job.nodes.at("zone"), "z");
}

TEST(JobCodec, AFileThatIsNoSingleJobIsRefused) {
  EXPECT_FALSE(DecodeJob("queues: [{name: a}]").has_value());
  const auto two = DecodeJob(
      "name: a\nqueue: q\ngpus: 1\ncommand: [x]\n---\nname: b\nqueue: q\n"
      "gpus: 1\ncommand: [x]\n");
  ASSERT_FALSE(two.has_value());
  EXPECT_EQ(two.error().message, "line 1, column 1: the file holds 2 jobs");
}

}  // namespace
}  // namespace muster::model
