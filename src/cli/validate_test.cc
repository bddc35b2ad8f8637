#include "cli/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/tree.h"

namespace muster::cli {
namespace {

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome Validate(const std::vector<std::string>& files, const std::string& input = {},
                 ValidateFormat format = ValidateFormat::kTable) {
  std::istringstream in(input);
  std::ostringstream out, err;
  const int status = RunValidate(files, format, {in, out, err});
  return {status, out.str(), err.str()};
}

TEST(Validate, EveryExampleIsValidWithoutAWarning) {
  std::vector<std::string> files;
  const auto root = std::filesystem::path(SourceTree()) / "examples";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension == ".yaml" || extension == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 10U);
  const auto outcome = Validate(files);
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_EQ(outcome.out.find("warning"), std::string::npos) << outcome.out;
}

TEST(Validate, ShowsTheLineWithACaretUnderTheMistake) {
  const auto outcome =
      Validate({"-"}, "name: j\nqueue: q\ncommand: [x]\ngpus: 1\nlimits: {time: 5}\n");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out,
            "-:5:16: error: `time`: `5` has no unit (allowed: a number with ms, s, m, h or d, such "
            "as 90s or 1h30m)\n"
            "    limits: {time: 5}\n"
            "                   ^\n");
}

TEST(Validate, CaretCountsCharactersAndTabs) {
  const auto outcome =
      Validate({"-"}, "{\"name\":\"é\",\t\"queue\":\"q\",\"gpus\":1,\"command\":[\"x\"]}");
  EXPECT_NE(outcome.out.find("-:1:9: error"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("    {\"name\":\"é\", \"queue\""), std::string::npos) << outcome.out;
}

TEST(Validate, NeverWritesControlCharactersOfAFile) {
  const auto outcome = Validate({"-"}, "a: \x1b[31m\xC2\x9B\n");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.out.find("\xC2\x9B"), std::string::npos);
  const auto escaped = Validate({"-"}, "a: \"\\e[31m\\x9b\"\nname: \"\\e[1m\\x9b\"\n");
  EXPECT_EQ(escaped.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(escaped.out.find("\xC2\x9B"), std::string::npos);
}

TEST(Validate, JsonHoldsEveryFileAndProblem) {
  const auto outcome =
      Validate({"-"}, "queues: [{name: a, quota: {gpus: x}}]", ValidateFormat::kJson);
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out, R"({
  "files": [
    {
      "file": "-",
      "kind": "queues",
      "valid": false,
      "problems": [
        {
          "line": 1,
          "column": 34,
          "severity": "error",
          "message": "`gpus`: `x` is not a number of GPUs",
          "allowed": "a number with at most three decimals, such as 2 or 0.25"
        }
      ]
    }
  ]
}
)");
}

TEST(Validate, WarningsLeaveAFileValid) {
  const auto outcome = Validate({"-"}, "name: j\nqueue: q\ncommand: [x]\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("-:1:1: warning: role `worker` asks for nothing"), std::string::npos);
  EXPECT_NE(outcome.out.find("-: valid (job)\n"), std::string::npos);
}

TEST(Validate, AMissingFileIsTheStatusAndTheOthersAreStillChecked) {
  const auto outcome = Validate({"no-such-file.yaml", "-"}, "queues: [{name: a}]");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("cannot read \"no-such-file.yaml\""), std::string::npos);
  EXPECT_NE(outcome.out.find("-: valid (queues)"), std::string::npos);
}

TEST(Validate, ADirectoryCannotBeRead) { EXPECT_EQ(Validate({SourceTree()}).status, 5); }

}  // namespace
}  // namespace muster::cli
