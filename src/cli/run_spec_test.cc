#include "cli/run_spec.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::cli {
namespace {

RunOptions Plain() {
  RunOptions options;
  options.command = {"/usr/bin/python3.11", "train.py"};
  return options;
}

TEST(RunSpec, EveryFlagReachesTheJob) {
  auto options = Plain();
  options.name = "resnet";
  options.queue = "vision/detection";
  options.gpus = "2";
  options.cpus = "4";
  options.memory = "16Gi";
  options.workers = "2..4";
  options.priority = "high";
  options.framework = "torch";
  options.time = "2h";
  options.retries = "3";
  options.idle = "30m";
  options.workdir = "/data";
  options.gpu_types = {"H100,A100", "T4"};
  options.env = {"A=b=c", "B="};
  options.labels = {"team=a"};
  options.after = {"prepare:ok", "other"};
  options.topology = {"prefer=nvlink,require=rack"};
  options.preemptible = false;
  const auto spec = SpecOf(options);
  ASSERT_TRUE(spec) << spec.error().message;
  const auto& job = spec->jobs.at(0);
  EXPECT_EQ(job.name, "resnet");
  EXPECT_EQ(job.queue, "vision/detection");
  EXPECT_EQ(job.priority, 75);
  EXPECT_EQ(job.roles.at(0).count, 4);
  EXPECT_EQ(job.roles.at(0).request.gpu.devices, 2);
  EXPECT_EQ(job.roles.at(0).gpu_types, (std::vector<std::string>{"H100", "A100", "T4"}));
  EXPECT_EQ(job.limits.time_ms, 7'200'000);
  EXPECT_EQ(job.limits.retries, 3);
  EXPECT_EQ(job.limits.idle_ms, 1'800'000);
  EXPECT_EQ(job.workdir, "/data");
  EXPECT_EQ(job.env.at("A"), "b=c");
  EXPECT_EQ(job.env.at("B"), "");
  EXPECT_EQ(job.labels.at("team"), "a");
  EXPECT_EQ(job.after.size(), 2U);
  EXPECT_FALSE(job.preemptible);
}

TEST(RunSpec, TheEnvironmentIsTheCallersOnlyWhereItIsNamed) {
  ::setenv("RUN_SPEC_NAMED", "mine", 1);
  ::setenv("RUN_SPEC_OTHER", "secret", 1);
  ::unsetenv("RUN_SPEC_UNSET");
  auto options = Plain();
  EXPECT_TRUE(SpecOf(options)->jobs.at(0).env.empty());
  options.env = {"RUN_SPEC_NAMED"};
  const auto spec = SpecOf(options);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->jobs.at(0).env.size(), 1U);
  EXPECT_EQ(spec->jobs.at(0).env.at("RUN_SPEC_NAMED"), "mine");
  options.env = {"RUN_SPEC_UNSET"};
  const auto unset = SpecOf(options);
  ASSERT_FALSE(unset);
  EXPECT_EQ(unset.error().code, ErrorCode::kUsage);
  EXPECT_NE(unset.error().hint.find("RUN_SPEC_UNSET=VALUE"), std::string::npos);
}

TEST(RunSpec, AMistakeIsSaidWithTheFlagItIsIn) {
  struct Wrong {
    const char* flag;
    void (*make)(RunOptions&);
  };
  for (const auto& [flag, make] : {
           Wrong{"--time", [](RunOptions& o) { o.time = "soon"; }},
           Wrong{"--retries", [](RunOptions& o) { o.time = "1h", o.retries = "many"; }},
           Wrong{"--idle", [](RunOptions& o) { o.retries = "1", o.idle = "x"; }},
           Wrong{"--env",
                 [](RunOptions& o) {
                   o.env = {"A=1", "B-C=2"};
                 }},
           Wrong{"--label", [](RunOptions& o) { o.labels = {"team"}; }},
           Wrong{"--topology", [](RunOptions& o) { o.topology = {"need=rack"}; }},
           Wrong{"--after", [](RunOptions& o) { o.after = {"a:never"}; }},
           Wrong{"--array", [](RunOptions& o) { o.array = "9-0"; }},
           Wrong{"--kind", [](RunOptions& o) { o.kind = "play"; }},
           Wrong{"--preemptible", [](RunOptions& o) { o.kind = "build", o.preemptible = true; }},
           Wrong{"--template", [](RunOptions& o) { o.from_template = "jupyter"; }},
       }) {
    auto options = Plain();
    make(options);
    const auto spec = SpecOf(options);
    ASSERT_FALSE(spec) << flag;
    EXPECT_EQ(spec.error().code, ErrorCode::kUsage) << flag;
    EXPECT_TRUE(spec.error().message.starts_with(std::string(flag) + ":")) << spec.error().message;
  }
}

TEST(RunSpec, TheNameIsTheProgramsOrTheTemplates) {
  EXPECT_EQ(SpecOf(Plain())->jobs.at(0).name, "python3-11");
  RunOptions notebook;
  notebook.kind = "build";
  notebook.from_template = "jupyter";
  EXPECT_EQ(SpecOf(notebook)->jobs.at(0).name, "jupyter");
  EXPECT_EQ(SpecOf(RunOptions{}).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace muster::cli
