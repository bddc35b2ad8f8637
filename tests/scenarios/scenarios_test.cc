// Every case file of this folder, with its rule and without it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/tree.h"
#include "sim/case_rules.h"
#include "sim/case_run.h"

namespace muster::sim {
namespace {

const std::filesystem::path kTree = SourceTree();

std::vector<std::string> CaseFiles() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kTree / "tests" / "scenarios")) {
    if (entry.path().extension() == kCaseExtension) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class EveryCase : public testing::TestWithParam<std::string> {};

TEST_P(EveryCase, HoldsAndFailsWithoutItsRule) {
  const auto story = ReadCaseFile(GetParam());
  ASSERT_TRUE(story) << story.error().message;
  const auto result = RunCase(*story);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->differences, testing::IsEmpty()) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Scenarios, EveryCase, testing::ValuesIn(CaseFiles()),
                         [](const auto& param) {
                           std::string name = std::filesystem::path(param.param).stem().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Cases, EveryRuleIsProvenByOne) {
  std::map<std::string, int> proven;
  for (const auto& path : CaseFiles()) {
    const auto story = ReadCaseFile(path);
    ASSERT_TRUE(story) << story.error().message;
    ++proven[story->rule];
  }
  for (const auto& rule : CaseRules()) EXPECT_GE(proven[std::string(rule.name)], 1) << rule.name;
}

TEST(Cases, SayWhatTheyAreAboutInTheirFirstLine) {
  for (const auto& path : CaseFiles()) {
    std::ifstream in(path);
    std::string first;
    std::getline(in, first);
    EXPECT_THAT(first, testing::StartsWith("# ")) << path;
  }
}

TEST(Cases, EveryRuleIsInTheManual) {
  std::ifstream in(kTree / "docs" / "scenarios.md");
  const std::string manual{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (const auto& rule : CaseRules()) {
    EXPECT_THAT(manual, testing::HasSubstr("`" + std::string(rule.name) + "`"));
  }
}

}  // namespace
}  // namespace muster::sim
