#include "model/paths.h"

#include <gtest/gtest.h>

#include "model/spec_codec.h"

namespace muster::model {
namespace {

std::vector<std::string> PathsOf(std::string_view text) {
  std::vector<std::string> paths;
  for (const auto& problem : DecodeSpec(text).problems.Sorted()) {
    if (problem.severity == Severity::kError) paths.push_back(problem.path);
  }
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Paths, EveryMistakeNamesItsKey) {
  EXPECT_EQ(
      PathsOf(
          R"({"name": "a", "queue": "q", "command": ["x"], "gpu": 1, "resources": {"memory": "12q"}})"),
      (Paths{"gpu", "resources.memory"}));
  EXPECT_EQ(PathsOf("bogus: 1\nname: a\nqueue: q\ncommand: [x]\n"), Paths{"bogus"});
  EXPECT_EQ(PathsOf("name: a\nqueue: q\ncommand: [x]\nroles:\n  worker:\n    count: none\n"),
            Paths{"roles.worker.count"});
}

TEST(Paths, AMissingKeyIsNamedInItsMap) {
  EXPECT_EQ(PathsOf("queues:\n  - weight: 1\n"), Paths{"queues[0].name"});
  EXPECT_EQ(PathsOf("queues: [{name: a}, {weight: 2}]"), Paths{"queues[1].name"});
}

TEST(Paths, JobsOfOneRequestAreToldApart) {
  EXPECT_EQ(
      PathsOf(
          R"({"jobs": [{"name": "a", "queue": "q", "command": ["x"]}, {"name": "b", "queue": "q", "gpus": "many"}]})"),
      (Paths{"jobs[1].command", "jobs[1].gpus"}));
  EXPECT_EQ(PathsOf(R"([{"name": "a", "queue": "q", "command": ["x"], "bogus": 1}])"),
            Paths{"[0].bogus"});
  EXPECT_EQ(
      PathsOf("name: a\nqueue: q\ncommand: [x]\n---\nname: b\nqueue: q\ncommand: [x]\nbogus: 1\n"),
      Paths{"[1].bogus"});
  const auto decoded = DecodeSpec(R"({"jobs": [{"name": "a", "queue": "q", "command": ["x"]}]})");
  EXPECT_EQ(decoded.job_paths, Paths{"jobs[0]"});
  EXPECT_EQ(DecodeSpec("name: a\nqueue: q\ncommand: [x]").job_paths, Paths{""});
}

TEST(Paths, TheErrorListsAllOfThem) {
  const auto error = ToError(
      DecodeSpec(R"({"name": "a", "queue": "q", "command": ["x"], "gpu": 1, "cpu": 2})").problems);
  EXPECT_EQ(error.path, "gpu");
  ASSERT_EQ(error.all.size(), 2u);
  EXPECT_EQ(error.all[1].path, "cpu");
  EXPECT_NE(error.all[1].message.find("unknown key `cpu`"), std::string::npos);
}

}  // namespace
}  // namespace muster::model
